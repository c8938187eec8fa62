"""torch.compile, a few layers at a time: all regions share one piece of code, so a deep model compiles no longer."""

import uuid
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from gptscope.models.fusion.attention import FusedAttention
from gptscope.models.fusion.lever import Fusion, blocks_of, replace_modules
from gptscope.models.fusion.linear import row_linear
from gptscope.models.gpt import GPT, Attention, Block, Mask, Rope
from gptscope.models.kv_cache import AnyCache
from gptscope.models.levers import Evidence, LeverContext, LeverOption, ProfileFacts

MOST_LAYERS = 8
"""A region's call costs Python time, so several layers share one; its compilation takes longer with each of them."""
MODES = ("default", "max-autotune-no-cudagraphs", "reduce-overhead", "max-autotune")
CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")
OPTIONS: dict[str, str | int | bool | Callable[..., object]] = {
    "cpp.enable_kernel_profile": True,  # generated kernels show in a profile by name
    # Layers do not change once they are prepared; asking whether they did takes longer than a small kernel.
    "guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe,
    "size_asserts": False,  # checks of what the guards have checked already, at every call of every kernel
    "alignment_asserts": False,
    "scalar_asserts": False,
}


class CompiledLayers(nn.Module):
    """Consecutive layers whose forward is compiled as one region; takes the place of a layer.

    Inside, layers are numbered from 0 and see only their part of the cache, so that all regions are the same code.
    """

    def __init__(self, layers: Sequence[Block], first: int, model_key: str, mode: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.first = first
        self.model_key = model_key
        for number, layer in enumerate(layers):
            attention = layer.attn
            assert isinstance(attention, Attention | FusedAttention)
            attention.layer = number
        self.compiled = torch.compile(self._run, options=options_of(mode))

    def _run(self, model_key: str, x_BLD: Tensor, rope: Rope | None, mask: Mask, cache: AnyCache | None) -> Tensor:
        assert model_key  # torch.compile guards what is read: one model never runs another one's code
        for layer in self.layers:
            x_BLD = layer(x_BLD, rope, mask, cache)
        return x_BLD

    def forward(self, x_BLD: Tensor, rope: Rope | None, mask: Mask, cache: AnyCache | None) -> Tensor:
        if cache is None:
            return self.compiled(self.model_key, x_BLD, rope, mask, None)
        return self.compiled(self.model_key, x_BLD, rope, mask, cache.part(self.first, len(self.layers)))


def options_of(mode: str) -> dict[str, str | int | bool | Callable[..., object]]:
    """Our options and those that a mode stands for; torch.compile takes either a mode or options."""
    from torch._inductor import list_mode_options

    return {**list_mode_options(mode), **OPTIONS}


def region_size(n_layer: int, most: int = MOST_LAYERS) -> int:
    """Layers per region: the largest divisor of `n_layer` up to `most`, so that all regions are alike."""
    return max(size for size in range(1, most + 1) if n_layer % size == 0)


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
        "Traces the layers and generates fused kernels for everything between the large products, which also saves "
        "most of Python's time. Costs seconds to minutes before the first step."
    )
    part_of_all = False
    options = (
        LeverOption(
            name="mode",
            title="mode",
            kind="choice",
            choices=MODES,
            default="default",
            summary="max-autotune times several kernels for each product and takes the quickest, and compiles longer; "
            "reduce-overhead replays CUDA graphs and needs a GPU, as does max-autotune without `-no-cudagraphs`.",
        ),
        LeverOption(
            name="layers",
            title="layers per region",
            kind="whole",
            default=MOST_LAYERS,
            least=1,
            most=64,
            summary="At most so many layers are compiled as one piece: more of them run quicker and compile longer.",
        ),
    )

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.machine.device == "cpu" and context.machine.compiler is None:
            return (
                "torch.compile needs a working C++ compiler, and none was found. Install one, e.g. the package g++ "
                "(Debian, Ubuntu) or the Xcode command line tools (macOS)."
            )
        if context.machine.device == "cuda" and find_spec("triton") is None:
            return "torch.compile needs Triton to generate kernels for a GPU, and it is not installed."
        mode = self.settings(context)["mode"]
        if context.machine.device == "cpu" and mode in CUDA_GRAPH_MODES:
            return f"The mode {mode} replays CUDA graphs, which a CPU does not have. Take {' or '.join(MODES[:2])}."
        return None

    def apply(self, model: GPT, context: LeverContext) -> None:
        import torch._dynamo.config as dynamo
        import torch._inductor.config as inductor

        inductor.compile_threads = 1  # no pool of compiler processes that could outlive the worker
        dynamo.recompile_limit = 32  # past it code runs uncompiled; quality checks bring texts of other sizes
        if not context.training:
            replace_modules(model, lambda module: row_linear(module) if type(module) is nn.Linear else None)
        layers = blocks_of(model)
        values = self.settings(context)
        size = region_size(len(layers), int(values["layers"]))
        model_key = uuid.uuid4().hex
        model.blocks = nn.ModuleList(
            CompiledLayers(layers[first : first + size], first, model_key, str(values["mode"]))
            for first in range(0, len(layers), size)
        )

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        mode = self.settings(context)["mode"]
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
        how = "" if mode == "default" else f", mode {mode}"
        return self.shown(f"{generated:.0f} generated kernels per step {source}{how}.")


def _is_generated(name: str) -> bool:
    return "cpp_fused" in name or name.startswith("triton_")
