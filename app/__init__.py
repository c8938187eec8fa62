"""The window and the terminal commands: two clients of one engine. Nothing here imports torch."""
