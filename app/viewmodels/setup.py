"""The Setup dock's state: one model, one workload, one setting of the levers, and what can be said about them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.setup_command import command_line
from gptscope.app.viewmodels.variant_names import active_options, precision_title, title_of
from gptscope.profiling.experiment import Experiment, Variant, Workload, WorkloadKind
from gptscope.profiling.records import Capabilities, LeverInfo, ModelInfo

__all__ = ["command_line", "title_of"]

WORKLOADS: tuple[WorkloadKind, ...] = ("train", "prefill", "decode", "generate")
STEP_NAMES: dict[str, str] = {"train": "Steps", "prefill": "Prompts", "decode": "Sequences", "generate": "Sequences"}
COMPILE = "compile"
_KV_UNUSED = "Only decode and generate keep keys and values; {workload} has no cache."
_OTHER_WORKLOAD = "{title} works for {workloads} only."
PLAIN = Variant()
"""What one compares with when nothing is pinned: FP32, nothing fused."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One selectable value of a lever as a form shows it."""

    name: str
    title: str
    tip: str
    reason: str | None
    warning: str | None = None
    chosen: bool = False
    differs: bool = False


@dataclass
class SetupState:
    """Plain mutable values; the forms write them and read the derived texts."""

    model: str = "bundled"
    workload: Workload = field(default_factory=Workload)
    variant: Variant = PLAIN
    baseline: Variant = PLAIN
    baseline_name: str = ""
    device: str = "auto"
    compare: bool = False
    """Run the baseline, too, and compare the outputs."""
    layer_map: bool = False
    """With `compare`: find out what each module alone costs and saves."""
    seeds: int = 1
    """With `compare`, training: over so many seeds the final losses are compared."""
    text: str | None = None
    """Text file on which outputs are compared; None: the one that comes with gptscope."""

    def set_workload(self, **changes: object) -> None:
        """Change workload values.

        Raises:
            ValueError: a number is impossible.
        """
        values = {name: getattr(self.workload, name) for name in self.workload.__struct_fields__}
        self.workload = Workload(**{**values, **changes})

    def set_variant(self, **changes: object) -> None:
        """Change lever values."""
        self.variant = msgspec.structs.replace(self.variant, **changes, name="")

    def toggle_fusion(self, name: str, *, on: bool, order: Sequence[str]) -> None:
        """Switch one fusion; the names keep the order of the capabilities."""
        chosen = {*self.variant.fusions} | {name} if on else {*self.variant.fusions} - {name}
        self.set_variant(fusions=ordered(chosen, order))

    def experiment(self, capabilities: Capabilities | None) -> Experiment:
        """What Run starts: levers that are unavailable here or for this workload are left out."""
        kind = self.workload.kind
        variants: tuple[Variant, ...] = (effective(self.variant, kind, capabilities),)
        baseline = effective(self.baseline, kind, capabilities)
        compare = self.compare and self.compare_reason(capabilities) is None
        if compare:
            variants = (baseline, *variants)
        return Experiment(
            model=self.model,
            workload=self.workload if kind == "generate" else _without_prompt(self.workload),
            variants=variants,
            device=self.device,  # type: ignore[arg-type]
            quality=compare and kind != "train",
            layer_map=compare and self.layer_map and self.layer_map_reason() is None,
            text=self.text if compare else None,
            seeds=self.seeds if compare and kind == "train" else 1,
        )

    def compare_reason(self, capabilities: Capabilities | None) -> str | None:
        """Why the outputs cannot be compared, or None."""
        ours, base = (effective(v, self.workload.kind, capabilities) for v in (self.variant, self.baseline))
        if not differences(ours, base, [lever.name for lever in levers_of(capabilities, "fusion")]):
            return (
                f"This variant is the baseline, {self.baseline_name or title_of(self.baseline)}: change a lever first."
            )
        return None

    def layer_map_reason(self) -> str | None:
        """Why there cannot be a layer map, or None."""
        if self.workload.kind == "train":
            return "Training changes the model at every step; the layer map needs prefill, decode or generate."
        if self.variant.precision == "fp32":
            return "In FP32 no module is rounded, so there is nothing to map: choose another precision."
        return None

    def name(self) -> str:
        """The variant in words, e.g. `BF16, attention+qkv, static KV`."""
        return title_of(self.variant)


def _without_prompt(workload: Workload) -> Workload:
    return msgspec.structs.replace(workload, prompt=None)


def ordered(names: Iterable[str], order: Sequence[str]) -> tuple[str, ...]:
    """Names in the order of the capabilities, unknown ones last."""
    place = {name: index for index, name in enumerate(order)}
    return tuple(sorted(names, key=lambda name: (place.get(name, len(place)), name)))


def lever_reason(lever: LeverInfo, kind: WorkloadKind) -> str | None:
    """Why this choice cannot be made for this workload, or None."""
    if lever.unavailable_reason is not None:
        return lever.unavailable_reason
    if kind not in lever.workloads:
        return _OTHER_WORKLOAD.format(title=lever.title, workloads=_listed(lever.workloads))
    return None


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def levers_of(capabilities: Capabilities | None, group: str) -> tuple[LeverInfo, ...]:
    """The choices of one group."""
    return () if capabilities is None else tuple(lever for lever in capabilities.levers if lever.group == group)


