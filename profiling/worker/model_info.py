"""Models as records: what a source holds, and how much memory it would need."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import msgspec

from gptscope.models.config import GPTConfig
from gptscope.models.loaders import ModelDescription, ProgressFn, describe_model, fetch_model
from gptscope.models.prepare import PreparedModel
from gptscope.profiling.experiment import Workload, WorkloadKind
from gptscope.profiling.records import ModelFetched, ModelInfo, ModelInspected
from gptscope.profiling.worker.estimate import LeverSizes, estimate_memory
from gptscope.profiling.worker.output import Output

_FP32_BYTES = 4.0


def prepared_info(description: ModelDescription, prepared: PreparedModel) -> ModelInfo:
    """A model as it will run."""
    config = prepared.config
    info = model_info(replace(description, config=config), prepared.weight_bytes, prepared.kv_value_bytes)
    return msgspec.structs.replace(
        info, activation_bytes=prepared.activation_bytes, read_weight_bytes=prepared.read_weight_bytes
    )


def model_info(description: ModelDescription, weight_bytes: int, bytes_per_value: float) -> ModelInfo:
    """A model as records show it.

    Args:
        description: From its loader.
        weight_bytes: What its weights occupy.
        bytes_per_value: Of the KV cache.
    """
    config = description.config
    return ModelInfo(
        name=description.name,
        source=description.source,
        family=config.family,
        n_layer=config.n_layer,
        d_model=config.d_model,
        n_head=config.n_head,
        n_kv_head=config.n_kv_head,
        d_head=config.d_head,
        d_ff=config.d_ff,
        vocab_size=config.vocab_size,
        context_length=config.context_length,
        parameters=config.parameter_count,
        weight_bytes=weight_bytes,
        kv_bytes_per_token=config.kv_bytes_per_token(bytes_per_value),
        random_weights=description.random_weights,
        has_tokenizer=description.has_tokenizer,
        gated_mlp=config.mlp == "swiglu",
        tied_embeddings=config.tie_embeddings,
        learned_positions=config.position == "learned",
        notes=description.notes,
        fetch_bytes=description.fetch_bytes,
    )


def inspect_model(source: str) -> ModelInspected:
    """Describe a source without loading its weights.

    Raises:
        ModelError: It is missing, damaged or unsupported.
    """
    description = describe_model(source)
    weight_bytes = int(description.config.parameter_count * _FP32_BYTES)
    return ModelInspected(
        model=model_info(description, weight_bytes, _FP32_BYTES),
        estimated_bytes={kind: _estimated_bytes(description.config, kind) for kind in get_args(WorkloadKind)},
    )


def _estimated_bytes(config: GPTConfig, kind: WorkloadKind) -> int:
    """In FP32, unfused, batch 1, at the default sizes as far as they fit the model's context."""
    new_tokens = min(Workload().new_tokens, max(1, config.context_length // 2))
    context = max(2, min(Workload().context, config.context_length - new_tokens))
    work = Workload(kind=kind, context=context, new_tokens=new_tokens)
    return estimate_memory(config, work, LeverSizes(_FP32_BYTES, fused_attention=False, kv_cache="dynamic")).total


def fetch(source: str, output: Output) -> ModelFetched:
    """Bring a model's files to this machine, telling progress.

    Raises:
        ModelError: There is nothing to fetch, or what came is damaged.
        OfflineError: Its place cannot be reached.
    """
    path = fetch_model(source, progress_to(output))
    return ModelFetched(model=source, path=str(path), bytes=_size(path))


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def progress_to(output: Output) -> ProgressFn:
    """A loader's progress as records: bytes are a download, everything else is loading."""

    def tell(done: float, total: float, unit: str, note: str) -> None:
        output.progress("fetch" if unit == "bytes" else "load", done, total, unit, note)

    return tell
