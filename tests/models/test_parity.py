"""Our decoder against transformers, family by family: same files, same logits, same greedy tokens."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gptscope.models.decoding.session import DecodeSession
from gptscope.models.gpt import GPT
from gptscope.models.levers import LeverContext, Machine
from gptscope.models.loaders import fetch_model, load_model
from gptscope.models.prepare import prepare

NEW_TOKENS = 32
PROMPT = 12
SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": None,
}
GPT2_SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "n_embd": 48,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": None,
    "eos_token_id": None,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LINEAR_ROPE = {"rope_type": "linear", "factor": 4.0}

# name -> transformers' config class, its fields
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", GPT2_SIZES),
    "gpt2-untied-exact-gelu": (
        "GPT2Config",
        {**GPT2_SIZES, "tie_word_embeddings": False, "activation_function": "gelu", "n_inner": 72},
    ),
    "neox-parallel": ("GPTNeoXConfig", {**SIZES, "rotary_pct": 0.5}),
    "neox-serial-linear-rope": (
        "GPTNeoXConfig",
        {
            **SIZES,
            "use_parallel_residual": False,
            "attention_bias": False,
            "tie_word_embeddings": True,
            "rotary_pct": 0.5,
            "rope_scaling": LINEAR_ROPE,
        },
    ),
    "llama": ("LlamaConfig", SIZES),
    "llama-gqa-tied-llama3-rope": (
        "LlamaConfig",
        {**SIZES, "num_key_value_heads": 2, "tie_word_embeddings": True, "rope_scaling": LLAMA3_ROPE},
    ),
    "llama-mqa-biases-linear-rope": (
        "LlamaConfig",
        {
            **SIZES,
            "num_key_value_heads": 1,
            "head_dim": 20,
            "attention_bias": True,
            "mlp_bias": True,
            "rms_norm_eps": 1e-3,
            "rope_scaling": LINEAR_ROPE,
        },
    ),
    "mistral-short-window": ("MistralConfig", {**SIZES, "num_key_value_heads": 2, "sliding_window": 7}),
    "mistral-no-window": ("MistralConfig", {**SIZES, "num_key_value_heads": 2, "sliding_window": None}),
    "qwen2": ("Qwen2Config", {**SIZES, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    "qwen2-all-layers-slide": (
        "Qwen2Config",
        {**SIZES, "num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 0},
    ),
    "qwen3": ("Qwen3Config", {**SIZES, "num_key_value_heads": 2, "head_dim": 24, "attention_bias": True}),
}


@dataclass(frozen=True)
class Pair:
    """The same weights in transformers and in a folder."""

    theirs: Any
    folder: Path


@pytest.fixture(scope="module")
def transformers() -> Any:
    import transformers as library

    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    return library


@pytest.fixture(scope="module")
def make_pair(transformers: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Pair]:
    made: dict[str, Pair] = {}

    def make(case: str) -> Pair:
        if case not in made:
            kind, fields = CASES[case]  # copied below: transformers writes into the dictionaries it is given
            torch.manual_seed(len(made))
            model = transformers.AutoModelForCausalLM.from_config(
                getattr(transformers, kind)(**deepcopy(fields))
            ).eval()
            with torch.no_grad():
                for parameter in model.parameters():  # large enough that every part of the network matters
                    parameter.add_(torch.randn_like(parameter) * 0.15)
            folder = tmp_path_factory.mktemp(case)
            model.save_pretrained(folder)
            made[case] = Pair(model, folder)
        return made[case]

    return make


def ours(pair: Pair) -> GPT:
    return load_model(str(pair.folder)).model


def random_tokens(batch: int, length: int) -> Tensor:
    return torch.randint(1, 96, (batch, length), generator=torch.Generator().manual_seed(7))


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_those_of_transformers(case: str, make_pair: Callable[[str], Pair]) -> None:
    pair = make_pair(case)
    tokens = random_tokens(2, 40)
    with torch.no_grad():
        expected, found = pair.theirs(tokens).logits, ours(pair)(tokens)
    assert expected.std() > 0.5
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("case", CASES)
def test_greedy_tokens_equal_those_of_transformers(case: str, batch: int, make_pair: Callable[[str], Pair]) -> None:
    pair = make_pair(case)
    tokens = random_tokens(batch, PROMPT)
    padding = torch.arange(batch) * 2  # 0, 2, 4, 6 fillers at the left
    real = torch.arange(PROMPT)[None] >= padding[:, None]
    tokens = torch.where(real, tokens, 0)
    theirs = [
        pair.theirs.generate(
            tokens,
            attention_mask=real.long(),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            use_cache=use_cache,
            pad_token_id=0,
        )[:, PROMPT:]
        for use_cache in (True, False)
    ]
    assert torch.equal(*theirs), "transformers disagrees with itself: the case is a near-tie and proves nothing"
    for cache in ("none", "dynamic", "static"):
        found = greedy(ours(pair), tokens, padding if batch > 1 else None, cache)
        assert found.tolist() == theirs[0].tolist(), cache


def greedy(model: GPT, tokens: Tensor, padding: Tensor | None, kv_cache: str) -> Tensor:
    machine = Machine(device="cpu", device_name="test", cores=1, memory_bytes=2**30)
    context = LeverContext(machine=machine, config=model.config, workload="decode", precision="fp32", kv_cache=kv_cache)
    prepared = prepare(model, context, torch.device("cpu"))
    session = DecodeSession(prepared, tokens.shape[0], PROMPT + NEW_TOKENS)
    produced = [session.prefill(tokens, padding)]
    produced += [session.step() for _ in range(NEW_TOKENS - 1)]
    return torch.stack(produced, dim=1)


def test_shards_load_like_one_file(make_pair: Callable[[str], Pair], tmp_path: Path) -> None:
    pair = make_pair("qwen3")
    pair.theirs.save_pretrained(tmp_path, max_shard_size="30KB")
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 2
    whole, sharded = ours(pair).state_dict(), load_model(str(tmp_path)).model.state_dict()
    assert whole.keys() == sharded.keys()
    assert all(torch.equal(whole[name], sharded[name]) for name in whole)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_loading_in_16_bits_equals_loading_and_casting(dtype: torch.dtype, make_pair: Callable[[str], Pair]) -> None:
    pair = make_pair("gpt2")
    direct = load_model(str(pair.folder), dtype=dtype).model.state_dict()
    cast = ours(pair).to(dtype).state_dict()
    assert all(torch.equal(direct[name], cast[name]) for name in cast)
    assert {tensor.dtype for tensor in direct.values()} == {dtype}


def test_tied_models_share_one_matrix_and_count_it_once(make_pair: Callable[[str], Pair]) -> None:
    for case in ("gpt2", "gpt2-untied-exact-gelu", "qwen2", "llama"):
        model = ours(make_pair(case))
        assert (model.lm_head.weight is model.embed.weight) == model.config.tie_embeddings
        assert sum(parameter.numel() for parameter in model.parameters()) == model.config.parameter_count


def test_bundled_model_equals_the_same_folder_in_transformers(transformers: Any) -> None:
    folder = fetch_model("bundled")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    loaded = load_model("bundled")
    assert loaded.tokenizer is not None
    text = "The old man went down to the sea in the morning, and the waters were still."
    ids = loaded.tokenizer.encode(text)
    assert ids == transformers.AutoTokenizer.from_pretrained(folder)(text).input_ids
    with torch.no_grad():
        torch.testing.assert_close(
            loaded.model(torch.tensor([ids])), theirs(torch.tensor([ids])).logits, atol=1e-4, rtol=0
        )
