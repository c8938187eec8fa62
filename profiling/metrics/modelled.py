"""Modelled FLOPs and bytes of the steps that were really measured, each at its own context length."""

from collections.abc import Sequence

import msgspec
import numpy as np

from gptscope.profiling.experiment import Workload
from gptscope.profiling.metrics.bytes_model import StepBytes, ValueSizes, step_bytes, value_sizes
from gptscope.profiling.metrics.flops_model import step_flops
from gptscope.profiling.metrics.model_ops import ModelShape, shape_of
from gptscope.profiling.metrics.slices import Ints, Slice, Steps, joined
from gptscope.profiling.records import ModelInfo, StepKind


class ModelledWork(msgspec.Struct, frozen=True, kw_only=True):
    """What the measured steps had to do."""

    flops: float
    bytes: float
    step: StepBytes
    """Bytes of a typical step: at the median context."""
    typical_context: int


class CostModel:
    """FLOPs and bytes of one variant's steps; remembers each context length it was asked about."""

    def __init__(self, info: ModelInfo, *, precision: str, kv_cache: str, batch: int) -> None:
        """Raise `ValueError` when the precision's sizes are not known."""
        self.shape: ModelShape = shape_of(info)
        self.sizes: ValueSizes = value_sizes(
            precision=precision,
            parameters=info.parameters,
            weight_bytes=info.weight_bytes,
            kv_bytes_per_token=info.kv_bytes_per_token,
            shape=self.shape,
            activation_bytes=info.activation_bytes,
            read_weight_bytes=info.read_weight_bytes,
        )
        self.kv_cache, self.batch = kv_cache, batch
        self._known: dict[tuple[StepKind, int], tuple[float, StepBytes]] = {}

    def step(self, kind: StepKind, context: int) -> tuple[float, StepBytes]:
        """FLOPs and bytes of one step."""
        key = (kind, context)
        if key not in self._known:
            flops = step_flops(self.shape, kind, batch=self.batch, context=context, kv_cache=self.kv_cache)
            moved = step_bytes(self.shape, kind, self.sizes, batch=self.batch, context=context, kv_cache=self.kv_cache)
            self._known[key] = (float(flops), moved)
        return self._known[key]

    def work(self, slices: Sequence[Slice], kind: StepKind, workload: Workload) -> ModelledWork | None:
        """Add up all steps of one kind in the given slices; None when there are none."""
        steps = joined(slices, kind)
        if not steps.count:
            return None
        contexts = np.concatenate([_contexts(one.steps(kind), kind, workload) for one in slices])
        lengths, counts = np.unique(contexts, return_counts=True)
        costs = [self.step(kind, int(length)) for length in lengths]
        typical = int(np.median(contexts))
        return ModelledWork(
            flops=float(sum(n * flops for n, (flops, _) in zip(counts, costs, strict=True))) * _rows(steps, self.batch),
            bytes=float(sum(n * moved.total for n, (_, moved) in zip(counts, costs, strict=True))),
            step=self.step(kind, typical)[1],
            typical_context=typical,
        )


def _rows(steps: Steps, batch: int) -> float:
    """Rows that went through the products per row of a plain step: guesses are checked beside the last token."""
    return 1.0 + float(steps.drafted.mean()) / batch if steps.drafted.size else 1.0


def _contexts(steps: Steps, kind: StepKind, workload: Workload) -> Ints:
    """Tokens per sequence that took part in each step.

    Prefill and training say it by their tokens. A decode step says it in `context`; a worker that did not is taken at
    its word about the workload: the prompt plus the tokens so far.
    """
    if kind != "decode":
        return np.maximum(1, steps.tokens // workload.batch)
    if steps.context.size:
        return steps.context
    return workload.context + 1 + np.arange(steps.count)
