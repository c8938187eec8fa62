"""`gptscope models list|inspect|fetch|save`: which models there are, what one is, getting one, and writing one."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gptscope.app.cli.options import UsageError, add_json_option, parse_options

if TYPE_CHECKING:
    from gptscope.app.cli.json_output import JsonOutput
    from gptscope.profiling.records import SaveModel

SOURCES = (
    ("bundled", "a small trained GPT that comes along; works offline"),
    ("preset:NAME", "a known architecture with random weights: speed only, no quality"),
    ("NAME", "a catalogue entry, fetched on demand"),
    ("org/name", "a model of the Hugging Face hub"),
    ("FOLDER", "a Hugging Face folder with config.json and .safetensors"),
    ("FILE.gguf", "a GGUF file (F32, F16, BF16, Q8_0, Q4_*)"),
    ("FILE.pt", "a nanoGPT checkpoint"),
)


class Models:
    """Lists, inspects, fetches and saves models."""

    summary = "list known models, inspect one, fetch one into the cache, or save one as a folder"
    examples = (
        "examples:\n  gptscope models list\n  gptscope models inspect preset:gpt2-124m\n"
        "  gptscope models fetch smollm2-135m\n"
        "  gptscope models save smollm2-135m pruned --pruning structured --option mlp=0.5"
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        add_json_option(actions.add_parser("list", help="what --model takes"))
        inspect = actions.add_parser("inspect", help="what a model is, without loading its weights")
        inspect.add_argument("model", metavar="MODEL")
        add_json_option(inspect)
        fetch = actions.add_parser("fetch", help="download a catalogue entry or hub model into the cache")
        fetch.add_argument("model", metavar="MODEL")
        add_json_option(fetch)
        save = actions.add_parser("save", help="write a model as a Hugging Face folder in FP32, pruned or not")
        save.add_argument("model", metavar="MODEL")
        save.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder")
        save.add_argument("--pruning", default="none", metavar="P", help="what to prune first (default: none)")
        save.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting of the pruning, such as mlp=0.5",
        )
        add_json_option(save)

    def run(self, args: argparse.Namespace) -> int:
        from gptscope.app.cli.json_output import JsonOutput

        output = JsonOutput(args.json)
        {"list": _list, "inspect": _inspect, "fetch": _fetch, "save": _save}[args.action](args, output)
        return 0


def _list(args: argparse.Namespace, output: "JsonOutput") -> None:
    from gptscope.app.cli import console
    from gptscope.app.cli.progress import progress_view
    from gptscope.app.cli.session import ask
    from gptscope.profiling.records import AskCapabilities, Capabilities

    found = ask(AskCapabilities(), Capabilities, progress_view(console.messages()))
    out = output.console()
    out.table((console.Column("--model", "left"), console.Column("what it is", "left")), SOURCES, "Sources")
    out.line()
    out.pairs((("Presets", ", ".join(f"preset:{name}" for name in found.presets)),))
    out.pairs((("Catalogue", ", ".join(found.catalogue)),))
    sources = [{"model": model, "summary": summary} for model, summary in SOURCES]
    output.write("models", {"sources": sources, "presets": found.presets, "catalogue": found.catalogue})


def _inspect(args: argparse.Namespace, output: "JsonOutput") -> None:
    from gptscope.app.cli import console
    from gptscope.app.cli.model_report import print_model
    from gptscope.app.cli.progress import progress_view
    from gptscope.app.cli.session import ask
    from gptscope.profiling.records import InspectModel, ModelInspected

    found = ask(InspectModel(model=args.model), ModelInspected, progress_view(console.messages()))
    print_model(output.console(), found)
    output.write("model", found)


def _fetch(args: argparse.Namespace, output: "JsonOutput") -> None:
    from gptscope.app.cli import console
    from gptscope.app.cli.progress import progress_view
    from gptscope.app.cli.session import ask
    from gptscope.app.viewmodels.formatting import quantity
    from gptscope.profiling.records import FetchModel, ModelFetched

    found = ask(FetchModel(model=args.model), ModelFetched, progress_view(console.messages()))
    out = output.console()
    out.line(f"{found.model} is in {found.path} ({quantity(found.bytes, 'bytes')}).")
    if found.sha256:
        out.line(f"SHA-256 {found.sha256}", "dim")
    output.write("fetched", found)


def save_request(args: argparse.Namespace) -> "SaveModel":
    """The command for the engine.

    Raises:
        UsageError: Settings without a pruning, or one that is not NAME=VALUE.
    """
    from gptscope.profiling.records import SaveModel

    pruning = args.pruning.lower()
    if args.option and pruning == "none":
        raise UsageError("--option is a setting of the pruning, but --pruning is none. Give --pruning too.")
    return SaveModel(
        model=args.model,
        folder=str(args.folder.expanduser().absolute()),
        pruning=pruning,
        options=parse_options([f"{pruning}.{one}" for one in args.option], "--option").get(pruning, {}),
    )


def _save(args: argparse.Namespace, output: "JsonOutput") -> None:
    from gptscope.app.cli import console
    from gptscope.app.cli.progress import progress_view
    from gptscope.app.cli.session import ask
    from gptscope.app.viewmodels.formatting import count, quantity
    from gptscope.profiling.records import ModelSaved

    found = ask(save_request(args), ModelSaved, progress_view(console.messages()))
    out = output.console()
    out.line(f"{found.model} is in {found.folder} ({quantity(found.bytes, 'bytes')}, FP32).")
    if found.parameters != found.parameters_before:
        out.line(f"{count(found.parameters)} of {count(found.parameters_before)} parameters are left.")
    if found.zeros:
        out.line(f"{found.zeros:.1%} of the weights in the layers are zero.")
    for note in found.notes:
        out.line(note, "warn")
    output.write("saved", found)
