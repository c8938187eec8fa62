"""The kernel of a product is the one that is quickest here."""

import time
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from gptscope.models.fusion import kernel_choice
from gptscope.models.fusion.linear import RowLinear
from gptscope.models.prepare import PreparedModel


class Slow(nn.Module):
    """A product that waits first."""

    def __init__(self, linear: nn.Linear, seconds: float) -> None:
        super().__init__()
        self.linear, self.seconds = linear, seconds

    def forward(self, x_RD: Tensor) -> Tensor:
        time.sleep(self.seconds)
        return self.linear(x_RD)


@pytest.fixture
def quickest(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    monkeypatch.setitem(kernel_choice._KERNELS, "slow", lambda linear, rows: Slow(linear, 0.002))
    monkeypatch.setitem(kernel_choice._KERNELS, "slower", lambda linear, rows: Slow(linear, 0.02))
    kernel_choice.quickest.cache_clear()
    yield kernel_choice.quickest
    kernel_choice.quickest.cache_clear()


def test_the_quickest_kernel_wins_whatever_the_order(quickest: Callable[..., str]) -> None:
    for names in (("plain", "slow", "slower"), ("slower", "slow", "plain")):
        assert quickest(names, 1024, 1024, torch.float32, 1) == "plain"
    assert quickest(("slower", "slow"), 1024, 1024, torch.float32, 64) == "slow"


def test_a_draw_goes_to_the_earlier_kernel(quickest: Callable[..., str]) -> None:
    kernel_choice._KERNELS["twin"] = kernel_choice._KERNELS["slow"]
    try:
        assert quickest(("slow", "twin"), 512, 512, torch.float32, 1) == "slow"
    finally:
        del kernel_choice._KERNELS["twin"]


def test_every_kernel_computes_the_same_product() -> None:
    linear = nn.Linear(96, 64).requires_grad_(requires_grad=False)
    x_RD = torch.randn(1, 96)
    for name, make in kernel_choice._KERNELS.items():
        if name != "mkl" or torch.backends.mkl.is_available():
            assert torch.allclose(make(linear, 1)(x_RD), linear(x_RD), atol=1e-5), name


@pytest.mark.parametrize("winner", ["plain", "row"])
def test_fused_layers_use_the_matrix_vector_kernel_only_where_it_is_quicker(
    winner: str, prepared: Callable[..., PreparedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_choice, "quickest", lambda *_question: winner)
    layers = [
        layer
        for layer in prepared("llama", "qkv", "mlp", precision="bf16").model.modules()
        if isinstance(layer, RowLinear)
    ]
    assert layers
    assert {layer.by_rows for layer in layers} == {winner == "row"}
    in_fp32 = prepared("llama", "qkv").model.modules()
    assert not any(layer.by_rows for layer in in_fp32 if isinstance(layer, RowLinear)), "only BF16 has that kernel"
