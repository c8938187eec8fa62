"""Check the bundled model: agreement with transformers, perplexity, what INT8 costs, what it writes.

    python assets/bundled/check.py --model assets/bundled

The INT8 here is simulated in FP32 and deliberately plain: it answers whether careless INT8 hurts this model as it
hurts large ones, which is what makes the model useful for showing a quality loss.
"""

import argparse
import copy
import math
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from gptscope.assets.bundled import corpus, export
from gptscope.models.gpt import GPT

PROMPTS = ("Call me Ishmael. Some years ago", "The Congress of the United States has", "And it came to pass")


def windows_of(text: str, tokenizer: Tokenizer, length: int) -> Tensor:
    """Windows of `length + 1` tokens over a text of several documents, an end-of-text token before each document."""
    end = export.end_of_text(tokenizer)
    tokens = [token for part in corpus.documents_of(text) for token in [end, *tokenizer.encode(part).ids]]
    count = (len(tokens) - 1) // length
    return torch.tensor([tokens[i * length : (i + 1) * length + 1] for i in range(count)])


@torch.inference_mode()
def perplexity(model: nn.Module, windows_BL: Tensor) -> float:
    """Exponential of the mean loss per token."""
    losses = [
        functional.cross_entropy(model(window[None, :-1])[0].float(), window[1:], reduction="none")
        for window in windows_BL
    ]
    return math.exp(torch.cat(losses).double().mean().item())


@torch.inference_mode()
def greedy(model: nn.Module, tokenizer: Tokenizer, prompt: str, new_tokens: int) -> str:
    """The prompt and its greedy continuation."""
    tokens = [export.end_of_text(tokenizer), *tokenizer.encode(prompt).ids]
    for _ in range(new_tokens):
        tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
    return tokenizer.decode(tokens)


class ActivationQuantizer(nn.Module):
    """A linear layer whose input is rounded to 8 bits over one fixed range for the whole tensor."""

    def __init__(self, linear: nn.Linear, symmetric: bool) -> None:
        super().__init__()
        self.linear = linear
        self.symmetric = symmetric
        self.low, self.high = math.inf, -math.inf
        self.observing = True

    def forward(self, x: Tensor) -> Tensor:
        """Widen the range while observing; round once observed."""
        if self.observing:
            self.low, self.high = min(self.low, x.min().item()), max(self.high, x.max().item())
        elif self.symmetric:
            scale = max(-self.low, self.high, 1e-12) / 127
            x = (x / scale).round().clamp(-127, 127) * scale
        else:
            scale = max(self.high - self.low, 1e-12) / 255
            zero = round(-self.low / scale)
            x = ((x / scale + zero).round().clamp(0, 255) - zero) * scale
        y: Tensor = self.linear(x)
        return y


def linears(model: GPT) -> list[tuple[nn.Module, str, nn.Linear]]:
    """Parent, name and module of every linear layer, the output matrix too."""
    return [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Linear)
    ]


def round_weight(linear: nn.Linear, per_channel: bool) -> None:
    """Round a weight to 8 bits, with one scale per output channel or one for all."""
    weight = linear.weight.detach()
    largest = weight.abs().amax(dim=1, keepdim=True) if per_channel else weight.abs().max()
    scale = largest / 127
    # a new parameter, because the output matrix shares its old one with the embedding, which stays exact
    linear.weight = nn.Parameter((weight / scale).round().clamp(-127, 127) * scale)


def weight_only_int8(model: GPT) -> GPT:
    """A copy whose weights are rounded to 8 bits with one scale per output channel."""
    rounded = copy.deepcopy(model)
    for _, _, linear in linears(rounded):
        round_weight(linear, per_channel=True)
    return rounded


def naive_int8(model: GPT, calibration_BL: Tensor, symmetric: bool = True) -> GPT:
    """A copy with weights and activations in 8 bits, one range per tensor, ranges fixed by minimum and maximum."""
    rounded = copy.deepcopy(model)
    quantizers = []
    for parent, name, linear in linears(rounded):
        round_weight(linear, per_channel=False)
        quantizers.append(ActivationQuantizer(linear, symmetric))
        setattr(parent, name, quantizers[-1])
    with torch.inference_mode():
        for window in calibration_BL:
            rounded(window[None, :-1])
    for quantizer in quantizers:
        quantizer.observing = False
    return rounded


