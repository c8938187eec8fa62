"""One `Progress` record in words and as a fraction. Needs no numpy: the Setup dock shows it before the first paint."""

from gptscope.app.viewmodels import formatting as fmt
from gptscope.profiling.records import ModelInfo, Progress

PHASE_SENTENCES = {
    "fetch": "Fetching the model.",
    "load": "Loading the model and applying the levers.",
    "compile": "Compiling the graph; the first time takes a while.",
    "warmup": "Warming up until steps are steady; these are not counted.",
    "measure": "Measuring, without a profiler.",
    "profile": "Recording a kernel profile; the headline numbers are done.",
    "evaluate": "Comparing the output with the baseline's.",
    "peaks": "Measuring this machine's memory bandwidth and arithmetic.",
    "train": "Fine-tuning for a recipe, whose rounding every step sees.",
}


def starting_sentence(source: str, model: ModelInfo | None) -> str:
    """What Run does first; `model` is what is known of the source."""
    if model is None or model.fetch_bytes is None:
        return "Starting: a worker process loads the model."
    size = fmt.quantity(model.fetch_bytes, "bytes")
    return f"Starting: {source} is not on this machine yet, so {size} are fetched first."


def fraction_of(progress: Progress | None) -> float | None:
    """0 to 1, None when the end is unknown."""
    if progress is None or progress.total <= 0:
        return None
    return min(max(progress.done / progress.total, 0.0), 1.0)


def work_note(progress: Progress) -> str:
    """`windows 3 of 12, the original model`, `steps 7 of 200, loss 0.4123`: how far, and what came with it."""
    counted = progress_note(progress)
    return f"{counted}, {progress.note}" if progress.note and progress.note != counted else counted


def progress_note(progress: Progress | None) -> str:
    """`12.4 of 98.1 MB`, `slice 8 of 12`, or the note that came with it."""
    if progress is None:
        return ""
    if progress.unit == "bytes":
        total = fmt.quantity(progress.total, "bytes") if progress.total > 0 else "unknown size"
        return f"{fmt.quantity(progress.done, 'bytes')} of {total}"
    if progress.unit and progress.total > 0:
        unit = progress.unit.removesuffix("s") if progress.unit == "slices" else progress.unit
        number = min(progress.done + 1, progress.total) if progress.unit == "slices" else progress.done
        return f"{unit} {fmt.count(round(number))} of {fmt.count(round(progress.total))}"
    return progress.note
