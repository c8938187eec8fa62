"""`gptscope models list|inspect|fetch`: which models there are, what one is, and getting one."""

import argparse
from typing import TYPE_CHECKING

from gptscope.app.cli.options import add_json_option

if TYPE_CHECKING:
    from gptscope.app.cli.json_output import JsonOutput

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
    """Lists, inspects and fetches models."""

    summary = "list known models, inspect one, or fetch one into the cache"
    examples = (
        "examples:\n  gptscope models list\n  gptscope models inspect preset:gpt2-124m\n"
        "  gptscope models fetch smollm2-135m"
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

    def run(self, args: argparse.Namespace) -> int:
        from gptscope.app.cli.json_output import JsonOutput

        output = JsonOutput(args.json)
        {"list": _list, "inspect": _inspect, "fetch": _fetch}[args.action](args, output)
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
