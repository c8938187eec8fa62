"""torch.compile: one region for all layers alike, compiled once, with the same result, and proven by a profile."""

from collections.abc import Callable

import pytest
import torch

from gptscope.models.decoding.session import DecodeSession
from gptscope.models.fusion import FUSIONS
from gptscope.models.fusion.compile import CUDA_GRAPH_MODES, MODES, OPTIONS, options_of, region_size
from gptscope.models.levers import Evidence, KernelFact, LeverContext, LeverError, Machine, ProfileFacts
from gptscope.models.prepare import PreparedModel
from gptscope.models.training import TrainStep

Prepare = Callable[..., PreparedModel]
ONE_LAYER = {"compile": {"layers": 1}}
pytestmark = pytest.mark.filterwarnings(
    # torch's compiler itself uses what torch has deprecated, and looks at the gradient of a region's input
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning",
)


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> None:
    torch._dynamo.reset()


@pytest.fixture
def trace_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace and guard as torch.compile does, but generate no code, which takes most of the time."""
    compile_really = torch.compile

    def trace(function: Callable[..., torch.Tensor], options: dict[str, object]) -> Callable[..., torch.Tensor]:
        kept = {"guard_filter_fn": options["guard_filter_fn"]}
        return compile_really(function, backend="aot_eager", options=kept)

    monkeypatch.setattr("torch.compile", trace)


@pytest.fixture(scope="session")
def compiler() -> None:
    """Skips where inductor finds no C++ compiler."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except (InvalidCxxCompiler, RuntimeError):
        pytest.skip("no C++ compiler on this machine")


def greedy(model: PreparedModel, text_BL: torch.Tensor, steps: int) -> tuple[torch.Tensor, list[int]]:
    """Tokens, and the number of compiled regions after each step; the last step fills the cache to its end."""
    session = DecodeSession(model, text_BL.shape[0], text_BL.shape[1] + steps - 1)
    tokens, regions = [session.prefill(text_BL)], [model.regions]
    for _ in range(steps - 1):
        tokens.append(session.step())
        regions.append(model.regions)
    return torch.stack(tokens, dim=1), regions


@pytest.mark.usefixtures("trace_only")
@pytest.mark.parametrize(
    ("kv_cache", "first_run"),
    [
        ("static", [1] + [2] * 7),  # the prefill, and every decode step
        ("dynamic", [1, 2] + [3] * 6),  # the prompt's keys lie otherwise in memory than concatenated ones
        ("none", [1] + [2] * 7),  # the length becomes a variable when it first changes
    ],
)
def test_decoding_stops_compiling_after_the_first_steps(
    kv_cache: str, first_run: list[int], prepared: Prepare, text_BL: torch.Tensor
) -> None:
    expected, _ = greedy(prepared("llama", kv_cache=kv_cache), text_BL, 8)
    for fusions in ((), ("attention", "qkv", "mlp", "norm")):
        torch._dynamo.reset()
        model = prepared("llama", *fusions, "compile", kv_cache=kv_cache)
        assert model.regions == 0
        found, regions = greedy(model, text_BL, 8)
        assert torch.equal(found, expected)
        assert regions == first_run
        assert model.graph_breaks == 0
        assert model.compile_s > 0
        again, regions = greedy(model, text_BL, 8)
        assert torch.equal(again, expected)
        assert regions == [first_run[-1]] * 8, "a second prompt compiles nothing"


@pytest.mark.usefixtures("trace_only")
def test_all_layers_share_one_region(prepared: Prepare, text_BL: torch.Tensor) -> None:
    model = prepared("llama", "compile", kv_cache="static", options=ONE_LAYER)
    assert len(model.model.blocks) == 2
    _, regions = greedy(model, text_BL, 4)
    assert regions[-1] == 2, "not four: the second layer runs the first one's code"


@pytest.mark.usefixtures("trace_only")
def test_models_of_the_same_sizes_never_run_each_others_code(prepared: Prepare, text_BL: torch.Tensor) -> None:
    for name in ("llama", "llama3", "qwen2"):  # they differ in things that no tensor's shape shows
        for fusions in ((), ("mlp",), ("attention", "qkv")):
            compiled = prepared(name, *fusions, "compile")
            assert (compiled.logits(text_BL) - prepared(name).logits(text_BL)).abs().max() < 1e-4, (name, fusions)
            assert compiled.regions == 1


