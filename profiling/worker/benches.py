"""Which bench runs a workload."""

from torch import Tensor

from gptscope.models.prepare import PreparedModel
from gptscope.profiling.experiment import Workload
from gptscope.profiling.worker.speculative import SpeculativeBench
from gptscope.profiling.worker.steps import DecodeBench, PrefillBench, TrainBench, Workbench
from gptscope.profiling.worker.texts import FirstSequenceText, TokenSource


def make_bench(
    prepared: PreparedModel, work: Workload, source: TokenSource, prompts_BL: Tensor, stream: FirstSequenceText | None
) -> Workbench:
    """The bench for a workload.

    Args:
        prepared: The model with its levers.
        work: What to compute.
        source: Training batches.
        prompts_BL: What prefill, decode and generate read.
        stream: Shows generated text; None: no text.
    """
    if work.kind == "train":
        return TrainBench(prepared, work, source)
    if work.kind == "prefill":
        return PrefillBench(prepared, work, prompts_BL)
    if prepared.context.speculation != "none":
        return SpeculativeBench(prepared, work, prompts_BL, stream)
    return DecodeBench(prepared, work, prompts_BL, stream)
