"""What `gptscope run` and `history show` print about one run."""

from collections.abc import Iterable, Sequence

from gptscope.app.cli.console import Cell, Column, Console, Style
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.experiment import Workload, variant_name
from gptscope.profiling.metrics.latency import Distribution
from gptscope.profiling.metrics.mfu_mbu import Utilisation
from gptscope.profiling.metrics.roofline import kernel_gbps
from gptscope.profiling.metrics.run_summary import RunSummary
from gptscope.profiling.metrics.summary import RunAccumulator
from gptscope.profiling.records import (
    EvidenceItem,
    GeneratedText,
    ModelLoaded,
    Profile,
    Record,
    RunStarted,
)

TOP_KERNELS = 12
Pair = tuple[str, str | Cell]
_MARKS: dict[bool | None, tuple[str, Style]] = {True: ("✓", "good"), False: ("✗", "bad"), None: ("?", "warn")}


def accumulate(records: Iterable[Record], run_id: str | None) -> RunAccumulator:
    """One run of a stream, ready to be summarised."""
    run = RunAccumulator(run_id)
    for record in records:
        run.add(record)
    return run


def print_run(console: Console, records: Sequence[Record], run_id: str | None) -> RunSummary:
    """Model, variant, headline numbers, kernels, evidence and warnings of one run."""
    run = accumulate(records, run_id)
    summary = run.summary(final=True)
    if run.started is not None:
        for line in run_lines(run.started, run.loaded):
            console.line(line)
    text = "".join(r.text for r in records if isinstance(r, GeneratedText) and r.run_id == summary.run_id)
    if text:
        console.line()
        console.line("Text", "title")
        prompt = run.started.workload.prompt if run.started is not None else None
        console.line((prompt or "") + text)
    console.line()
    console.pairs(headline_pairs(summary), "Measured")
    if run.profile is not None and run.profile.kernels:
        console.line()
        print_kernels(console, run.profile, summary)
    if run.evidence is not None and run.evidence.items:
        console.line()
        console.line("Levers in the profile", "title")
        print_evidence(console, run.evidence.items)
    print_warnings(console, summary, run.profile)
    return summary


def run_lines(started: RunStarted, loaded: ModelLoaded | None) -> Iterable[str]:
    """Model, workload and variant, each in a line."""
    yield f"Model     {model_line(started.model, loaded)}"
    yield f"Workload  {workload_line(started.workload)}"
    threads = f", {started.threads} thread{'s' if started.threads != 1 else ''}"
    named = "" if started.variant.threads is not None and not started.variant.name else threads
    yield f"Variant   {started.name or variant_name(started.variant)}{named}, on {started.machine.device_name}"
    if loaded is not None and "all" in started.variant.fusions:
        yield f"Fusions   {', '.join(loaded.fusions) or 'none'}"


def model_line(source: str, loaded: ModelLoaded | None, *, with_weights: bool = True) -> str:
    """Name, family, size (bytes of weights only `with_weights`), and whether the weights are random."""
    if loaded is None:
        return source
    info = loaded.model
    shape = f"{info.n_layer} layers, width {f.count(info.d_model)}, {info.n_head} heads"
    size = f"{f.number(info.parameters / 1e6)} M parameters"
    if with_weights:
        size += f", {f.quantity(info.weight_bytes, 'bytes')} of weights"
    random = ", random weights: speed only" if info.random_weights else ""
    return f"{info.name} ({info.family}, {shape}, {size}{random})"


def workload_line(workload: Workload) -> str:
    """What each step computes."""
    sequences = f"batch {f.count(workload.batch)}"
    match workload.kind:
        case "train":
            sizes = f"{f.count(workload.context)} tokens per sequence, {f.count(workload.steps)} optimizer steps"
        case "prefill":
            sizes = f"{f.count(workload.context)} prompt tokens, {f.count(workload.steps)} prompts"
        case _:
            prompt = "your prompt" if workload.prompt else f"{f.count(workload.context)} prompt tokens"
            sizes = f"{prompt}, {f.count(workload.new_tokens)} new tokens, {f.count(workload.steps)} sequences"
    return f"{workload.kind}, {sequences}, {sizes}"


