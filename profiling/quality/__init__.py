"""Does a candidate still say the same? Perplexity, KL divergence, agreement, greedy exactness: numbers from logits."""
