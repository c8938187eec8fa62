"""Prints what a model is."""

from gptscope.app.cli.console import Console
from gptscope.app.viewmodels import formatting as f
from gptscope.profiling.records import ModelInspected


def print_model(console: Console, inspected: ModelInspected) -> None:
    """Shape, sizes, and the memory each workload is estimated to need."""
    model = inspected.model
    heads = f"{f.count(model.n_head)} heads of {f.count(model.d_head)}"
    if model.n_kv_head != model.n_head:
        heads += f", {f.count(model.n_kv_head)} for keys and values"
    yes_no = {True: "yes", False: "no"}
    needed = (f"{kind} {f.quantity(size, 'bytes')}" for kind, size in inspected.estimated_bytes.items())
    console.pairs(
        (
            ("Name", model.name),
            ("Source", model.source),
            ("Family", model.family),
            ("Layers", f.count(model.n_layer)),
            ("Width", f"{f.count(model.d_model)}, feed-forward {f.count(model.d_ff)}"),
            ("Attention", heads),
            ("Vocabulary", f"{f.count(model.vocab_size)} tokens"),
            ("Longest context", f"{f.count(model.context_length)} tokens"),
            ("Parameters", f"{f.count(model.parameters)}, {f.quantity(model.weight_bytes, 'bytes')}"),
            ("KV cache", f"{f.quantity(model.kv_bytes_per_token, 'bytes')} per token"),
            ("Weights", "random: speed only, no quality" if model.random_weights else "trained"),
            ("Tokenizer", yes_no[model.has_tokenizer]),
            ("Download", f"{f.quantity(model.fetch_bytes, 'bytes')} when first used" if model.fetch_bytes else "none"),
            ("Memory needed", ", ".join(needed) + " (estimated, FP32, batch 1)"),
        )
    )
    for note in model.notes:
        console.line(f"  {note}", "dim")
