"""torch.compile, layer by layer: all layers share one piece of generated code, so a deep model compiles no longer."""

from importlib.util import find_spec

import torch
from torch import Tensor, nn

from gptscope.models.fusion.attention import FusedAttention
from gptscope.models.fusion.lever import Fusion, blocks_of, replace_modules
from gptscope.models.fusion.linear import row_linear
from gptscope.models.gpt import GPT, Attention, Block, Mask, Rope
from gptscope.models.kv_cache import AnyCache, DynamicLayer
from gptscope.models.levers import Evidence, LeverContext, ProfileFacts


class CompiledBlock(nn.Module):
    """A layer whose forward is compiled.

    Inside, every layer is layer 0 of a cache of its own: a layer number in the code would make each layer different.
    """

    def __init__(self, block: Block, layer: int) -> None:
        super().__init__()
        self.block = block
        self.layer = layer
        attention = block.attn
        assert isinstance(attention, Attention | FusedAttention)
        attention.layer = 0
        # With kernel profiling the generated kernels show in a profile by name.
        self.compiled = torch.compile(block, options={"cpp.enable_kernel_profile": True})

    def forward(self, x_BLD: Tensor, rope: Rope | None, mask: Mask, cache: AnyCache | None) -> Tensor:
        if cache is None:
            return self.compiled(x_BLD, rope, mask, None)
        own = cache.only(self.layer)
        if isinstance(own, DynamicLayer) and own.keys is not None and own.values is not None:
            # Tell in advance what grows, or the second step would compile once more.
            torch._dynamo.maybe_mark_dynamic(own.keys, 2)  # noqa: SLF001  the documented place of this function
            torch._dynamo.maybe_mark_dynamic(own.values, 2)  # noqa: SLF001
        return self.compiled(x_BLD, rope, mask, own)


class CompileWatch:
    """What torch.compile has done since this object was made (its counters are process-wide)."""

    def __init__(self) -> None:
        self._before = self._read()

    def since(self) -> tuple[float, int, int]:
        """Return seconds spent compiling, graph breaks, and compiled regions (pieces of code with a graph)."""
        now = self._read()
        return now[0] - self._before[0], now[1] - self._before[1], now[2] - self._before[2]

    @staticmethod
    def _read() -> tuple[float, int, int]:
        from torch._dynamo import utils

        times = utils.calculate_time_spent()
        seconds = sum(times.get(name, 0.0) for name in ("entire_frame_compile", "entire_backward_compile"))
        return seconds, sum(utils.counters["graph_break"].values()), utils.counters["stats"]["unique_graphs"]


class Compile(Fusion):
    """Graph compilation."""

    name = "compile"
    title = "torch.compile"
    summary = (
        "Traces a layer and generates fused kernels for everything between the large products, which removes most of "
        "Python's time. Costs seconds to minutes before the first step."
    )
    part_of_all = False

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.machine.device == "cpu" and context.machine.compiler is None:
            return (
                "torch.compile needs a working C++ compiler, and none was found. Install one, e.g. the package g++ "
                "(Debian, Ubuntu) or the Xcode command line tools (macOS)."
            )
        if context.machine.device == "cuda" and find_spec("triton") is None:
            return "torch.compile needs Triton to generate kernels for a GPU, and it is not installed."
        return None

    def apply(self, model: GPT, context: LeverContext) -> None:
        import torch._inductor.config as inductor

        inductor.compile_threads = 1  # no pool of compiler processes that could outlive the worker
        if not context.training:
            replace_modules(model, lambda module: row_linear(module) if type(module) is nn.Linear else None)
        for layer, block in enumerate(blocks_of(model)):
            model.blocks[layer] = CompiledBlock(block, layer)

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        regions = facts.counters.get("compiled_regions", 0.0)
        generated = facts.calls_per_step(lambda kernel: _is_generated(kernel.name))
        if not regions:
            return self.not_shown("torch.compile has compiled nothing.")
        if not generated:
            return self.not_shown(
                f"{regions:.0f} regions were compiled, but no generated kernel ran in the profiled steps."
            )
        breaks = facts.counters.get("graph_breaks", 0.0)
        source = f"from {regions:.0f} compiled regions, {breaks:.0f} graph breaks"
        return self.shown(f"{generated:.0f} generated kernels per step {source}.")


def _is_generated(name: str) -> bool:
    return "cpp_fused" in name or name.startswith("triton_")
