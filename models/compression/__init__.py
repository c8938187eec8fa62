"""Ways to make a model smaller: one file each, listed here."""

from gptscope.models.compression.pruning import Pruning

PRUNINGS: dict[str, Pruning] = {}
"""Name -> pruning, in the order of menus."""
