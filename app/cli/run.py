"""`gptscope run`: measure and profile one variant."""

import argparse

from gptscope.app.cli import options


class Run:
    """Measures one variant, profiles it, prints the numbers with their proof, keeps the run."""

    summary = "measure and profile one setting of the levers"
    examples = """\
examples:
  gptscope run                                                   the bundled model, FP32, nothing fused
  gptscope run --model preset:gpt2-124m --precision bf16 --fuse all --kv-cache static
  gptscope run --workload train --batch 4 --context 256 --fuse attention,optimizer
  gptscope run --prompt "Once upon a time" --new-tokens 100
  gptscope run --model ./my-model --json result.json --trace trace.json.gz --csv kernels.csv
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        options.add_workload_options(parser)
        options.add_lever_options(parser)
        options.add_measuring_options(parser)
        options.add_output_options(parser)

    def run(self, args: argparse.Namespace) -> int:
        experiment = options.experiment_from(args, [options.variant_from(args)], quality=False)

        from gptscope.app.cli.measuring import Measuring
        from gptscope.app.cli.run_report import print_run

        measuring = Measuring(args)
        outcome = measuring.measure(experiment)
        print_run(measuring.out, outcome.records, outcome.run_ids[0] if outcome.run_ids else None)
        return measuring.finish(outcome)