@pytest.mark.usefixtures("trace_only", "pack_everything")
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_packed_weights_take_part_in_the_shared_region(family: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    fusions = ("attention", "qkv", "mlp", "norm", "packed_linear")
    expected, _ = greedy(prepared(family, kv_cache="static"), text_BL, 6)
    found, regions = greedy(prepared(family, *fusions, "compile", kv_cache="static", options=ONE_LAYER), text_BL, 6)
    assert torch.equal(found, expected)
    assert regions[-1] == 2, "the second layer runs the first one's code, with its own weights"


@pytest.mark.usefixtures("trace_only")
@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3"])
def test_a_compiled_training_step_learns_the_same(family: str, prepared: Prepare, text_BL: torch.Tensor) -> None:
    plain = TrainStep(prepared(family, workload="train"), lr=1e-3)
    model = prepared(family, "compile", workload="train")
    compiled = TrainStep(model, lr=1e-3)
    expected = [plain(text_BL).item() for _ in range(3)]
    assert [compiled(text_BL).item() for _ in range(3)] == pytest.approx(expected, abs=1e-4)
    assert (model.regions, model.graph_breaks) == (1, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_generated_code_decodes_the_same_and_shows_in_a_profile(
    prepared: Prepare, text_BL: torch.Tensor, judge: Callable[..., dict[str, Evidence]]
) -> None:
    fusions = ("attention", "qkv", "mlp", "norm")
    model = prepared("llama", *fusions, "compile", precision="bf16", kv_cache="static")
    evidence = judge(model, modules=False)
    assert evidence["compile"].in_effect, evidence["compile"]
    assert {evidence[name].in_effect for name in ("bf16", "attention", "qkv", "mlp", "static")} == {True}
    assert evidence["norm"].in_effect is None, "generated code has no norm of its own"
    expected = prepared("llama", *fusions, precision="bf16", kv_cache="static")
    for session in (sessions := [DecodeSession(one, 1, 32) for one in (expected, model)]):
        session.prefill(text_BL[:1])
        session.step()
    close = torch.cosine_similarity(sessions[0].logits_BV.float(), sessions[1].logits_BV.float())
    assert close.item() > 0.999


@pytest.mark.parametrize("mode", MODES)
def test_modes_are_turned_into_options_beside_ours(mode: str) -> None:
    options = options_of(mode)
    assert options.items() >= OPTIONS.items()
    assert options.get("max_autotune", False) == mode.startswith("max-autotune")
    assert options.get("triton.cudagraphs", False) == (mode in CUDA_GRAPH_MODES)


@pytest.mark.parametrize("mode", CUDA_GRAPH_MODES)
def test_modes_that_need_a_gpu_are_refused_on_a_cpu(mode: str, prepared: Prepare) -> None:
    with pytest.raises(LeverError, match=f"The mode {mode} replays CUDA graphs, which a CPU does not have"):
        prepared("llama", "compile", options={"compile": {"mode": mode}})


@pytest.mark.usefixtures("trace_only")
def test_a_place_that_cannot_be_traced_is_counted_as_a_break(prepared: Prepare, text_BL: torch.Tensor) -> None:
    model = prepared("llama", "compile")
    for layers in model.model.blocks:
        for layer in layers.layers:
            layer.mlp = Untraceable(layer.mlp)
    model.logits(text_BL)
    assert model.graph_breaks > 0


class Untraceable(torch.nn.Module):
    """Leaves the compiled code in its middle."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return self.inner(x)


@pytest.mark.parametrize(("layers", "size"), [(1, 1), (2, 2), (12, 6), (22, 2), (24, 8), (30, 6), (31, 1), (36, 6)])
def test_regions_are_all_of_one_size(layers: int, size: int) -> None:
    assert region_size(layers) == size


@pytest.mark.parametrize(
    ("kernels", "regions", "in_effect"),
    [
        ([KernelFact(name="graph_1_cpp_fused_add_mul_3", calls=6, self_time_us=1)], 2.0, True),
        ([KernelFact(name="triton_poi_fused_add_0", calls=6, self_time_us=1)], 1.0, True),
        ([KernelFact(name="aten::mm", calls=6, self_time_us=1)], 2.0, False),
        ([], 0.0, False),
    ],
)
def test_evidence_is_generated_kernels_that_ran(
    kernels: list[KernelFact], regions: float, in_effect: bool, machine: Machine
) -> None:
    context = LeverContext(machine=machine, config=None, workload="decode", precision="fp32")
    counters = {"compiled_regions": regions, "graph_breaks": 0.0}
    facts = ProfileFacts(kernels=kernels, steps=2, n_layer=2, workload="decode", device="cpu", counters=counters)
    assert FUSIONS["compile"].evidence(facts, context).in_effect is in_effect
