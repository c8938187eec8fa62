import math

import numpy as np
import pytest
from tests_app_streams import FUSED, PEAKS, PLAIN, experiment_records

from gptscope.app.viewmodels.cards import cards
from gptscope.app.viewmodels.chart_data import chart_csv
from gptscope.app.viewmodels.charts import (
    bandwidth,
    device,
    kernel_times,
    latency_histogram,
    memory,
    roofline,
    tokens_per_second,
)
from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.app.viewmodels.phases import PhaseClock, strip
from gptscope.profiling.records import Failure, Peaks, Progress, RunFinished


@pytest.fixture(scope="module")
def fused() -> ExperimentView:
    return ExperimentView.replay("e1", experiment_records())


@pytest.fixture(scope="module")
def plain() -> ExperimentView:
    return ExperimentView.replay("e0", experiment_records(PLAIN, ms=37.0, run_id="r0", experiment_id="e0"))


def window(
    view: ExperimentView, left_s: float | None = None, chosen: tuple[float, float] | None = None
) -> tokens_per_second.Window:
    return tokens_per_second.time_window(view.zero_ns, view.now_s, left_s, chosen)


def test_cards_show_the_run_beside_the_baseline_with_the_direction_that_is_good(
    fused: ExperimentView, plain: ExperimentView
) -> None:
    speed, latency, band, mem = cards(fused.current, plain.current)
    assert float(speed.value) == pytest.approx(57.0, rel=0.02)
    assert (speed.ratio_tone, speed.ratio_arrow) == ("good", "up")
    assert speed.note == "plain ratio, no interval"
    assert (latency.ratio_tone, latency.ratio_arrow) == ("good", "down")
    assert latency.aside.startswith("p95 ")
    assert "of peak 48.0" in band.aside
    assert band.source == "modelled"
    assert band.ratio_tone == "", "more bandwidth is neither good nor bad by itself"
    assert (mem.value, mem.unit) == ("523", "MB")
    slower = cards(plain.current, fused.current)[0]
    assert (slower.ratio_tone, slower.ratio_arrow) == ("bad", "down")


def test_without_a_run_every_card_says_na() -> None:
    assert {card.value for card in cards(None, None)} == {"n/a"}


def test_the_speed_chart_hatches_what_is_not_counted_and_marks_disturbance(
    fused: ExperimentView, plain: ExperimentView
) -> None:
    chart = tokens_per_second.build(fused.current, plain.current, window(fused), live=False)
    assert [region.label for region in chart.regions] == [
        "warm-up,\nnot counted",
        "machine busy:\nslice repeated",
        "profiled,\nnot counted",
    ]
    assert [region.kind for region in chart.regions] == ["hatched", "warn", "hatched"]
    (level,) = chart.levels
    assert level.label == "baseline FP32 plain 27.0"
    assert level.low is not None
    assert level.high is not None
    assert level.low < 27.0 < level.high
    assert level.high - level.low < 9, "the band is that of measured steps, warm-up left out"
    assert chart.y_axis.low == 0


def test_profiled_steps_are_not_in_the_speed_curve(fused: ExperimentView) -> None:
    run = fused.current
    assert run is not None
    x, _ = run.rate.tokens_per_second(fused.zero_ns or 0)
    profiled = next(region for region in run.regions(fused.zero_ns or 0) if region.label.startswith("profiled"))
    assert not np.any((x > profiled.start + 0.1) & (x < profiled.end))


def test_the_hover_text_gives_time_speed_baseline_and_ratio(fused: ExperimentView, plain: ExperimentView) -> None:
    chart = tokens_per_second.build(fused.current, plain.current, window(fused), live=False)
    text = tokens_per_second.read_out(chart, 5.0)
    assert "tok/s" in text
    assert "baseline 27.0" in text
    assert text.endswith("x")


def test_a_live_chart_leaves_room_for_what_is_to_come(fused: ExperimentView) -> None:
    now = fused.now_s or 0
    assert window(fused, left_s=30.0).high_s == pytest.approx(now + 30)
    assert window(fused, chosen=(2.0, 4.0)).high_s == 4.0


def test_bandwidth_stands_under_the_measured_peak(fused: ExperimentView, plain: ExperimentView) -> None:
    chart = bandwidth.build(fused.current, plain.current, PEAKS, window(fused), live=False)
    assert any(level.label == "measured peak 48.0 GB/s" for level in chart.levels)
    assert chart.y_axis.high >= 48
    assert chart.lines[0].end_note.endswith("of peak")
    assert "of peak" in bandwidth.read_out(chart, 5.0)
    unknown = bandwidth.build(fused.current, None, None, window(fused), live=False)
    assert unknown.lines[0].end_note == ""


