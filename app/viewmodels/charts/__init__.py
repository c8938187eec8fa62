"""One chart per file: records in, `ChartData` out."""
