"""INT8 arithmetic: value ranges, layers that multiply integers, smoothing, and which layers suffer from it."""