def headline_pairs(summary: RunSummary) -> list[Pair]:
    """Every headline number that the workload has; what is unknown says why."""
    pairs: list[Pair] = [("Tokens per second", _estimate(summary, "tokens_per_s", "tok/s"))]
    if summary.headline == "decode":
        pairs += [
            ("Time to first token (TTFT)", _distribution(summary.ttft, summary.unknown.get("ttft", ""))),
            ("Prompt tokens per second", _estimate(summary, "prompt_tokens_per_s", "tok/s")),
            ("Inter-token latency (ITL)", _percentiles(summary.itl, summary.unknown.get("itl", ""))),
        ]
    pairs += [
        ("Step time", _distribution(summary.step_time, summary.unknown.get("step_time", ""))),
    ]
    if summary.tokens_per_step is not None:
        pairs.append(("Speculation", _speculation(summary)))
    pairs += [
        ("Bandwidth, modelled", _bandwidth(summary)),
        ("Compute, modelled", _compute(summary)),
        ("Peak memory", _memory(summary)),
        ("Start, load, compile", _start(summary)),
        ("Profiler overhead", f.ratio(summary.profiler_overhead, reason=summary.unknown.get("profiler_overhead", ""))),
        ("Slices", _slices(summary)),
    ]
    return pairs


def _estimate(summary: RunSummary, field: str, unit: str) -> str:
    estimate = getattr(summary, field)
    reason = summary.unknown.get(field, "")
    return f.interval(estimate.value, estimate.low, estimate.high, unit) if estimate else f.unknown(reason)


def _distribution(times: Distribution | None, reason: str) -> str:
    if times is None:
        return f.unknown(reason)
    factor, unit = _time_unit(times.p50_ms)
    low, high = (None if end is None else end * factor for end in (times.low_ms, times.high_ms))
    median = f.interval(times.p50_ms * factor, low, high, unit)
    return f"{median} median, {f.number(times.iqr_ms * factor)} {unit} between quartiles, {f.count(times.count)} timed"


def _percentiles(times: Distribution | None, reason: str) -> str:
    if times is None:
        return f.unknown(reason)
    factor, unit = _time_unit(times.p50_ms)
    values = (f.number(value * factor) for value in (times.p50_ms, times.p95_ms, times.p99_ms))
    return f"{' / '.join(values)} {unit} (p50 / p95 / p99)"


def _time_unit(milliseconds: float) -> tuple[float, str]:
    """Factor from ms and unit that suits the value."""
    if milliseconds >= 1000:
        return 1e-3, "s"
    return (1.0, "ms") if milliseconds >= 1 else (1e3, "µs")


def _bandwidth(summary: RunSummary) -> str:
    if summary.achieved_gbps is None:
        return f.unknown(summary.unknown.get("achieved_gbps", ""))
    rate = f.quantity(summary.achieved_gbps * 1e9, "bandwidth")
    measured = _share(summary.mbu, "measured peak", "GB/s", "MBU", summary.unknown.get("mbu", ""))
    return ", ".join(filter(None, (rate, measured, _published(summary.published_mbu, "GB/s"))))


def _compute(summary: RunSummary) -> str:
    if summary.achieved_tflops is None:
        return f.unknown(summary.unknown.get("achieved_tflops", ""))
    rate = f.quantity(summary.achieved_tflops * 1e12, "flops")
    measured = _share(summary.mfu, "measured peak", "TFLOP/s", "MFU", summary.unknown.get("mfu", ""))
    return ", ".join(filter(None, (rate, measured, _published(summary.published_mfu, "TFLOP/s"))))


def _share(share: Utilisation | None, what: str, unit: str, name: str, reason: str) -> str:
    if share is None or share.fraction is None or share.peak is None:
        return f"{name} {f.unknown(reason)}"
    return f"{name} {f.of_peak(share.fraction)} of the {what} {f.number(share.peak)} {unit}"


def _published(share: Utilisation | None, unit: str) -> str:
    if share is None or share.fraction is None or share.peak is None:
        return ""
    return f"{f.percent(share.fraction)} of the published {f.number(share.peak)} {unit}"


