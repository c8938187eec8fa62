"""Ranges: what each method takes for the largest magnitude."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from gptscope.models.levers import LeverError
from gptscope.models.quantization.integers import scale_of, to_int8
from gptscope.models.quantization.ranges import ACTIVATION_METHODS, Histogram, weight_limits
from gptscope.models.quantization.ranges_file import InputRange, Ranges, load_ranges, save_ranges


def squared_error(x: torch.Tensor, limit: float) -> float:
    scale = scale_of(torch.tensor(limit))
    return float((to_int8(x, scale).float() * scale - x).square().sum())


@pytest.fixture(scope="module")
def outliers() -> torch.Tensor:
    """A normal distribution of one million, and a few values far outside."""
    x = torch.randn(1_000_000, generator=torch.Generator().manual_seed(1))
    x[:20] = torch.linspace(50, 60, 20)
    return x


def histogram_of(x: torch.Tensor, pieces: int = 7) -> Histogram:
    histogram = Histogram()
    for piece in x.tensor_split(pieces):
        histogram.add(piece)
    return histogram


def test_a_histogram_counts_every_value_however_large_later_pieces_are(outliers: torch.Tensor) -> None:
    ordered = outliers.abs().sort().values
    histogram = histogram_of(ordered)
    assert histogram.counts.sum() == len(ordered)
    for magnitude in (0.5, 1.0, 3.0, 40.0):
        below = float(histogram.counts[: round(magnitude / histogram.width)].sum())
        assert below == pytest.approx(float((ordered < magnitude).sum()), rel=0.02)


def test_minmax_and_percentile_are_what_they_say(outliers: torch.Tensor) -> None:
    histogram = histogram_of(outliers)
    assert histogram.limit("minmax") == pytest.approx(60.0)
    for percent in (99.0, 99.9):
        true = float(torch.quantile(outliers[::5].abs(), percent / 100))
        assert histogram.limit("percentile", percent) == pytest.approx(true, abs=2 * histogram.width)


def test_mse_takes_the_limit_with_the_least_error(outliers: torch.Tensor) -> None:
    limit = histogram_of(outliers).limit("mse")
    tried = torch.linspace(1.0, 60.0, 60).tolist()
    least = min(squared_error(outliers, one) for one in tried)
    assert squared_error(outliers, limit) <= 1.02 * least
    assert squared_error(outliers, limit) < squared_error(outliers, 60.0)


def test_entropy_clips_rare_values_and_keeps_a_plain_distribution_whole(outliers: torch.Tensor) -> None:
    assert 3.0 < histogram_of(outliers).limit("entropy") < 30.0
    uniform = torch.rand(200_000, generator=torch.Generator().manual_seed(2))
    assert histogram_of(uniform).limit("entropy") > 0.9


@pytest.mark.parametrize("method", ACTIVATION_METHODS)
def test_nothing_seen_but_zeros_has_the_range_zero(method: str) -> None:
    assert histogram_of(torch.zeros(100)).limit(method) == 0.0


def test_each_channel_has_a_limit_of_its_own_unless_the_matrix_shares_one() -> None:
    weight = torch.tensor([[1.0, -2.0], [8.0, 0.5], [0.0, 0.25]])
    assert weight_limits(weight, "minmax", per_channel=True).flatten().tolist() == [2.0, 8.0, 0.25]
    assert weight_limits(weight, "minmax", per_channel=False).flatten().tolist() == [8.0] * 3


@pytest.mark.parametrize("per_channel", [True, False])
def test_clipping_weights_by_squared_error_never_makes_it_larger(per_channel: bool) -> None:
    weight = torch.randn(12, 4000, generator=torch.Generator().manual_seed(3)).pow(3)  # long tails
    errors = {}
    for method in ("minmax", "percentile", "mse"):
        limits = weight_limits(weight, method, per_channel=per_channel, percentile=99.0)
        rows = zip(weight, limits.flatten().tolist(), strict=True)
        errors[method] = torch.tensor([squared_error(row, limit) for row, limit in rows])
    if per_channel:
        assert (errors["mse"] <= errors["minmax"] * 1.0001).all()
    assert errors["mse"].sum() < errors["minmax"].sum()
    percentile = weight_limits(weight, "percentile", per_channel=True, percentile=99.0)
    inside = (weight.abs() <= percentile).float().mean(1)
    assert (inside - 0.99).abs().max() <= 1 / 4000


def example() -> Ranges:
    one = InputRange(limits={"minmax": 3.0, "percentile 99.9": 1.25}, channels=torch.tensor([3.0, 0.5]))
    return Ranges(source="a text", tokens=512, inputs={"blocks.0.attn.qkv": one})


def test_saved_ranges_come_back(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "ranges.json"
    save_ranges(example(), file)
    found = load_ranges(file)
    assert (found.source, found.tokens) == ("a text", 512)
    assert found.limit("blocks.0.attn.qkv", "percentile", "99.9") == 1.25
    assert found.channels("blocks.0.attn.qkv", 2).tolist() == [3.0, 0.5]
    assert list(tmp_path.rglob("*.part")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="uses a named pipe")
def test_a_pipe_or_a_link_for_ranges_is_not_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    save_ranges(example(), pipe)
    assert pipe.is_fifo()
    assert json.loads(os.read(reader, 1 << 16))["source"] == example().source
    os.close(reader)
    link.symlink_to("file")
    save_ranges(example(), link)
    assert link.is_symlink()
    assert load_ranges(tmp_path / "file").source == example().source


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file"),
        ("{", "does not hold activation ranges"),
        ("[1]", "`gptscope calibrate` makes such a file"),
        ('{"format": "gptscope activation ranges 1", "inputs": {"x": {}}}', "are damaged"),
    ],
)
def test_a_file_that_holds_no_ranges_is_refused_in_a_sentence(content: str | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "ranges.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(LeverError, match=says):
        load_ranges(file)


def test_ranges_of_another_model_are_refused() -> None:
    with pytest.raises(LeverError, match="of another model: they do not have lm_head"):
        example().limit("lm_head", "minmax", "99.9")
    with pytest.raises(LeverError, match="2 features there and 64 here"):
        example().channels("blocks.0.attn.qkv", 64)
