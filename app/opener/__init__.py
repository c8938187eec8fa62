"""Opens traces in a process of its own, so that neither a long computation nor a crash can stop the window."""
