"""Everything that is data: the trained demo model, icons, colours, fonts and help texts."""

from pathlib import Path

ASSETS = Path(__file__).resolve().parent
