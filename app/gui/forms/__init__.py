"""Setup dock: model, workload and levers, generated from the capabilities record."""
