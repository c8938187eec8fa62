"""Two models' next-token logits for the same text, compared row by row. Pure numpy, one window in memory at most.

Names end in their shape: R rows (positions of the text), V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptscope.profiling.records import Logits

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]

_VALUES_AT_ONCE = 1 << 18  # float64 work arrays of 2 MiB stay in the cache


@dataclass(frozen=True, slots=True)
class RowFigures:
    """What each usable position of one piece says. Arrays have one entry per position, in nats or logits."""

    baseline_nll: Float64
    """Negative log-likelihood of the true next token under the baseline."""
    candidate_nll: Float64
    kl: Float64
    """KL(baseline ‖ candidate) of the next-token distributions."""
    same_top1: npt.NDArray[np.bool_]
    gap_shift: Float64
    """How far the candidate moved the gap between the baseline's best two logits."""
    signal: Float64
    """Sum of the baseline's squared logits, their mean taken off (which changes no probability)."""
    noise: Float64
    """Sum of the squared differences of both models' logits, their means taken off."""
    cosine: Float64
    """Of the angle between both models' logits, their means taken off; 1 where both are flat."""
    broken_candidate: int
    """Positions left out because the candidate's logits hold NaN or infinity."""
    broken_baseline: int
    """Positions left out because the baseline's do."""


