"""What `run` prints about a run."""

from gptscope.app.cli.run_report import TOP_KERNELS, print_run
from gptscope.profiling.records import KernelRow, Profile, RunFinished, StepSamples


def report(screen, records, run_id="e1-a", **options) -> str:
    file, console = screen(**options)
    print_run(console, records, run_id)
    return file.getvalue()


def test_a_run_shows_model_levers_numbers_kernels_and_proof(screen, experiment) -> None:
    text = report(screen, experiment(text="Once upon"), "e1-a")
    assert "tiny (gpt2, 2 layers, width 64, 4 heads, 0.180 M parameters, 720 kB of weights, random weights" in text
    assert "Variant   FP32, plain, dynamic KV, 2 threads, on Test CPU" in text
    assert "Once upon" in text
    assert "tok/s" in text
    assert "MBU" in text
    assert "of the measured peak 40.0 GB/s" in text
    assert "MFU" in text
    assert "500 MB process, 720 kB weights, 20.0 kB KV cache" in text
    assert "1.50 s, 250 ms, nothing compiled; first measured step after 3.00 s" in text
    assert "1.06x" in text
    assert "✓ kv_cache: 1 token per forward" in text
    assert "✗ attention: no fused attention kernel ran" in text
    assert "? norm: the profile cannot tell" in text
    assert "Warning: Other programs used 40 % of a core." in text
    assert "Warning: The profile holds 4 steps." in text


def test_the_kernel_table_has_bandwidth_where_bytes_are_known(screen, experiment) -> None:
    lines = report(screen, experiment()).splitlines()
    header = next(line for line in lines if line.startswith("  kernel"))
    assert header.split() == ["kernel", "category", "calls", "self", "ms", "total", "ms", "share", "GB/s", "module"]
    gemm = next(line for line in lines if "aten::addmm" in line)
    assert gemm.split() == ["aten::addmm", "GEMM", "32", "80.0", "90.0", "80", "%", "20.0", "blocks.0.mlp.up"]
    other = next(line for line in lines if "at::native::[]" in line)
    assert "n/a" in other
    assert "..." in other


def test_only_the_largest_kernels_are_listed_and_the_rest_is_summed(screen, experiment) -> None:
    rows = tuple(
        KernelRow(name=f"k{i}", category="other", calls=1, self_time_us=i, total_time_us=i, share=i / 210)
        for i in range(1, 21)
    )
    records = [
        Profile(run_id=r.run_id, steps=1, overhead=1, wall_us=210, busy_us=210, kernels=rows, device="cpu")
        if isinstance(r, Profile)
        else r
        for r in experiment()
    ]
    text = report(screen, records)
    assert "  k20 " in text
    assert "  k8 " not in text
    assert f"the other {20 - TOP_KERNELS} take 17 %" in text


def test_a_cancelled_run_shows_what_was_measured_and_why_the_rest_is_unknown(screen, experiment) -> None:
    records = [r for r in experiment(slices=2) if not isinstance(r, Profile)][:-3]
    records.append(RunFinished(run_id="e1-a", outcome="cancelled", finished_unix_ns=5))
    text = report(screen, records)
    assert "99." in text or "100 tok/s" in text
    assert "Profiler overhead           n/a: nothing was profiled" in text


def test_a_run_without_a_step_says_so_instead_of_zero(screen, experiment) -> None:
    records = [r for r in experiment(quality=False) if not isinstance(r, StepSamples)]
    text = report(screen, records)
    assert "Tokens per second           n/a: no step was measured" in text


def test_a_report_for_an_ascii_terminal_is_ascii(screen, experiment) -> None:
    assert report(screen, experiment(), encoding="ascii").isascii()


def test_a_terminal_of_80_columns_keeps_every_number(screen, experiment, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    text = report(screen, experiment(), terminal=True)
    row = next(line for line in text.splitlines() if "80.0" in line)
    assert "90.0" in row
    assert "20.0" in row