def test_bytes_per_token_are_weights_kv_and_activations(fused: ExperimentView) -> None:
    run = fused.current
    assert run is not None
    parts = dict(bandwidth.bytes_parts(run.summary().step_bytes))
    assert parts["weights"] == pytest.approx(269e6, rel=0.01)
    assert list(parts) == ["weights", "KV", "activations"]


def test_the_histogram_holds_both_runs_and_their_medians(fused: ExperimentView, plain: ExperimentView) -> None:
    chart = latency_histogram.build(fused.current, plain.current)
    labels = [mark.label for mark in chart.marks]
    ours, theirs = fused.current.summary().itl, plain.current.summary().itl
    assert ours is not None
    assert theirs is not None
    exact = [f"{value:.1f}" for value in (ours.p50_ms, ours.p95_ms, ours.p99_ms, theirs.p50_ms)]
    assert labels == [f"p50 {exact[0]}", f"p95 {exact[1]}", f"p99 {exact[2]}", f"baseline p50 {exact[3]}"]
    assert fused.current.latency.quantile_ms(0.5) == pytest.approx(ours.p50_ms, rel=0.005), "of the same times"
    assert [bars.role for bars in chart.bars] == ["baseline", "current"]
    assert chart.x_axis.low < 17
    assert chart.x_axis.high > 37


def test_kernel_rows_are_per_token_and_carry_the_baseline(fused: ExperimentView, plain: ExperimentView) -> None:
    now, base = fused.current, plain.current
    assert now is not None
    assert base is not None
    times = kernel_times.build(now.profile, base.profile, rows=4)
    assert times is not None
    assert times.rows[0].name == "gate_up 3072x576"
    assert times.rows[0].ms == pytest.approx(5.31)
    assert times.rows[0].base_ms == pytest.approx(5.31 * 37 / 17.5)
    assert [row.ms for row in times.rows] == sorted((row.ms for row in times.rows), reverse=True)
    assert times.more == 6
    assert sum(part.ms for part in times.slices) == pytest.approx(times.total_ms)
    assert kernel_times.build(None, base.profile) is None


def test_the_roofline_places_kernels_under_measured_roofs(fused: ExperimentView) -> None:
    run = fused.current
    assert run is not None
    chart = roofline.build(run.profile, PEAKS, "bf16")
    assert len(chart.points) == 10
    assert chart.lines[0].y.max() == pytest.approx(620)
    biggest = max(chart.points, key=lambda point: point.size)
    assert biggest.key.startswith("gate_up")
    assert roofline.build(run.profile, None, "bf16").lines == ()
    assert roofline.build(None, PEAKS, "bf16").empty


def test_memory_over_time_ends_with_its_newest_value(fused: ExperimentView) -> None:
    chart = memory.build(fused.current, fused.sensors, fused.zero_ns)
    assert chart.lines[0].end_label == "523 MB"
    assert chart.levels[0].label == "weights 269 MB"
    assert "Peak memory is of the measured steps alone." in chart.summary


def test_device_tiles_say_na_with_the_reason_and_warn_of_other_programs(fused: ExperimentView) -> None:
    tiles = {tile.title: tile for tile in device.tiles(fused.sensors, fused.machine, fused.zero_ns)}
    assert tiles["CPU load, our worker"].of == "of 200 %"
    assert "GPU utilisation" not in tiles
    assert fused.sensors.gpu_reason == "no NVIDIA driver"
    empty = device.tiles(ExperimentView().sensors, None, None)
    assert empty[0].value == "n/a"


def test_a_chart_as_csv_holds_every_finite_value(fused: ExperimentView) -> None:
    chart = tokens_per_second.build(fused.current, None, window(fused), live=False)
    rows = chart_csv(chart).splitlines()
    assert rows[0] == "series,x,x_end,y"
    finite = int(np.isfinite(chart.lines[0].y).sum())
    assert len(rows) == 1 + finite + len(chart.regions)


def test_events_tell_what_happened_in_order_with_their_level(fused: ExperimentView) -> None:
    texts = [event.text for event in fused.events]
    assert any(text.startswith("Loaded SmolLM2-135M in 1.90 s") for text in texts)
    levels = {event.text: event.level for event in fused.events}
    assert levels["Slice 4 not counted: other processes used 38 % of a core"] == "warning"
    assert levels["norm is not in effect: no fused kernel ran"] == "error"
    assert texts[-1] == "Finished"


