"""Every precision recipe on one model: speed, memory and what happens to the output, as one table.

    python benchmarks/recipe_table.py [--model smollm2-135m] [--rows "bf16; int8-dynamic"] [--part output|speed|all]
                                      [--results FILE] [--tuned FOLDER] [--fresh]

Speed: batch 1. Each row is prepared beside plain FP32 (nothing fused, dynamic cache), and both take turns: 12 decoded
tokens behind a prompt of 64, and a prefill of 512 tokens, five times each. The table gives medians, and in brackets
the median of the rounds' ratios to plain FP32. All rows but `fp32-plain` have every available fusion but compile, and
a static cache; rows that end in `+compile` have compile too.

Output: on gptscope's evaluation text, against FP32: perplexity with its standard error, mean KL divergence and top-1
agreement over eight windows of 256 tokens; eight prompts continued greedily by 48 tokens: tokens before the first
difference, and prompts that stayed equal / parted at a near-tie / really changed.

A finished figure is kept in the results file, and a second call goes on where the first one ended. `--tuned` adds a
row for a folder that `gptscope finetune` wrote.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from gptscope.assets.bundled import evaluation_text
from gptscope.models.decoding.greedy import Continuation, continue_greedily
from gptscope.models.decoding.session import DecodeSession
from gptscope.models.levers import LeverContext, LeverError, OptionValue, WorkloadKind
from gptscope.models.loaders import load_model
from gptscope.models.precision import RECIPES
from gptscope.models.prepare import PreparedModel, prepare, resolve_fusions
from gptscope.models.quantization.ranges_file import Ranges, save_ranges
from gptscope.profiling.machine import facts
from gptscope.profiling.quality.greedy import LARGEST_TIE
from gptscope.profiling.quality.perplexity import perplexity
from gptscope.profiling.worker.calibration import calibration_text, ranges_place
from gptscope.profiling.worker.request import to_lever_machine

WINDOWS, WINDOW_TOKENS = 8, 256
PROMPTS, PROMPT_TOKENS, NEW_TOKENS = 8, 32, 48
ROUNDS, DECODED, DECODE_PROMPT, PREFILL = 5, 12, 64, 512
NAIVE: dict[str, OptionValue] = {"granularity": "tensor", "clipping": "minmax"}


@dataclass(frozen=True)
class Row:
    """One setting."""

    precision: str
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    fusions: tuple[str, ...] = ("all",)
    kv_cache: str = "static"
    model: str | None = None


ROWS: dict[str, Row] = {
    "fp32-plain": Row("fp32", fusions=("none",), kv_cache="dynamic"),
    "fp32": Row("fp32"),
    "bf16": Row("bf16"),
    "fp16": Row("fp16"),
    "int8-weight-only": Row("int8-weight-only"),
    "int8-weight-only+compile": Row("int8-weight-only", fusions=("attention", "qkv", "mlp", "norm", "compile")),
    "int8-weight-only, INT8 KV": Row("int8-weight-only", kv_cache="int8"),
    "int8-dynamic, per tensor": Row("int8-dynamic", {**NAIVE, "activations": "tensor"}),
    "int8-dynamic": Row("int8-dynamic"),
    "int8-dynamic+compile": Row("int8-dynamic", fusions=("attention", "qkv", "mlp", "norm", "compile")),
    "int8-static, naive": Row("int8-static", {**NAIVE, "range": "minmax"}),
    "int8-static, min-max": Row("int8-static", {"clipping": "minmax", "range": "minmax"}),
    "int8-static, clipped": Row("int8-static"),
    "int8-static, clipped, mlp.down in bf16": Row("int8-static", {"keep": "*.mlp.down"}),
    "int8-smoothquant": Row("int8-smoothquant"),
    "int8-smoothquant, static": Row("int8-smoothquant", {"activations": "static", "alpha": 0.75}),
    "int8-static, naive, worst 3 in bf16": Row("int8-static", {**NAIVE, "range": "minmax", "keep-worst": 3}),
    "int8-static, clipped, worst 3 in bf16": Row("int8-static", {"keep-worst": 3}),
    "fp8-delayed": Row("fp8-delayed"),
    "fp8-current": Row("fp8-current"),
    "fp8-rowwise": Row("fp8-rowwise"),
    "mxfp8": Row("mxfp8"),
    "nvfp4": Row("nvfp4"),
}


def make(row: Row, model: str, workload: WorkloadKind) -> PreparedModel:
    """Load and prepare; ranges of an earlier calibration are used again."""
    recipe = RECIPES[row.precision]
    source = row.model or model
    loaded = load_model(source, dtype=recipe.weight_dtype(training=False))
    options = dict(row.options)
    text = calibration_text(loaded.tokenizer, loaded.model.config)
    kept = ranges_place(source, text)
    if kept.exists() and any(option.name == "ranges" for option in recipe.options):
        options["ranges"] = str(kept)
    context = LeverContext(
        machine=to_lever_machine(facts.machine_info("cpu")),
        config=loaded.model.config,
        workload=workload,
        precision=row.precision,
        kv_cache=row.kv_cache,
        options={row.precision: options} if options else {},
    )

    def keep(ranges: Ranges) -> None:
        save_ranges(ranges, kept)

    chosen, _ = resolve_fusions(row.fusions, context)
    return prepare(
        loaded.model,
        replace(context, fusions=frozenset(chosen)),
        torch.device("cpu"),
        replace(text, keep=keep, tell=lambda sentence: print(f"    {sentence}")),
    )


class Reference:
    """What FP32 says about the evaluation text."""

    def __init__(self, model: str) -> None:
        tokenizer = load_model(model).tokenizer
        assert tokenizer is not None
        ids = torch.tensor(tokenizer.encode(evaluation_text().read_text(encoding="utf-8")))
        self.model = make(ROWS["fp32"], model, "decode")
        self.windows = [ids[n * WINDOW_TOKENS :][: WINDOW_TOKENS + 1] for n in range(WINDOWS)]
        self.log_p = [self.model.logits(window[None, :-1])[0].log_softmax(-1) for window in self.windows]
        step = (len(ids) - PROMPT_TOKENS) // PROMPTS
        self.prompts = [ids[n * step :][:PROMPT_TOKENS] for n in range(PROMPTS)]
        self.said = [continue_greedily(self.model, prompt[None], NEW_TOKENS) for prompt in self.prompts]

    def judge(self, candidate: PreparedModel) -> dict[str, float]:
        """The figures of one candidate's output."""
        nll, kl, same = [], [], []
        for window, log_p in zip(self.windows, self.log_p, strict=True):
            log_q = candidate.logits(window[None, :-1])[0].float().log_softmax(-1)
            nll.append(-log_q.gather(1, window[1:, None])[:, 0].double().numpy())
            kl.append(torch.nn.functional.kl_div(log_q, log_p, log_target=True, reduction="none").sum(-1))
            same.append(log_p.argmax(-1) == log_q.argmax(-1))
        found = perplexity(nll)
        assert found.value is not None
        figures = {"perplexity": found.value, "error": found.error or 0.0, "kl": float(torch.cat(kl).mean())}
        figures["agreement"] = float(torch.cat(same).float().mean())
        outcomes = {"exact_tokens": 0, "equal": 0, "near_ties": 0, "changed": 0}
        for prompt, ours in zip(self.prompts, self.said, strict=True):
            theirs = continue_greedily(candidate, prompt[None], NEW_TOKENS)
            equal, outcome = self._compare(prompt, ours, theirs)
            outcomes["exact_tokens"] += equal
            outcomes[outcome] += 1
        return figures | {name: float(count) for name, count in outcomes.items()}

    def _compare(self, prompt: Tensor, ours: Continuation, theirs: Continuation) -> tuple[int, str]:
        pairs = zip(ours.token_ids, theirs.token_ids, strict=True)
        equal = next((n for n, (a, b) in enumerate(pairs) if a != b), NEW_TOKENS)
        if equal == NEW_TOKENS:
            return equal, "equal"
        read = torch.cat((prompt, torch.tensor(ours.token_ids[:equal], dtype=torch.long)))
        logits = self.model.logits(read[None])[0, -1]
        gap = float(logits.max() - logits[theirs.token_ids[equal]])
        return equal, "near_ties" if gap < LARGEST_TIE else "changed"