def choices(capabilities: Capabilities | None, group: str, state: SetupState) -> tuple[Choice, ...]:
    """The choices of one lever group with what is chosen, what differs from the baseline, and what is unavailable."""
    kind = state.workload.kind
    made = []
    for lever in levers_of(capabilities, group):
        chosen, base = _is_on(lever, state.variant), _is_on(lever, state.baseline)
        reason = lever_reason(lever, kind)
        if group == "kv_cache" and kind in ("train", "prefill"):
            reason = _KV_UNUSED.format(workload=kind)
        tip = lever.summary if lever.warning is None else f"{lever.summary} {lever.warning}"
        made.append(
            Choice(
                name=lever.name,
                title=lever.title,
                tip=tip,
                reason=reason,
                warning=lever.warning,
                chosen=chosen,
                differs=chosen != base and reason is None,
            )
        )
    return tuple(made)


def _is_on(lever: LeverInfo, variant: Variant) -> bool:
    if lever.group == "precision":
        return variant.precision == lever.name
    if lever.group in ("kv_cache", "pruning", "speculation"):
        return bool(getattr(variant, lever.group) == lever.name)
    return lever.name in variant.fusions or ("all" in variant.fusions and lever.name != COMPILE)


def effective(variant: Variant, kind: WorkloadKind, capabilities: Capabilities | None) -> Variant:
    """The variant without levers that cannot be used here or for this workload, and without settings of other levers.

    The precision stays as it is: leaving it out silently would change what is asked.
    """
    fusions = levers_of(capabilities, "fusion")
    usable = {lever.name for lever in fusions if lever_reason(lever, kind) is None}
    known = {lever.name for lever in fusions}
    kept = tuple(name for name in variant.fusions if name == "all" or name in usable or name not in known)
    left = {group: _usable(getattr(variant, group), group, kind, capabilities) for group in ("pruning", "speculation")}
    cut = msgspec.structs.replace(variant, fusions=kept, **left)
    return msgspec.structs.replace(cut, options=active_options(cut))


def _usable(name: str, group: str, kind: WorkloadKind, capabilities: Capabilities | None) -> str:
    lever = next((lever for lever in levers_of(capabilities, group) if lever.name == name), None)
    return "none" if lever is not None and lever_reason(lever, kind) is not None else name


def all_fusions(capabilities: Capabilities | None, kind: WorkloadKind) -> tuple[str, ...]:
    """Every available fusion except compile."""
    fusions = levers_of(capabilities, "fusion")
    return tuple(f.name for f in fusions if f.name != COMPILE and lever_reason(f, kind) is None)


def differences(variant: Variant, baseline: Variant, fusion_names: Sequence[str]) -> tuple[str, ...]:
    """Names of the levers in which two variants differ; settings count with the lever that they belong to."""
    ours, theirs = active_options(variant), active_options(baseline)

    def differs(field: str) -> bool:
        name, other = getattr(variant, field), getattr(baseline, field)
        return bool(name != other or ours.get(name, {}) != theirs.get(other, {}))

    found = [field for field in ("precision",) if differs(field)]
    known = {*fusion_names, *variant.fusions, *baseline.fusions} - {"all"}
    for name in ordered(known, fusion_names):
        on = _has(variant, name)
        if on != _has(baseline, name) or (on and ours.get(name, {}) != theirs.get(name, {})):
            found.append(name)
    found += [field for field in ("kv_cache", "pruning", "speculation") if differs(field)]
    found += [field for field in ("model", "threads") if getattr(variant, field) != getattr(baseline, field)]
    return tuple(found)


def _has(variant: Variant, fusion: str) -> bool:
    return fusion in variant.fusions or ("all" in variant.fusions and fusion != COMPILE)


def differs_sentence(state: SetupState, fusion_names: Sequence[str]) -> str:
    """`6 levers differ from FP32 plain`."""
    base = state.baseline_name or title_of(state.baseline)
    count = len(differences(state.variant, state.baseline, fusion_names))
    if count == 0:
        return f"Same as the baseline, {base}"
    return f"{count} lever{'s differ' if count > 1 else ' differs'} from {base}"


@dataclass(frozen=True)
class ModelFacts:
    """The four short lines under the model picker."""

    shape: str
    parameters: str
    weights: str
    kv: str
    notes: tuple[str, ...] = ()


def model_facts(model: ModelInfo, precision: str, weights: float | None, kv_per_token: float | None) -> ModelFacts:
    """Family and layers, parameters, size at this precision, KV bytes per token."""
    millions = fmt.number(model.parameters / 1e6)
    kv = fmt.quantity(kv_per_token, "bytes") + " per token" if kv_per_token is not None else fmt.unknown()
    size = fmt.quantity(weights, "bytes") if weights is not None else fmt.unknown()
    return ModelFacts(
        shape=f"{family_title(model.family)}, {model.n_layer} layers",
        parameters=f"{millions} M parameters"
        if model.parameters < 1e9
        else f"{fmt.number(model.parameters / 1e9)} B parameters",
        weights=f"{size} in {precision_title(precision)}",
        kv=f"KV {kv}",
        notes=model.notes,
    )


_FAMILIES = {
    "gpt2": "GPT-2",
    "gpt_neox": "GPT-NeoX",
    "llama": "Llama",
    "mistral": "Mistral",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
}


def family_title(family: str) -> str:
    """The family as people write it."""
    return _FAMILIES.get(family, family)
