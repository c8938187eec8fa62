"""Turning logits into text, token by token."""
