"""Which experiments were requests that never ran: there is nothing to keep of them but the reason, which was shown."""

from collections.abc import Iterable

from gptscope.profiling.records import ExperimentFinished, Failure, Message, ModelLoaded, StepSamples

_REFUSALS = frozenset(("usage", "model", "offline", "memory"))
"""Kinds of failures that say why a request cannot be run as asked. A worker that died or hung is no refusal."""


class Refusal:
    """Fed with an experiment's records; `refused` once it ended without a model having been loaded.

    Attributes:
        refused: The experiment is over, and all that came of it is why it cannot be run as asked.
    """

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._loaded = False
        self.refused = False

    def take(self, record: Message) -> None:
        """Look at one record."""
        match record:
            case ModelLoaded() | StepSamples():
                self._loaded = True
            case Failure():
                self._kinds.add(record.kind)
            case ExperimentFinished(outcome="failed"):
                self.refused = not self._loaded and bool(self._kinds) and self._kinds <= _REFUSALS
            case _:
                pass


def is_refused(records: Iterable[Message]) -> bool:
    """Whether these records of one experiment say that it was refused."""
    refusal = Refusal()
    for record in records:
        refusal.take(record)
    return refusal.refused
