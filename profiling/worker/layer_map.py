"""The layer map: what each module of a variant costs in output and saves in time while all others stay FP32.

Works for every recipe alike: the variant's model is made once more without fusions, so that each of its modules has
the same inputs and outputs as its twin in an FP32 copy, and takes that twin's place, one at a time.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext
from gptscope.models.quantization.sensitivity import Walk
from gptscope.profiling.experiment import Workload
from gptscope.profiling.records import LayerErrors, ModuleError
from gptscope.profiling.worker.copies import ModelCopies
from gptscope.profiling.worker.module_pairs import Pair, captured, find_pairs, swapped, time_pairs
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.signal_error import centred, mean_cosine, mean_kl, sqnr_db

MOST_FLOPS = 6e12
"""Of the whole map, some ten seconds to a minute on a desktop's CPU: decides how much text is read."""
LEAST_TOKENS, MOST_TOKENS = 64, 2048
PIECE_TOKENS = 128
REFERENCE = "the same model in FP32, unfused"


@dataclass(frozen=True, slots=True)
class MapRequest:
    """What is mapped."""

    run_id: str
    baseline_run_id: str
    context: LeverContext
    """The variant's levers."""
    work: Workload
    """Decides how many rows are timed."""
    text: Tensor
    """Token ids to read, `[N]`."""
    source: str
    """Which text that is, for people."""


def map_layers(request: MapRequest, copies: ModelCopies, output: Output) -> None:
    """Make the two copies, compare and time them module by module, and send `LayerErrors`.

    Raises:
        NotEnoughMemoryError: The copies do not fit beside the loaded model.
    """
    begun_s = time.monotonic()
    output.progress("evaluate", 0, 0, note="loading the model twice more for the layer map")
    asked = request.context
    assert asked.config is not None
    copies.check_room(asked.config, 2, "The layer map")
    unfused = replace(asked, fusions=frozenset(), kv_cache="none", speculation="none")
    candidate = copies.make(unfused)
    reference = copies.make(replace(unfused, precision="fp32", pruning="none", options={}))
    with torch.inference_mode():
        pairs = find_pairs(reference.model, candidate.model)
        tokens_NL = pieces(request.text, len(pairs), asked.config.parameter_count, asked.config.context_length)
        tokens_NL = tokens_NL.to(reference.device)
        rows = request.work.batch * (request.work.context if request.work.kind == "prefill" else 1)
        output.progress("evaluate", 0, len(pairs), "modules", "timing each module")
        times = time_pairs(reference, pairs, rows)
        modules = tuple(module_errors(reference.model, pairs, tokens_NL, times, output))
        both = Walk(reference.model, tokens_NL), Walk(candidate.model, tokens_NL)
        last = len(reference.model.blocks)
        kl_all = mean_kl(both[0].log_probabilities(last), both[1].log_probabilities(last))
        stream = tuple(sqnr_db(a, b) for a, b in zip(both[0].into[1:], both[1].into[1:], strict=True))
    output.emit(
        LayerErrors(
            run_id=request.run_id,
            baseline_run_id=request.baseline_run_id,
            modules=modules,
            stream_sqnr_db=stream,
            tokens=tokens_NL.numel(),
            timed_tokens=rows,
            kl_all=kl_all,
            reference=REFERENCE,
            text=request.source,
            seconds=time.monotonic() - begun_s,
        )
    )


def pieces(text: Tensor, modules: int, parameters: int, context_length: int) -> Tensor:
    """The beginning of the text as pieces of equal length, `[N, L]`, as long as `MOST_FLOPS` allows."""
    affordable = int(MOST_FLOPS / (2 * parameters * max(modules, 1) * 0.5))  # half of the layers, on average
    wanted = min(max(affordable, LEAST_TOKENS), MOST_TOKENS, len(text))
    length = min(PIECE_TOKENS, context_length, wanted)
    count = max(1, wanted // length)
    return text[: count * length].view(count, length)


def module_errors(
    reference: GPT,
    pairs: Sequence[Pair],
    tokens_NL: Tensor,
    times: Mapping[str, tuple[float, float]],
    output: Output,
) -> Iterator[ModuleError]:
    """Put each of the candidate's modules into the reference alone and compare outputs.

    Args:
        reference: Unchanged afterwards.
        pairs: The modules.
        tokens_NL: Text to read.
        times: Path -> microseconds of both modules.
        output: Progress goes there.
    """
    with captured(reference, [pair.path for pair in pairs]) as seen:
        walk = Walk(reference, tokens_NL)
        exact = walk.log_probabilities(len(reference.blocks))
    inputs = dict(seen)
    for number, pair in enumerate(pairs):
        output.progress("evaluate", number, len(pairs), "modules", f"{pair.path} alone")
        with swapped(reference, pair), captured(reference, [pair.path]) as now:
            if pair.path == "embed":
                changed = Walk(reference, tokens_NL).log_probabilities(len(reference.blocks))
            else:
                changed = walk.log_probabilities(len(reference.blocks) if pair.layer is None else pair.layer)
        ours, theirs = inputs[pair.path][1], now[pair.path][1]
        yield ModuleError(
            module=pair.path,
            layer=pair.layer,
            part=pair.part,
            parameters=sum(parameter.numel() for parameter in pair.reference.parameters()),
            kl_mean=mean_kl(exact, changed),
            logit_sqnr_db=sqnr_db(centred(exact), centred(changed)),
            output_sqnr_db=sqnr_db(ours, theirs),
            output_cosine=mean_cosine(ours, theirs),
            reference_us=times[pair.path][0],
            candidate_us=times[pair.path][1],
        )
    output.progress("evaluate", len(pairs), len(pairs), "modules")
