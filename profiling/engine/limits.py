"""How long each phase may take. All but `experiment.time_limit_s` count silence: a worker that reports lives."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds without any sign of life after which a worker is ended."""

    load_s: float = 300.0
    """Imports, reading and converting weights; downloads report progress all the time."""
    warm_up_s: float = 900.0
    """Graph compilation and autotuning say nothing while they work."""
    slice_s: float = 900.0
    """One slice; a worker may report only at its end."""
    profile_s: float = 300.0
    evaluate_s: float = 300.0
    """One window of text or one prompt."""
    peaks_s: float = 120.0
    ask_s: float = 120.0
    """Capabilities and inspections."""
    fetch_s: float = 120.0
    leave_s: float = 2.0
