"""Records become what a person reads: numbers, sentences, chart data. Knows no Qt."""
