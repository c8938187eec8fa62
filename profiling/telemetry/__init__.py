"""What the machine does while a worker is measured, read outside that worker: CPU, memory, GPU."""
