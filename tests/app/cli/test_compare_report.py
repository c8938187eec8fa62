"""What `compare` and `demo` print."""

import msgspec
import pytest

from gptscope.app.cli.compare_report import print_comparison
from gptscope.profiling.experiment import Variant
from gptscope.profiling.records import Compiled, Failure, ModelLoaded, Profile, RunFinished, RunStarted, StepSamples

RUNS = ("e1-a", "e1-b")
THREE = (Variant(), Variant(precision="bf16"), Variant(precision="fp16", kv_cache="none"))


def report(screen, records, run_ids=RUNS, **options) -> str:
    file, console = screen(**options)
    print_comparison(console, records, run_ids)
    return file.getvalue()


def test_the_verdict_comes_first_with_its_number(screen, experiment) -> None:
    lines = report(screen, experiment()).splitlines()
    assert lines[0] == "✓ A (BF16, attention, static KV): Faster, same output"
    assert "x faster, 95 % interval [" in lines[1]
    assert lines[2] == "  It generates 200 tokens per second, the baseline 100."


def test_the_table_has_baseline_candidate_and_ratio(screen, experiment) -> None:
    lines = report(screen, experiment()).splitlines()
    assert any(line.split() == ["baseline", "A", "ratio"] for line in lines)
    speed = next(line.split() for line in lines if "tokens per second, tok/s" in line)
    assert speed[-3:] == ["100", "200", "2.00x"]
    latency = next(line.split() for line in lines if "time to first token" in line)
    assert latency[-3:] == ["50.0", "25.0", "0.50x"]
    assert not any("compile time" in line for line in lines)


def test_evidence_quality_and_waterfall_stand_below(screen, experiment) -> None:
    text = report(screen, experiment())
    assert "✗ attention: no fused attention kernel ran" in text
    assert "perplexity      14.86 → 14.88 (+0.020 ± 0.010)" in text
    assert "192 of 192 equal before a first difference; 0 real changes, 1 near-ties" in text
    assert "Warning (baseline): Other programs used 40 % of a core." in text


def test_a_switch_without_effect_stands_in_red_beside_the_verdict(screen, experiment) -> None:
    lines = report(screen, experiment()).splitlines()
    assert lines[3] == "  ✗ attention is on but without effect: no fused attention kernel ran"
    coloured = report(screen, experiment(), terminal=True)
    assert "\x1b[31m  ✗ attention is on but without effect" in coloured


def test_compiling_stands_beside_its_gain(screen, experiment) -> None:
    records = experiment()
    records.insert(6, Compiled(run_id="e1-b", compile_s=10.0, graph_breaks=2, regions=3))
    text = report(screen, records)
    assert "  Compiling took 10.0 s longer (3 regions, 2 graph breaks), which is won back after " in text


def test_guesses_are_rows_of_the_table(screen, experiment) -> None:
    records = [
        msgspec.structs.replace(r, drafted=(2,) * 4, tokens=(2,) * 4)
        if isinstance(r, StepSamples) and r.run_id == "e1-b" and r.kind == "decode"
        else r
        for r in experiment()
    ]
    rows = [line.split() for line in report(screen, records).splitlines()]
    assert ["tokens", "per", "step", "n/a", "2.00", "n/a"] in rows
    assert ["guesses", "accepted,", "%", "n/a", "50.0", "n/a"] in rows


def test_the_waterfall_adds_up_to_the_measured_step(screen, experiment) -> None:
    lines = report(screen, experiment()).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Where the time of one step went"))
    rows = [line.replace("−", "-").split() for line in lines[start + 2 :] if line]
    end = next(i for i, row in enumerate(rows) if row[:2] == ["measured", "step"])
    numbers = [[float(cell) for cell in row[-3:]] for row in rows[: end + 1]]
    for column in range(3):
        parts = sum(row[column] for row in numbers[:-1])
        assert parts == pytest.approx(numbers[-1][column], abs=0.1)
    assert numbers[-1][2] < 0


def test_three_variants_share_one_table(screen, experiment) -> None:
    text = report(screen, experiment(variants=THREE), ("e1-a", "e1-b", "e1-c"))
    lines = text.splitlines()
    assert lines[0].startswith("✓ A (BF16")
    assert any(line.startswith("✓ B (FP16") for line in lines[3:6])
    assert any(line.split() == ["baseline", "A", "ratio", "B", "ratio"] for line in lines)


def test_a_candidate_that_failed_is_not_comparable_and_the_baseline_still_shows(screen, experiment) -> None:
    records = [
        r
        for r in experiment(quality=False)
        if not (getattr(r, "run_id", "") == "e1-b" and isinstance(r, StepSamples | Profile | ModelLoaded | RunStarted))
    ]
    records.insert(4, Failure(kind="memory", message="It did not fit.", run_id="e1-b"))
    records.append(RunFinished(run_id="e1-b", outcome="failed", finished_unix_ns=1))
    text = report(screen, records)
    assert text.startswith("✗ A (not started): Not comparable")
    assert "the candidate did not start" in text
    speed = next(line.split() for line in text.splitlines() if "tokens per second, tok/s" in line)
    assert speed[-3:] == ["100", "n/a", "n/a"]


def test_too_few_pairs_are_not_comparable(screen, experiment) -> None:
    assert "an interval needs 5; use more steps" in report(screen, experiment(slices=3))


def test_the_report_is_ascii_where_it_must_be(screen, experiment) -> None:
    text = report(screen, experiment(), encoding="ascii")
    assert text.isascii()
