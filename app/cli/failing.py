"""How commands fail: a sentence for the user and an exit code, never a traceback."""

GOOD = 0
FAILED = 1
USAGE = 2


class CommandError(Exception):
    """A command cannot do what was asked; told as one sentence."""

    def __init__(self, sentence: str, *, code: int = FAILED, detail: str = "") -> None:
        """Say what happened, why and what to do; `detail` is shown with `--debug` only."""
        super().__init__(sentence)
        self.code = code
        self.detail = detail