def test_a_failure_is_an_event_and_keeps_what_was_measured() -> None:
    records = experiment_records()
    view = ExperimentView.replay("e1", records[: len(records) // 2])
    before = cards(view.current, None)[0].value
    view.apply(Failure(kind="worker_died", message="The worker was killed.", run_id="r1"))
    assert view.events[-1].level == "error"
    assert cards(view.current, None)[0].value == before != "n/a"


def test_the_strip_counts_down_while_running_and_shows_durations_after() -> None:
    records = experiment_records()
    view, clock = ExperimentView("e1"), PhaseClock()
    assert strip(view, clock, 0.0) is None
    for record in records:
        if isinstance(record, Progress) and record.phase == "measure" and record.done == 3:
            break
        view.apply(record)
    clock.tick("measure", 10.0)
    view.apply(Progress(phase="measure", done=3, total=6, unit="slices", run_id="r1"))
    shown = strip(view, clock, 20.0)
    assert shown is not None
    cells = {cell.name: cell for cell in shown.cells}
    assert cells["measure"].note.startswith("slice 4 of 6, 5")
    assert cells["measure"].fraction == 0.5
    assert shown.left_s == pytest.approx(10.0)
    assert (shown.left, shown.of) == ("0:10 left", "of about 0:20")
    assert (cells["load"].state, cells["load"].note) == ("done", "1.90 s")
    assert cells["compile"].state == "off"
    finished = strip(ExperimentView.replay("e1", records), None, 0.0)
    assert finished is not None
    assert finished.left == "Finished"
    assert [cell.state for cell in finished.cells] == ["done", "off", "done", "done", "done"]


def test_live_and_reopened_are_the_same_code_and_the_same_numbers() -> None:
    records = experiment_records()
    live = ExperimentView("e1")
    for record in records:
        live.apply(record)
        live.current and live.current.summary()  # a live window asks in between
    again = ExperimentView.replay("e1", records)
    assert cards(live.current, None) == cards(again.current, None)


def test_the_candidate_is_in_front_and_its_own_baseline_behind() -> None:
    from tests_app_streams import UNIX, WORKLOAD, Clock, run_records

    from gptscope.profiling.experiment import Experiment
    from gptscope.profiling.records import ExperimentStarted

    view, clock = ExperimentView("e"), Clock()
    experiment = Experiment(model="m", workload=WORKLOAD, variants=(PLAIN, FUSED))
    view.apply(ExperimentStarted(experiment_id="e", experiment=experiment, run_ids=("a", "b"), started_unix_ns=UNIX))
    for record in [*run_records("a", PLAIN, clock, ms=37), *run_records("b", FUSED, clock, ms=17.5)]:
        view.apply(record)
    assert view.current is view.runs["b"]
    assert view.own_baseline is view.runs["a"]
    assert any(event.text.startswith("FP32 plain: Loaded") for event in view.events)
    view.chosen_run = "a"
    assert view.current is view.runs["a"]


def test_generated_text_is_bounded_and_says_so() -> None:
    from gptscope.app.viewmodels.run_view import MAX_TEXT, RunView
    from gptscope.profiling.records import GeneratedText

    run = RunView("r")
    for _ in range(30):
        run.apply(GeneratedText(run_id="r", text="x" * 1000, token_ids=(1,)))
    assert len(run.text) == MAX_TEXT
    assert run.text_cut


def test_an_unknown_precision_has_no_bandwidth_but_a_reason() -> None:
    from gptscope.profiling.experiment import Variant

    odd = ExperimentView.replay("e1", experiment_records(Variant(precision="fp8_magic")))
    chart = bandwidth.build(
        odd.current, None, Peaks(**{f: getattr(PEAKS, f) for f in PEAKS.__struct_fields__}), window(odd), live=False
    )
    assert chart.empty == bandwidth.NO_MODEL
    assert cards(odd.current, None)[2].value == "n/a"
    assert not math.isnan(float(cards(odd.current, None)[0].value))


def test_a_slice_that_is_always_disturbed_counts_by_its_last_attempt_as_the_cards_say() -> None:
    from tests_app_streams import UNIX, Clock, started

    from gptscope.profiling.records import SliceDone

    view, clock = ExperimentView("e1"), Clock()
    view.apply(started("r1", FUSED))

    def attempt(number: int, count: int, *, disturbed: bool) -> None:
        view.apply(clock.steps("r1", 0, "measure", "decode", count, 10.0, 64))
        reason = "busy" if disturbed else None
        view.apply(SliceDone(run_id="r1", slice=0, attempt=number, pair=0, seconds=1, disturbed=reason))

    run = view.runs["r1"]
    for number, count, disturbed in ((0, 10, True), (1, 20, True), (2, 30, False), (3, 40, True)):
        attempt(number, count, disturbed=disturbed)
        expected = (10, 20, 30, 30)[number]
        assert run.latency.total == run.measured_steps == expected
        itl = run.summary().itl
        assert itl is not None
        assert itl.count == expected
    view.apply(clock.steps("r1", 1, "measure", "decode", 5, 10.0, 64))
    assert run.latency.total == 35, "live: steps count as they come"
    view.apply(RunFinished(run_id="r1", outcome="cancelled", finished_unix_ns=UNIX))
    assert run.latency.total == 30
