"""The decoder, the levers that change how it runs, and the loaders that fill it."""
