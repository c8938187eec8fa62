"""Writes a model as a Hugging Face folder, pruned before or not, and sees that it can be loaded again."""

from pathlib import Path

import torch

from gptscope.models.compression.pruning import SEEN, ZEROS, zero_counters
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext
from gptscope.models.loaders import describe_model, load_model
from gptscope.models.loaders.saving import check_room, check_source, check_target, save_folder
from gptscope.models.prepare import prepare
from gptscope.profiling.machine import facts
from gptscope.profiling.records import ModelSaved, SaveModel
from gptscope.profiling.worker.failures import NotEnoughMemoryError
from gptscope.profiling.worker.model_info import progress_to
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.request import check_levers, to_lever_machine

_BYTES_PER_PARAMETER = 12
"""FP32 weights, their form in the file, and the copy that is read back."""


def save_model(command: SaveModel, output: Output) -> ModelSaved:
    """Do all of it, telling progress.

    Raises:
        ModelError: The model cannot be loaded, the folder cannot be written, or the format cannot say the pruned shape.
        LeverError: The pruning does not exist or does nothing here.
        NotEnoughMemoryError: It does not fit into memory.
    """
    folder = Path(command.folder).expanduser()
    check_target(folder)
    check_source(command.model)
    described = describe_model(command.model)
    check_room(folder, described.config)
    context = LeverContext(
        machine=to_lever_machine(facts.machine_info("cpu")),
        config=described.config,
        workload="prefill",
        precision="fp32",
        kv_cache="none",
        pruning=command.pruning,
        options={command.pruning: command.options} if command.options else {},
    )
    check_levers(context)
    needed, free = described.config.parameter_count * _BYTES_PER_PARAMETER, facts.memory_available_bytes()
    if needed > free:
        raise NotEnoughMemoryError(
            f"Saving {described.name} needs about {needed / 1e9:.1f} GB (its weights, a copy for the file and one that "
            f"is read back), but only {free / 1e9:.1f} GB of memory are free."
        )
    output.progress("load", 0, 0, note=f"reading {command.model}")
    loaded = load_model(command.model, dtype=torch.float32, seed=command.seed, progress=progress_to(output))
    prepared = prepare(loaded.model, context, torch.device("cpu"))
    output.progress("load", 0, 0, note=f"saving {folder}")
    save_folder(prepared.model, loaded.tokenizer, command.model, folder)
    check_saved(prepared.model, folder)
    counted = zero_counters(prepared.model)
    return ModelSaved(
        model=command.model,
        folder=str(folder.resolve()),
        bytes=sum(file.stat().st_size for file in folder.glob("*.safetensors")),
        parameters_before=described.config.parameter_count,
        parameters=prepared.config.parameter_count,
        zeros=counted[ZEROS] / counted[SEEN],
        notes=prepared.warnings,
    )


def check_saved(model: GPT, folder: Path) -> None:
    """Load what was saved, and compare."""
    again = load_model(str(folder)).model.state_dict()
    for name, value in model.state_dict().items():
        if not torch.equal(again[name], value.float()):
            raise RuntimeError(f"{name} in {folder} is not what was to be saved")