def _memory(summary: RunSummary) -> str:
    parts = [
        f"{f.quantity(summary.peak_process_bytes, 'bytes', summary.unknown.get('peak_process_bytes', ''))} process"
    ]
    if summary.peak_device_bytes is not None:
        parts.append(f"{f.quantity(summary.peak_device_bytes, 'bytes')} device")
    if summary.weight_bytes is not None:
        parts.append(f"{f.quantity(summary.weight_bytes, 'bytes')} weights")
    if summary.kv_cache_bytes:
        parts.append(f"{f.quantity(summary.kv_cache_bytes, 'bytes')} KV cache")
    return ", ".join(parts)


def _speculation(summary: RunSummary) -> str:
    rate = f.percent(summary.acceptance, summary.unknown.get("acceptance", ""))
    return f"{rate} of the guessed tokens accepted, {f.number(summary.tokens_per_step)} tokens per step"


def _start(summary: RunSummary) -> str:
    parts = [f.duration(summary.start_s), f.duration(summary.load_s)]
    parts.append(_compiled(summary) if summary.compile_s else "nothing compiled")
    first = f"; first measured step after {f.duration(summary.first_step_s)}" if summary.first_step_s else ""
    return ", ".join(parts) + first


def _compiled(summary: RunSummary) -> str:
    breaks = "graph break" if summary.graph_breaks == 1 else "graph breaks"
    regions = "region" if summary.compiled_regions == 1 else "regions"
    return (
        f"{f.duration(summary.compile_s)} ({f.count(summary.compiled_regions)} {regions}, "
        f"{f.count(summary.graph_breaks)} {breaks})"
    )


def _slices(summary: RunSummary) -> str:
    text = f"{f.count(summary.slices_counted)} counted"
    if summary.slices_repeated:
        text += f", {f.count(summary.slices_repeated)} repeated because the machine was busy"
    if summary.slices_disturbed:
        text += f", {f.count(summary.slices_disturbed)} counted although disturbed"
    return text


def print_kernels(console: Console, profile: Profile, summary: RunSummary) -> None:
    """The kernels that took most of the profiled time."""
    rows = sorted(profile.kernels, key=lambda row: -row.self_time_us)[:TOP_KERNELS]
    selves = f.column([row.self_time_us * 1e-6 for row in rows], "time")
    totals = f.column([row.total_time_us * 1e-6 for row in rows], "time")
    columns = (
        Column("kernel", "left", name=True),
        Column("category", "left"),
        Column("calls"),
        Column(f"self {selves.unit}"),
        Column(f"total {totals.unit}"),
        Column("share"),
        Column("GB/s"),
        Column("module", "left", name=True),
    )
    table = [
        (
            row.name,
            row.category,
            f.count(row.calls),
            selves.texts[i],
            totals.texts[i],
            f.percent(row.share),
            f.number(kernel_gbps(row)),
            row.module,
        )
        for i, row in enumerate(rows)
    ]
    what = "tokens" if summary.headline == "decode" else "steps"
    shown = f"{len(rows)} of {len(profile.kernels)}" if len(rows) < len(profile.kernels) else f"{len(rows)}"
    overhead = f.ratio(profile.overhead)
    title = f"Kernels, {shown}, of {f.count(profile.steps)} profiled {what} (overhead {overhead}, GB/s modelled)"
    console.table(columns, table, title)
    if len(rows) < len(profile.kernels):
        rest = sum(row.share for row in profile.kernels) - sum(row.share for row in rows)
        console.line(f"  the other {len(profile.kernels) - len(rows)} take {f.percent(rest)}", "dim")


def print_evidence(console: Console, items: Sequence[EvidenceItem], *, indent: str = "  ") -> None:
    """One line per lever: in effect or not, and what in the profile says so."""
    for item in items:
        mark, style = _MARKS[item.in_effect]
        console.line(f"{indent}{mark} {item.lever}: {item.sentence}", style)


def print_warnings(console: Console, summary: RunSummary, profile: Profile | None) -> None:
    """What may have spoiled the numbers."""
    notes = [*summary.warnings, *(profile.notes if profile is not None else ())]
    notes = list(dict.fromkeys(notes))
    if notes or summary.failure:
        console.line()
    for note in notes:
        console.line(f"Warning: {note}", "warn")
    if summary.failure:
        console.line(f"Failed: {summary.failure}", "bad")
