"""Ways to make a model smaller: one file each, listed here."""

from gptscope.models.compression.magnitude import Magnitude
from gptscope.models.compression.pruning import Pruning
from gptscope.models.compression.structured import Structured
from gptscope.models.compression.two_four import TwoFour

PRUNINGS: dict[str, Pruning] = {"magnitude": Magnitude(), "2:4": TwoFour(), "structured": Structured()}
"""Name -> pruning, in the order of menus."""
