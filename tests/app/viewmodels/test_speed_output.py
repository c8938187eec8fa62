"""Speed against output: where each candidate stands, its error bar, and why one has no place."""

from collections.abc import Sequence

import msgspec
import pytest
from tests_app_quality_streams import quality as full_quality

from gptscope.app.viewmodels.chart_data import Spot, chart_csv
from gptscope.app.viewmodels.charts.speed_output import NOT_COMPARED, TRAINED, SpeedOutput, build
from gptscope.profiling.metrics.statistics import Estimate
from gptscope.profiling.metrics.verdict import TITLES, Verdict, VerdictKind
from gptscope.profiling.records import Quality


def verdict(
    run_id: str, kind: VerdictKind, speedup: tuple[float, float, float] | None, *, plain: float | None = None
) -> Verdict:
    changed = {"faster_same_output": False, "faster_output_changed": True, "slower": True}.get(kind)
    found = None if speedup is None else Estimate(value=speedup[0], low=speedup[1], high=speedup[2])
    return Verdict(
        baseline_run_id="base", candidate_run_id=run_id, kind=kind, title=TITLES[kind],
        sentence=f"{TITLES[kind]}: they have different workloads.", speedup=found, plain_ratio=plain, pairs=(),
        output_changed=changed, output_sentence="", by_category=None, by_module=None, warnings=(),
    )  # fmt: skip


def quality(kl: float | None, why: str = "") -> Quality:
    return msgspec.structs.replace(full_quality(), kl_mean=kl, unknown={"kl_mean": why} if why else {})


def trade(verdicts: Sequence[Verdict], qualities: Sequence[Quality | None], *, training: bool = False) -> SpeedOutput:
    names = "ABCD"[: len(verdicts)]
    return build(names, [f"variant {name}" for name in names], verdicts, qualities, training=training)


def spots(found: SpeedOutput) -> dict[str, Spot]:
    return {spot.label: spot for spot in found.chart.spots}


SAME = verdict("r1", "faster_same_output", (3.3, 3.2, 3.4))
CHANGED = verdict("r2", "faster_output_changed", (3.07, 2.97, 3.16))


def test_every_candidate_stands_at_its_ratio_and_divergence_with_its_interval() -> None:
    found = spots(trade([SAME, CHANGED], [quality(0.0021), quality(0.19)]))
    assert list(found) == ["baseline", "A", "B"]
    assert (found["baseline"].x, found["baseline"].shape, found["baseline"].tone) == (1.0, "square", "baseline")
    assert (found["A"].x, found["A"].x_low, found["A"].x_high, found["A"].y) == (3.3, 3.2, 3.4, 0.0021)
    assert (found["A"].shape, found["A"].tone, found["A"].key) == ("circle", "good", "r1")
    assert (found["B"].shape, found["B"].tone) == ("triangle", "warn")
    assert found["B"].tip == "B variant B\n3.07x [2.97, 3.16], KL 0.190 nats, Faster, output changed"


def test_up_is_better_and_no_divergence_stands_at_the_top() -> None:
    chart = trade([SAME, CHANGED], [quality(0.0), quality(0.19)]).chart
    place = {spot.label: chart.y_axis.position(spot.y) for spot in chart.spots}
    assert place["baseline"] == place["A"] == pytest.approx(1.0)
    assert 0.0 < place["B"] < chart.y_axis.position(0.01) < 1.0
    assert (chart.y_axis.ticks[-1][1], chart.levels[0].label) == ("0", "gate 0.01")
    assert (chart.x_axis.title, chart.x_axis.named) == ("speedup", True)
    assert chart.y_axis.title == "KL to the baseline, nats per token"
    assert all(text.endswith("x") for _, text in chart.x_axis.ticks)
    assert all(0.0 <= chart.x_axis.position(end) <= 1.0 for end in (1.0, 2.97, 3.4))


def test_runs_of_different_times_have_a_ratio_without_an_error_bar() -> None:
    found = spots(trade([verdict("r1", "not_comparable", None, plain=2.1)], [quality(0.0021)]))
    assert (found["A"].x, found["A"].x_low, found["A"].x_high) == (2.1, None, None)


def test_who_has_no_place_is_told_with_the_reason() -> None:
    lost = verdict("r3", "not_comparable", None)
    found = trade([SAME, CHANGED, lost], [quality(0.0021), None, quality(0.1)])
    assert list(spots(found)) == ["baseline", "A"]
    assert found.missing == f"B n/a: {NOT_COMPARED}.   C n/a: they have different workloads."
    broken = trade([SAME, CHANGED], [quality(0.0021), quality(None, "its logits are not finite")])
    assert broken.missing == "B n/a: its logits are not finite."


def test_without_any_comparison_the_chart_says_why() -> None:
    assert trade([SAME], [None]).chart.empty == f"n/a: {NOT_COMPARED}."
    assert trade([SAME], [None], training=True).chart.empty == f"n/a: {TRAINED}."


def test_the_symbols_can_be_saved_as_csv() -> None:
    rows = chart_csv(trade([SAME], [quality(0.0021)]).chart).splitlines()
    assert "A,3.3,,0.0021" in rows
