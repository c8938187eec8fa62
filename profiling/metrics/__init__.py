"""Numbers from records: pure functions, numpy and the standard library only.

Every value that a window, a table or an export shows is computed here, from the same records, live or stored.
"""