def spread(windows_BL: Tensor, count: int | None) -> Tensor:
    """This many windows, evenly spread over the text, so that each genre is among them; None: all."""
    if count is None or count >= len(windows_BL):
        return windows_BL
    return windows_BL[torch.arange(count) * len(windows_BL) // count]


@torch.inference_mode()
def largest_activations(model: GPT, windows_BL: Tensor) -> dict[str, float]:
    """Largest input of each linear layer, as a multiple of that input's root mean square."""
    peaks: dict[str, float] = {}

    def watch(name: str) -> None:
        def hook(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            x = inputs[0]
            ratio = (x.abs().max() / x.pow(2).mean().sqrt()).item()
            peaks[name] = max(peaks.get(name, 0.0), ratio)

        handles.append(model.get_submodule(name).register_forward_pre_hook(hook))

    handles: list[torch.utils.hooks.RemovableHandle] = []
    for name, module in model.blocks.named_modules(prefix="blocks"):
        if isinstance(module, nn.Linear):
            watch(name)
    for window in windows_BL:
        model(window[None, :-1])
    for handle in handles:
        handle.remove()
    return peaks


@torch.inference_mode()
def difference_to_transformers(folder: Path, model: GPT, windows_BL: Tensor) -> float:
    """Largest difference between our logits and those of transformers' own Llama, both in FP32."""
    from transformers import LlamaForCausalLM

    reference = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)  # in evaluation mode
    tokens_BL = windows_BL[:, :-1]
    return float((reference(tokens_BL).logits - model(tokens_BL)).abs().max())


def report(folder: Path, windows: int | None) -> Iterable[str]:
    """The lines of the report."""
    model, tokenizer = export.read_folder(folder)
    length = model.config.context_length
    evaluation = windows_of((folder / "eval.txt").read_text(encoding="utf-8"), tokenizer, length)
    evaluation, few = spread(evaluation, windows), spread(evaluation, 8)
    calibration = windows_of((folder / "calibration.txt").read_text(encoding="utf-8"), tokenizer, length)
    calibration = spread(calibration, windows)
    yield f"parameters {model.config.parameter_count:,}; windows {len(evaluation)} evaluation, {len(calibration)} cal."
    yield f"largest difference to transformers' logits {difference_to_transformers(folder, model, few[:2]):.2e}"
    exact = perplexity(model, evaluation)
    yield f"perplexity FP32 {exact:.4f}; 8 spread windows {perplexity(model, few):.4f}"
    yield f"perplexity of the calibration text (training side) {perplexity(model, calibration):.4f}"
    for name, rounded in (
        ("weight-only INT8, per channel", weight_only_int8(model)),
        ("naive INT8 (W8A8, per tensor, static min-max, symmetric)", naive_int8(model, calibration)),
        ("the same, asymmetric activations", naive_int8(model, calibration, symmetric=False)),
    ):
        value = perplexity(rounded, evaluation)
        yield f"perplexity {name} {value:.4f} ({100 * (value / exact - 1):+.2f} %)"
    peaks = sorted(largest_activations(model, few).items(), key=lambda item: -item[1])
    yield "largest inputs / their RMS: " + ", ".join(f"{name} {peak:.0f}" for name, peak in peaks[:8])
    for prompt in PROMPTS:
        yield f"--- {greedy(model, tokenizer, prompt, 64)!r}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Check gptscope's bundled model.")
    parser.add_argument("--model", type=Path, default=Path(__file__).parent, help="model folder (default: this one)")
    parser.add_argument("--windows", type=int, help="use only this many windows of each text (default: all)")
    arguments = parser.parse_args()
    for line in report(arguments.model, arguments.windows):
        print(line, flush=True)


if __name__ == "__main__":
    main()
