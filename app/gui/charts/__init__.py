"""One chart per file; all draw `ChartData` or their own small view-model."""
