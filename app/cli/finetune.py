"""`gptscope finetune`: train a model so that it lives with a recipe's rounding, and save it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gptscope.app.cli.options import UsageError, add_json_option, parse_options
from gptscope.profiling.experiment import DEFAULT_SEED

if TYPE_CHECKING:
    from gptscope.app.cli.console import Console
    from gptscope.profiling.records import FineTune, FineTuned, TextScore

_ENDS = 20
"""Steps whose losses are averaged at either end."""


class FineTuneCommand:
    """Quantization-aware training, of all layers or of the most sensitive ones."""

    summary = "train a model for a low-precision recipe and save it as a Hugging Face folder"
    examples = (
        "examples:\n  gptscope finetune --recipe int8-static --steps 200 --out tuned\n"
        "  gptscope finetune --mode targeted --layers 3 --recipe int8-dynamic --option granularity=tensor --out tuned\n"
        "  gptscope compare --candidate precision=int8-static --candidate precision=int8-static,model=tuned"
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--model", default="bundled", metavar="MODEL", help="what to train (default: bundled)")
        parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="where to save; a new folder")
        parser.add_argument(
            "--mode",
            choices=("qat", "targeted"),
            default="qat",
            help="qat: all layers train; targeted: only the --layers most sensitive ones (default: qat)",
        )
        parser.add_argument(
            "--recipe",
            metavar="P",
            help="what to train for (default: int8-static; after a pruning fp32, which rounds nothing)",
        )
        parser.add_argument("--pruning", default="none", metavar="P", help="what to prune before (default: none)")
        parser.add_argument(
            "--pruning-option",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting of the pruning, such as mlp=0.5; may be repeated",
        )
        parser.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting of the recipe, such as granularity=tensor; may be repeated",
        )
        parser.add_argument("--steps", type=int, default=200, metavar="N", help="optimizer steps (default: 200)")
        parser.add_argument("--lr", type=float, default=2e-5, metavar="X", help="learning rate (default: 2e-5)")
        parser.add_argument("--layers", type=int, default=3, metavar="K", help="for targeted: how many (default: 3)")
        parser.add_argument(
            "--goal",
            choices=("original", "text"),
            default="original",
            help="what to learn: to predict as the unquantized model does, or the text itself (default: original)",
        )
        parser.add_argument("--text", type=Path, metavar="FILE", help="text to read (default: gptscope's own)")
        parser.add_argument("--batch", type=int, default=8, metavar="N", help="pieces of text per step (default: 8)")
        parser.add_argument("--context", type=int, default=128, metavar="N", help="tokens per piece (default: 128)")
        parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="decides which pieces of text are read")
        parser.add_argument("--threads", type=int, metavar="N", help="kernel threads (default: one per physical core)")
        add_json_option(parser)

    def run(self, args: argparse.Namespace) -> int:
        from gptscope.app.cli import console
        from gptscope.app.cli.json_output import JsonOutput
        from gptscope.app.cli.progress import progress_view
        from gptscope.app.cli.session import ask
        from gptscope.profiling.records import FineTuned

        output = JsonOutput(args.json)
        found = ask(request_from(args), FineTuned, progress_view(console.messages()))
        print_report(output.console(), found)
        output.write("finetuned", found)
        return 0


def request_from(args: argparse.Namespace) -> "FineTune":
    """The command for the engine.

    Raises:
        UsageError: A number or a setting is impossible.
    """
    from gptscope.profiling.records import FineTune

    pruning = args.pruning.lower()
    if args.pruning_option and pruning == "none":
        raise UsageError("--pruning-option is a setting of the pruning, but --pruning is none. Give --pruning too.")
    recipe = (args.recipe or ("int8-static" if pruning == "none" else "fp32")).lower()
    of_pruning = [f"{pruning}.{option}" for option in args.pruning_option]
    given = [f"{recipe}.{option}" for option in args.option]
    try:
        return FineTune(
            model=args.model,
            folder=str(args.out.expanduser().absolute()),
            mode=args.mode,
            recipe=recipe,
            options=parse_options(given, "--option").get(recipe, {}),
            pruning=pruning,
            pruning_options=parse_options(of_pruning, "--pruning-option").get(pruning, {}),
            steps=args.steps,
            lr=args.lr,
            layers=args.layers,
            goal=args.goal,
            text=None if args.text is None else str(args.text.expanduser().absolute()),
            batch=args.batch,
            context=args.context,
            seed=args.seed,
            threads=args.threads,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def print_report(out: "Console", found: "FineTuned") -> None:
    """What was trained and what it brought."""
    from gptscope.app.cli.console import Column
    from gptscope.app.viewmodels.formatting import count, duration, number

    asked = found.request
    ends = min(_ENDS, -(-len(found.losses) // 2))
    first, last = sum(found.losses[:ends]) / ends, sum(found.losses[-ends:]) / ends
    what = "distance to the original (KL, nats)" if asked.goal == "original" else "loss (nats)"
    out.pairs(
        (
            ("Trained", f"{asked.model} for {_aim(asked)}, {len(found.losses)} steps in {duration(found.seconds)}"),
            ("On", f"{found.text}, {asked.batch} pieces of {asked.context} tokens per step"),
            ("Layers", _layers(found)),
            ("Loss", f"{what}: {number(first)} in the first {ends} steps, {number(last)} in the last"),
        )
    )
    out.line()
    rows = (
        ("not quantized", perplexity_text(found.original), perplexity_text(found.after)),
        (asked.recipe, perplexity_text(found.quantized_before), perplexity_text(found.quantized_after)),
    )
    if asked.pruning != "none":
        rows = (
            ("as it was", perplexity_text(found.original), "n/a: trained pruned"),
            (_aim(asked), perplexity_text(found.quantized_before), perplexity_text(found.quantized_after)),
        )
    columns = (Column("perplexity", "left"), Column("before", "right"), Column("after", "right"))
    out.table(columns, rows, f"On {count(found.tokens)} tokens of evaluation text")
    out.line(f"{_aim(asked)}: {_verdict(found)}", "good" if _better(found) else "warn")
    out.line(f'Saved in {found.folder}. Use it with --model, or in compare with "model={asked.folder}".')


def perplexity_text(score: "TextScore") -> str:
    """`14.88 ± 0.40`."""
    from gptscope.app.viewmodels.formatting import number

    if score.perplexity is None:
        return "n/a"
    return (
        f"{number(score.perplexity)} ± {number(score.error)}" if score.error is not None else number(score.perplexity)
    )


def _aim(asked: "FineTune") -> str:
    """`int8-static`, `structured`, `structured with int8-static`."""
    if asked.pruning == "none":
        return asked.recipe
    return asked.pruning if asked.recipe == "fp32" else f"{asked.pruning} with {asked.recipe}"


def _layers(found: "FineTuned") -> str:
    if found.request.mode == "qat":
        return f"all {len(found.trained)}"
    return f"the {len(found.trained)} most sensitive: {', '.join(found.trained)}"


def _better(found: "FineTuned") -> bool:
    change = found.change
    return change.perplexity is not None and change.error is not None and change.perplexity < -2 * change.error


def _verdict(found: "FineTuned") -> str:
    from gptscope.app.viewmodels.formatting import number

    change = found.change
    if change.perplexity is None or change.error is None:
        return "the change cannot be judged."
    moved = f"perplexity {'+' if change.perplexity > 0 else '−'}{number(abs(change.perplexity))}"
    moved += f" ± {number(change.error)}"
    if abs(change.perplexity) <= 2 * change.error:
        return f"{moved}, no real difference."
    return f"{moved}, {'better' if change.perplexity < 0 else 'worse'} than before."
