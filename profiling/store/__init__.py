"""The library of runs: an SQLite file and a folder of traces."""