def compare_rows(baseline_RV: Float32, candidate_RV: Float32, targets_R: npt.NDArray[np.int64]) -> RowFigures:
    """Compare two models' logits at the same positions.

    Args:
        baseline_RV: The baseline's logits.
        candidate_RV: The candidate's logits.
        targets_R: The true next tokens.

    Returns:
        Figures of the positions where both models' logits are finite, and how many were left out.

    Raises:
        ValueError: The two models disagree on the vocabulary's size.
    """
    if baseline_RV.shape != candidate_RV.shape:
        raise ValueError(
            f"The outputs cannot be compared: the baseline gives {baseline_RV.shape[1]} logits for "
            f"{baseline_RV.shape[0]} positions, the candidate {candidate_RV.shape[1]} for {candidate_RV.shape[0]}."
        )
    fine_baseline_R = np.isfinite(baseline_RV).all(axis=1)
    fine_candidate_R = np.isfinite(candidate_RV).all(axis=1)
    usable_R = np.flatnonzero(fine_baseline_R & fine_candidate_R)
    size = max(1, _VALUES_AT_ONCE // baseline_RV.shape[1])
    parts = [
        _compare_finite(baseline_RV[rows], candidate_RV[rows], targets_R[rows])
        for rows in (usable_R[start : start + size] for start in range(0, len(usable_R), size))
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [np.empty(0)] * 8
    return RowFigures(
        baseline_nll=columns[0],
        candidate_nll=columns[1],
        kl=columns[2],
        same_top1=columns[3].astype(bool),
        gap_shift=columns[4],
        signal=columns[5],
        noise=columns[6],
        cosine=columns[7],
        broken_candidate=int((~fine_candidate_R).sum()),
        broken_baseline=int((~fine_baseline_R & fine_candidate_R).sum()),
    )


def _compare_finite(
    baseline_RV: Float32, candidate_RV: Float32, targets_R: npt.NDArray[np.int64]
) -> tuple[Float64, ...]:
    rows = np.arange(len(targets_R))
    log_p_RV, log_q_RV = log_softmax(baseline_RV), log_softmax(candidate_RV)
    # Rounding can leave a tiny negative sum for equal distributions; a divergence is never negative.
    kl_R = np.maximum((np.exp(log_p_RV) * (log_p_RV - log_q_RV)).sum(axis=1), 0.0)
    first_R = log_p_RV.argmax(axis=1)
    same_R = first_R == log_q_RV.argmax(axis=1)
    if log_p_RV.shape[1] > 1:
        second_R = _second_best(log_p_RV, first_R)
        gap_R = log_p_RV[rows, first_R] - log_p_RV[rows, second_R]
        shift_R = np.abs(gap_R - (log_q_RV[rows, first_R] - log_q_RV[rows, second_R]))
    else:
        shift_R = np.zeros(len(rows))
    nll_R2 = -log_p_RV[rows, targets_R], -log_q_RV[rows, targets_R]
    return *nll_R2, kl_R, same_R.astype(np.float64), shift_R, *_signal_and_noise(log_p_RV, log_q_RV)


def _second_best(values_RV: Float64, first_R: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Where the largest value besides `first_R` is; two searches take a tenth of the time of a partition."""
    rows = np.arange(len(first_R))
    largest_R = values_RV[rows, first_R]
    values_RV[rows, first_R] = -np.inf
    second_R: npt.NDArray[np.intp] = values_RV.argmax(axis=1)
    values_RV[rows, first_R] = largest_R
    return second_R


def _signal_and_noise(ours_RV: Float64, theirs_RV: Float64) -> tuple[Float64, Float64, Float64]:
    """Signal, noise and cosine of each row; changes both arrays."""
    ours_RV -= ours_RV.mean(axis=1, keepdims=True)
    theirs_RV -= theirs_RV.mean(axis=1, keepdims=True)
    signal_R = np.einsum("rv,rv->r", ours_RV, ours_RV)
    other_R = np.einsum("rv,rv->r", theirs_RV, theirs_RV)
    product_R = np.einsum("rv,rv->r", ours_RV, theirs_RV)
    lengths_R = np.sqrt(signal_R * other_R)
    cosine_R = np.divide(product_R, lengths_R, out=np.ones_like(lengths_R), where=lengths_R > 0)
    theirs_RV -= ours_RV
    return signal_R, np.einsum("rv,rv->r", theirs_RV, theirs_RV), np.minimum(cosine_R, 1.0)


def log_softmax(logits_RV: Float32) -> Float64:
    """Logarithms of the next-token probabilities, in float64."""
    shifted_RV = logits_RV.astype(np.float64)
    shifted_RV -= shifted_RV.max(axis=1, keepdims=True)
    shifted_RV -= np.log(np.exp(shifted_RV).sum(axis=1, keepdims=True))
    return shifted_RV


class LogitWindow:
    """One window of the baseline's logits, gathered from the worker's pieces: at most one is held at a time."""

    def __init__(self) -> None:
        self._pieces: dict[int, Float32] = {}
        self.rows = 0

    def add(self, piece: Logits, payload: bytes) -> None:
        """Keep one piece.

        Raises:
            ValueError: The payload's size does not fit the piece's description.
        """
        rows_RV = decode_rows(piece, payload)
        self._pieces[piece.offset_row] = rows_RV
        self.rows += len(rows_RV)

    def take(self, offset_row: int, count: int) -> Float32:
        """Return `count` rows from `offset_row` on; a view where they lie in one piece.

        Raises:
            ValueError: The baseline did not send all of these rows.
        """
        found = self._pieces.get(offset_row)
        if found is not None and len(found) >= count:
            return found[:count]
        gathered: list[Float32] = []
        for start, piece_RV in sorted(self._pieces.items(), key=lambda item: item[0]):
            lo, hi = max(offset_row, start), min(offset_row + count, start + len(piece_RV))
            if lo < hi:
                gathered.append(piece_RV[lo - start : hi - start])
        if sum(map(len, gathered)) != count:
            raise ValueError(
                f"The baseline's logits of positions {offset_row} to {offset_row + count - 1} are missing, so the "
                "candidate's output cannot be compared there."
            )
        return np.concatenate(gathered)


def decode_rows(piece: Logits, payload: bytes) -> Float32:
    """View a `Logits` payload as rows of float32.

    Raises:
        ValueError: The payload's size does not fit the piece's description.
    """
    expected = len(piece.targets) * piece.vocab_size * 4
    if len(payload) != expected:
        raise ValueError(
            f"Damaged logits: {len(payload)} bytes arrived for {len(piece.targets)} positions of a vocabulary of "
            f"{piece.vocab_size} ({expected} bytes expected)."
        )
    return np.frombuffer(payload, dtype="<f4").reshape(len(piece.targets), piece.vocab_size)
