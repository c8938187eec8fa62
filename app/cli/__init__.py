"""The command line: one command, one file. Imports nothing heavy until a command runs."""
