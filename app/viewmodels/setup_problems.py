"""What in Setup cannot be run as it stands: a sentence for each field, before anything is started."""

from collections.abc import Callable, Iterator
from pathlib import Path

from gptscope.app.viewmodels.setup import SetupState, effective
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import Capabilities, LeverInfo, ModelInfo

NEW_TOKENS, TEXT = "new_tokens", "text"
"""Names of fields; the setting of a lever is called `lever.setting`."""


def problems(
    setup: SetupState,
    model: ModelInfo | None,
    capabilities: Capabilities | None,
    is_file: Callable[[Path], bool] = Path.is_file,
) -> dict[str, str]:
    """Field -> why it cannot be, and what can; empty when Run may go ahead.

    What only the engine can know (a pattern that fits no layer, a prompt's number of tokens) is left to it.
    """
    found: dict[str, str] = {}
    too_many = _too_many_tokens(setup.workload, model)
    if too_many:
        found[NEW_TOKENS] = too_many
    if setup.text and setup.compare and setup.workload.kind != "train" and not is_file(Path(setup.text).expanduser()):
        found[TEXT] = _no_file(setup.text)
    variant = effective(setup.variant, setup.workload.kind, capabilities)
    for lever in () if capabilities is None else capabilities.levers:
        if _is_on(lever, variant):
            found |= {f"{lever.name}.{name}": why for name, why in _of_lever(lever, variant, is_file)}
    return found


def _too_many_tokens(work: Workload, model: ModelInfo | None) -> str:
    own_prompt = work.kind == "generate" and bool(work.prompt)
    if model is None or work.kind in ("train", "prefill") or own_prompt:
        return ""
    limit, room = model.context_length, model.context_length - work.context
    if work.new_tokens <= room:
        return ""
    most = f"at most {room} new tokens fit" if room > 0 else "no new token fits"
    return f"This model reads {limit} tokens: after a context of {work.context}, {most}."


def _is_on(lever: LeverInfo, variant: Variant) -> bool:
    if lever.group == "fusion":
        return lever.name in variant.fusions
    return bool(getattr(variant, lever.group) == lever.name)


def _of_lever(lever: LeverInfo, variant: Variant, is_file: Callable[[Path], bool]) -> Iterator[tuple[str, str]]:
    given = variant.options.get(lever.name, {})
    for option in lever.options:
        value = str(given.get(option.name, ""))
        if option.kind == "file" and value and not is_file(Path(value).expanduser()):
            yield option.name, _no_file(value)
    values = {option.name: given.get(option.name, option.default) for option in lever.options}
    least, most = values.get("shortest"), values.get("ngram")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield "shortest", f"No guess would ever be made: take at most {most}, the number of tokens to match."


def _no_file(path: str) -> str:
    return f"There is no file {path}."
