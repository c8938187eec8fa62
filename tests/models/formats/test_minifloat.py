"""Every code of every format, against the definitions and against torch's types."""

import itertools
import math
from fractions import Fraction

import pytest
import torch

from gptscope.models.formats import E2M1, E4M3, E5M2, Minifloat
from gptscope.models.formats.minifloat import e8m0_decode, e8m0_round

FP8 = [E4M3, E5M2]
ALL = [*FP8, E2M1]


def values_of(fmt: Minifloat) -> list[float]:
    """Finite values in rising order, each once."""
    decoded = (fmt.decode(code) for code in range(1 << fmt.bits))
    return sorted({value for value in decoded if math.isfinite(value)})


def nearest_even(x: float, fmt: Minifloat) -> float:
    """Round by exact fractions: the nearest value, ties to the even mantissa, saturating."""
    exact = Fraction(x)
    codes = [c for c in range(1 << fmt.bits) if math.isfinite(fmt.decode(c))]
    best = min(codes, key=lambda c: (abs(Fraction(fmt.decode(c)) - exact), c & 1))
    return fmt.decode(best)


@pytest.mark.parametrize("fmt", FP8, ids=lambda fmt: fmt.name)
def test_all_256_codes_mean_what_torch_says(fmt: Minifloat) -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    theirs = codes.view(fmt.dtype).float().tolist()
    ours = [fmt.decode(code) for code in range(256)]
    for code, (mine, torchs) in enumerate(zip(ours, theirs, strict=True)):
        assert mine == torchs or (math.isnan(mine) and math.isnan(torchs)), f"code {code:#x}"


def test_the_formats_have_the_special_values_of_their_definitions() -> None:
    assert [c for c in range(256) if math.isnan(E4M3.decode(c))] == [0x7F, 0xFF]
    assert not [c for c in range(256) if math.isinf(E4M3.decode(c))]
    assert [c for c in range(256) if math.isnan(E5M2.decode(c))] == [0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]
    assert [c for c in range(256) if math.isinf(E5M2.decode(c))] == [0x7C, 0xFC]
    assert (E4M3.decode(0x7E), E4M3.decode(0x08), E4M3.decode(0x01)) == (448.0, 2.0**-6, 2.0**-9)
    assert (E5M2.decode(0x7B), E5M2.decode(0x04), E5M2.decode(0x01)) == (57344.0, 2.0**-14, 2.0**-16)


def test_all_16_codes_of_fp4() -> None:
    positive = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert [E2M1.decode(code) for code in range(16)] == positive + [-value for value in positive]


def test_all_256_codes_of_e8m0() -> None:
    theirs = torch.arange(256, dtype=torch.uint8).view(torch.float8_e8m0fnu).float().tolist()
    ours = [e8m0_decode(code) for code in range(256)]
    assert ours[:255] == theirs[:255]
    assert math.isnan(ours[255])
    assert math.isnan(theirs[255])


@pytest.mark.parametrize("fmt", ALL, ids=lambda fmt: fmt.name)
def test_every_value_stays_and_every_middle_goes_to_the_even_neighbour(fmt: Minifloat) -> None:
    values = values_of(fmt)
    assert fmt.round(torch.tensor(values)).tolist() == values
    middles = [(low + high) / 2 for low, high in itertools.pairwise(values)]
    expected = [nearest_even(middle, fmt) for middle in middles]
    assert fmt.round(torch.tensor(middles)).tolist() == expected
    below = [math.nextafter(middle, -math.inf) for middle in middles if abs(middle) > 1e-3]
    rounded = fmt.round(torch.tensor(below, dtype=torch.float32)).tolist()
    assert rounded == [nearest_even(float(torch.tensor(x, dtype=torch.float32)), fmt) for x in below]


@pytest.mark.parametrize("fmt", ALL, ids=lambda fmt: fmt.name)
def test_random_numbers_of_all_sizes_go_to_the_nearest_value(fmt: Minifloat) -> None:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(300, generator=generator) * torch.exp2(torch.randint(-20, 18, (300,), generator=generator).float())
    assert fmt.round(x).tolist() == [nearest_even(value, fmt) for value in x.tolist()]


@pytest.mark.parametrize("fmt", FP8, ids=lambda fmt: fmt.name)
def test_the_definition_agrees_with_torchs_cast(fmt: Minifloat) -> None:
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(20_000, generator=generator) * torch.exp2(torch.randn(20_000, generator=generator) * 6)
    x = x.clamp(-fmt.largest, fmt.largest)
    assert torch.equal(fmt.round_by_definition(x), fmt.round(x))


@pytest.mark.parametrize("fmt", ALL, ids=lambda fmt: fmt.name)
def test_too_large_values_saturate_and_nan_stays(fmt: Minifloat) -> None:
    rounded = fmt.round(torch.tensor([1e30, -1e30, math.inf, -math.inf, math.nan])).tolist()
    assert rounded[:4] == [fmt.largest, -fmt.largest, fmt.largest, -fmt.largest]
    assert math.isnan(rounded[4])


def test_powers_of_two_round_up_or_down() -> None:
    x = torch.tensor([1.0, 1.5, 2.0, 0.3, 2.0**-127, 2.0**-140, 3e38])
    assert e8m0_round(x, up=False).tolist() == [1.0, 1.0, 2.0, 0.25, 2.0**-127, 2.0**-127, 2.0**127]
    assert e8m0_round(x, up=True).tolist() == [1.0, 2.0, 2.0, 0.5, 2.0**-127, 2.0**-127, 2.0**127]