def timed(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def decode(session: DecodeSession) -> float:
    """Seconds of some steps behind a prompt."""
    session.prefill(torch.arange(DECODE_PROMPT)[None] % 256)
    session.step()
    return timed(lambda: [session.step() for _ in range(DECODED)])


def read(session: DecodeSession) -> float:
    """Seconds of a prefill."""
    return timed(lambda: session.prefill(torch.arange(PREFILL)[None] % 256))


def speeds(row: Row, model: str) -> dict[str, float]:
    """Alternate with plain FP32, decoding and reading a prompt."""
    figures: dict[str, float] = {}
    parts: tuple[tuple[WorkloadKind, int, Callable[[DecodeSession], float]], ...] = (
        ("decode", DECODED, decode),
        ("prefill", PREFILL, read),
    )
    plain = DecodeSession(make(ROWS["fp32-plain"], model, "generate"), 1, PREFILL)
    for workload, per_round, run in parts:
        sides = {"plain": plain, "row": DecodeSession(make(row, model, workload), 1, PREFILL)}
        taken: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(ROUNDS + 1):  # the first warms up
            for name in sides if number % 2 else reversed(sides):
                seconds = run(sides[name])
                if number:
                    taken[name].append(seconds)
        figures[f"{workload}_per_s"] = per_round / statistics.median(taken["row"])
        ratios = [plain_s / own_s for plain_s, own_s in zip(taken["plain"], taken["row"], strict=True)]
        figures[f"{workload}_ratio"] = statistics.median(ratios)
    return figures


def table(results: Mapping[str, Mapping[str, float]]) -> str:
    speed = f"{'recipe':38} {'decode tok/s':>16} {'prefill tok/s':>17}"
    lines = [f"{speed} {'weights':>8} {'perplexity':>15} {'KL':>9} {'agree':>7} {'exact':>8} {'=/~/≠':>6}"]
    for name, one in results.items():
        decode = f"{one['decode_per_s']:.1f} ({one['decode_ratio']:.2f}x)" if "decode_per_s" in one else "not run"
        prefill = f"{one['prefill_per_s']:.0f} ({one['prefill_ratio']:.2f}x)" if "prefill_per_s" in one else "not run"
        line = f"{name:38} {decode:>16} {prefill:>17}"
        if "perplexity" in one:
            line += f" {one['weight_mb']:5.0f} MB {one['perplexity']:8.3f} ± {one['error']:4.2f} {one['kl']:9.5f}"
            line += f" {one['agreement']:7.1%} {one['exact_tokens']:4.0f}/{PROMPTS * NEW_TOKENS}"
            line += f" {one['equal']:.0f}/{one['near_ties']:.0f}/{one['changed']:.0f}"
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Every precision recipe on one model.")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--rows", default="", help="names, separated by semicolons (default: all)")
    parser.add_argument("--part", choices=("output", "speed", "all"), default="all")
    parser.add_argument("--results", type=Path, default=Path("recipe_table.json"))
    parser.add_argument("--tuned", default=None, help="a folder of `gptscope finetune`, for a row of int8-static")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    parser.add_argument("--threads", type=int, default=facts.physical_cores())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = dict(ROWS)
    if arguments.tuned:
        rows["int8-static, naive, tuned"] = Row("int8-static", {**NAIVE, "range": "minmax"}, model=arguments.tuned)
    wanted = [part.strip() for part in arguments.rows.split(";") if part.strip()]
    chosen = [name for name in rows if not wanted or name in wanted]
    kept: dict[str, dict[str, float]] = {}
    if arguments.results.exists():
        kept = json.loads(arguments.results.read_text(encoding="utf-8"))
    reference: Reference | None = None
    for name in chosen:
        found = kept.setdefault(name, {})
        try:
            if arguments.part != "speed" and (arguments.fresh or "perplexity" not in found):
                reference = reference or Reference(arguments.model)
                candidate = make(rows[name], arguments.model, "decode")
                found |= reference.judge(candidate) | {"weight_mb": candidate.weight_bytes / 1e6}
            if arguments.part != "output" and (arguments.fresh or "decode_per_s" not in found):
                found |= speeds(rows[name], arguments.model)
        except LeverError as error:
            print(f"{name}: {error}")
            del kept[name]
            continue
        arguments.results.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        print(table({name: found}).splitlines()[1], flush=True)
    print(f"\n{arguments.model}, {arguments.threads} threads")
    print(table({name: kept[name] for name in rows if name in kept}))


if __name__ == "__main__":
    main()
