"""`gptscope demo`: what the levers do to the bundled model, in under 90 seconds (`--quick`: under 40)."""

import argparse

import msgspec

from gptscope.app.cli import options
from gptscope.profiling.experiment import Experiment, Variant, Workload

PLAIN = Variant(precision="fp32", fusions=(), kv_cache="none", name="FP32, plain")
CACHED = Variant(precision="fp32", fusions=(), kv_cache="dynamic", name="FP32, plain, cached")
TUNED = Variant(precision="bf16", fusions=("all",), kv_cache="static", name="BF16, fused, cached")


def demo_experiment(*, quick: bool, threads: int | None = None) -> Experiment:
    """Plain FP32 without a KV cache against BF16 with every fusion and a static cache; the full demo adds a step."""
    variants: tuple[Variant, ...] = (PLAIN, TUNED) if quick else (PLAIN, CACHED, TUNED)
    workload = Workload(
        kind="decode", batch=1, context=32 if quick else 64, new_tokens=32 if quick else 64, steps=6 if quick else 8
    )
    if threads is not None:
        variants = tuple(msgspec.structs.replace(variant, threads=threads) for variant in variants)
    return Experiment(
        model="bundled", workload=workload, variants=variants, profile_steps=8 if quick else None, quality=True
    )


class Demo:
    """Compares plain with tuned on the bundled model and says in a sentence what came out."""

    summary = "compare FP32 plain with BF16, fused, cached on the bundled model"
    examples = "examples:\n  gptscope demo\n  gptscope demo --quick --no-keep"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--quick", action="store_true", help="fewer tokens, two variants")
        parser.add_argument("--threads", type=int, metavar="N", help="kernel threads (default: one per physical core)")
        options.add_output_options(parser)

    def run(self, args: argparse.Namespace) -> int:
        options.checked_threads(args.threads)

        from gptscope.app.cli.compare_report import print_comparison
        from gptscope.app.cli.measuring import Measuring

        args.profile_steps = None
        measuring = Measuring(args)
        outcome = measuring.measure(demo_experiment(quick=args.quick, threads=args.threads))
        print_comparison(measuring.out, outcome.records, outcome.run_ids)
        return measuring.finish(outcome)
