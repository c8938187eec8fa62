"""The plan of an experiment: slices, alternation, repeats, rounds and what fits into memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptscope.profiling.engine import scheduling
from gptscope.profiling.engine.scheduling import MemoryUse
from gptscope.profiling.experiment import Variant, Workload


def test_decode_and_generate_measure_one_sequence_per_slice():
    assert scheduling.slice_steps(Workload(kind="decode", steps=8)) == (1,) * 8
    assert scheduling.slice_steps(Workload(kind="generate", steps=1)) == (1,)


@settings(deadline=None)
@given(st.integers(1, 500), st.sampled_from(["train", "prefill"]))
def test_other_steps_are_cut_into_at_most_twelve_nearly_equal_slices(steps, kind):
    slices = scheduling.slice_steps(Workload(kind=kind, steps=steps))
    assert sum(slices) == steps
    assert len(slices) == min(steps, 12)
    assert max(slices) - min(slices) <= 1


def test_variants_alternate_so_that_none_is_always_first():
    assert scheduling.alternation(2, 3) == ((0, 1), (1, 0), (0, 1))
    assert scheduling.alternation(3, 2) == ((0, 1, 2), (2, 1, 0))
    assert scheduling.alternation(1, 2) == ((0,), (0,))


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 20))
def test_rounds_measure_every_slice_of_every_variant_once_and_end_each_variant_once(variants, slices):
    visits = scheduling.rounds(variants, slices)
    measured = sorted((visit.variant, pair) for visit in visits for pair in visit.slices)
    assert measured == [(variant, pair) for variant in range(variants) for pair in range(slices)]
    assert sorted(visit.variant for visit in visits if visit.last) == list(range(variants))
    seen_last: set[int] = set()
    for visit in visits:
        assert visit.variant not in seen_last, "nothing comes after a last visit"
        seen_last |= {visit.variant} if visit.last else set()


def test_rounds_go_there_and_back_and_load_the_turning_point_once():
    order = [visit.variant for visit in scheduling.rounds(3, 4)]
    assert order == [0, 1, 2, 1, 0]
    assert [visit.slices for visit in scheduling.rounds(2, 4)] == [(0, 1), (0, 1, 2, 3), (2, 3)]


def test_a_disturbed_slice_is_repeated_at_most_twice():
    budget = scheduling.repeat_budget(2, 8)
    assert [budget.take(0, 0) for _ in range(4)] == [1, 2, None, None]
    assert budget.take(1, 0) == 1


def test_a_busy_machine_lengthens_an_experiment_by_half_at_most():
    budget = scheduling.repeat_budget(2, 8)
    taken = [budget.take(variant, pair) for pair in range(8) for variant in range(2) for _ in range(2)]
    assert sum(attempt is not None for attempt in taken) == 8


def test_profiled_steps_are_few_unless_asked_for_and_never_more_than_there_are():
    assert scheduling.profile_steps(None, Workload(kind="train")) == 3
    assert scheduling.profile_steps(None, Workload(kind="decode", new_tokens=5)) == 5
    assert scheduling.profile_steps(0, Workload(kind="decode")) == 0
    assert scheduling.profile_steps(40, Workload(kind="decode", new_tokens=5)) == 40


GIB = 1 << 30


def test_a_variant_in_half_precision_is_expected_to_need_two_bytes_less_per_weight():
    fp32, bf16 = Variant(precision="fp32"), Variant(precision="bf16")
    use = scheduling.estimated_use(MemoryUse(6 * GIB, 7 * GIB), fp32, bf16, parameters=GIB)
    assert use == MemoryUse(4 * GIB, 7 * GIB)
    back = scheduling.estimated_use(MemoryUse(4 * GIB, 7 * GIB), bf16, fp32, parameters=GIB)
    assert back == MemoryUse(6 * GIB, 9 * GIB)


@pytest.mark.parametrize(
    ("available", "others", "fits"),
    [
        (10 * GIB, [], True),
        (10 * GIB, [MemoryUse(4 * GIB, 6 * GIB), MemoryUse(2 * GIB, 3 * GIB)], True),  # 6 resident + 2 surplus + 0.5
        (8 * GIB, [MemoryUse(4 * GIB, 6 * GIB), MemoryUse(2 * GIB, 3 * GIB)], False),
        (0, [], True),
    ],
)
def test_workers_fit_when_all_residents_and_the_largest_peak_do(available, others, fits):
    assert scheduling.fits_together(available, others) is fits
