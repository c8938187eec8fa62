"""Each workload's steps: counted, timed, in a fixed order, with the text as it comes."""

import dataclasses
import itertools
import math

import pytest
import torch

from gptscope.models.decoding.session import DecodeSession
from gptscope.profiling.experiment import Workload
from gptscope.profiling.records import Compiled, GeneratedText, Progress, StepSamples
from gptscope.profiling.worker import steps as steps_module
from gptscope.profiling.worker.reporting import StepReporter
from gptscope.profiling.worker.steps import DecodeBench, PrefillBench, TrainBench
from gptscope.profiling.worker.texts import FirstSequenceText, TokenSource
from gptscope.profiling.worker.warmup import is_steady, warm_up


def train_bench(kit, **work) -> TrainBench:
    workload = Workload(kind="train", batch=2, context=16, **work)
    return TrainBench(kit.prepared(workload="train"), workload, TokenSource(None, kit.tiny.vocab_size, workload.seed))


def decode_bench(kit, *, batch=1, context=8, new_tokens=6, kv_cache="dynamic", stream=None) -> DecodeBench:
    prepared = kit.prepared(kv_cache=kv_cache, batch=batch)
    tokens_BL = TokenSource(None, kit.tiny.vocab_size, 3).beginning(batch, context)
    return DecodeBench(prepared, Workload(batch=batch, context=99, new_tokens=new_tokens), tokens_BL, stream)


def losses(output) -> list[float]:
    return [loss for samples in output.of(StepSamples) for loss in samples.loss]


def test_training_steps_are_reported_with_their_losses(kit):
    output = kit.collected()
    train_bench(kit).run(StepReporter(output, "r", "measure", 2), 5)
    samples = output.of(StepSamples)
    assert sum(len(one.duration_ns) for one in samples) == 5
    assert {(one.kind, one.slice, one.phase) for one in samples} == {("train", 2, "measure")}
    assert {value for one in samples for value in one.tokens} == {2 * 16}
    assert all(math.isfinite(loss) for loss in losses(output))


def test_the_kth_step_has_the_same_loss_however_steps_are_cut(kit):
    together, apart = kit.collected(), kit.collected()
    train_bench(kit).run(StepReporter(together, "r", "measure"), 6)
    bench = train_bench(kit)
    for count in (1, 3, 2):
        bench.run(StepReporter(apart, "r", "measure"), count)
    assert losses(together) == losses(apart)


def test_training_learns_when_the_text_repeats(kit):
    bench = train_bench(kit)
    batch = bench._next_batch()
    bench._next_batch = lambda: batch
    output = kit.collected()
    bench.run(StepReporter(output, "r", "measure"), 12)
    assert losses(output)[-1] < losses(output)[0] - 0.1


def test_training_warms_up_by_a_fixed_number_so_that_curves_can_be_compared(kit):
    output = kit.collected()
    warm_up(train_bench(kit), output, "r")
    assert len(losses(output)) == TrainBench.warm_up_steps


def test_prefill_steps_read_the_whole_prompt(kit):
    output = kit.collected()
    work = Workload(kind="prefill", batch=2, context=10)
    bench = PrefillBench(kit.prepared(workload="prefill", batch=2), work, torch.zeros(2, 10, dtype=torch.long))
    bench.run(StepReporter(output, "r", "measure"), 3)
    (samples,) = output.of(StepSamples)
    assert (samples.kind, samples.tokens, samples.context) == ("prefill", (20,) * 3, (10,) * 3)
    assert bench.cache_bytes == 2 * 10 * 2 * 2 * 2 * 16 * 4


@pytest.mark.parametrize("kv_cache", ["none", "dynamic", "static"])
def test_a_sequence_is_one_prefill_and_then_token_after_token(kit, kv_cache):
    output = kit.collected()
    decode_bench(kit, batch=3, kv_cache=kv_cache).run(StepReporter(output, "r", "measure", 4), 2)
    prefills = [one for one in output.of(StepSamples) if one.kind == "prefill"]
    decodes = [one for one in output.of(StepSamples) if one.kind == "decode"]
    assert [(one.tokens, one.context) for one in prefills] == [((24,), (8,))] * 2
    assert [value for one in decodes for value in one.context] == [9, 10, 11, 12, 13] * 2
    assert {value for one in decodes for value in one.tokens} == {3}
    order = sorted(output.of(StepSamples), key=lambda one: one.start_ns[0])
    assert order == output.of(StepSamples)
    assert order[0].kind == "prefill"


def test_one_new_token_needs_no_decode_step(kit):
    output = kit.collected()
    bench = decode_bench(kit, new_tokens=1)
    bench.run(StepReporter(output, "r", "measure"), 2)
    assert [one.kind for one in output.of(StepSamples)] == ["prefill", "prefill"]
    warm_up(bench, output, "r")


def test_readings_are_sent_while_a_long_sequence_runs(kit, monkeypatch):
    monkeypatch.setattr("gptscope.profiling.worker.timing.REPORT_INTERVAL_NS", 1)
    output = kit.collected()
    decode_bench(kit).run(StepReporter(output, "r", "measure"), 1)
    assert len([one for one in output.of(StepSamples) if one.kind == "decode"]) == 5


def test_generated_text_is_what_greedy_decoding_gives_and_comes_once(kit, monkeypatch):
    monkeypatch.setattr("gptscope.profiling.worker.timing.REPORT_INTERVAL_NS", 1)
    output = kit.collected()
    byte_config = dataclasses.replace(kit.tiny, vocab_size=128)
    prepared = kit.prepared(workload="generate", config=byte_config)
    prompt_BL = torch.tensor([[5, 9, 33]])
    work = Workload(kind="generate", new_tokens=12)
    bench = DecodeBench(prepared, work, prompt_BL, FirstSequenceText(output, "r", kit.letters()))
    bench.warm(StepReporter(output, "r", "warmup"), 4)
    assert output.of(GeneratedText) == []
    for number in range(2):
        bench.run(StepReporter(output, "r", "measure", number), 1)
    session = DecodeSession(prepared, 1, 15)
    expected = [int(session.prefill(prompt_BL)[0])] + [int(session.step()[0]) for _ in range(11)]
    pieces = output.of(GeneratedText)
    assert [token for piece in pieces for token in piece.token_ids] == expected
    assert "".join(piece.text for piece in pieces) == kit.letters().decode(expected)
    assert len(pieces) > 2


def test_profiled_decode_steps_follow_a_prefill_and_end_before_the_context_does(kit):
    bench = decode_bench(kit, kv_cache="static")
    assert bench.most_profiled_steps == 6
    bench.before_profile(6)
    assert bench.context == 9
    for _ in range(6):
        bench.single()
    with pytest.raises(ValueError, match="do not fit"):
        bench.single()


class PacedBench(steps_module.Workbench):
    """Steps whose durations the test chooses."""

    kind = "decode"

    def __init__(self, kit, durations_ms) -> None:
        self.prepared, self.work = kit.prepared(), Workload()
        self._durations_ms = iter(durations_ms)
        self.done = 0

    def run(self, reporter, steps):
        raise NotImplementedError

    def single(self):
        raise NotImplementedError

    def warm(self, reporter, steps):
        for _ in range(steps):
            reporter.durations_ns["decode"].append(int(next(self._durations_ms) * 1e6))
            reporter.steps += 1
            self.done += 1


def test_warm_up_goes_on_until_the_times_are_steady(kit, monkeypatch):
    monkeypatch.setattr("gptscope.profiling.worker.warmup.LEAST_S", 0.0)
    falling = [100, 80, 60, 50, 40, 30, 20, 15, 12, 11, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10]
    output = kit.collected()
    bench = PacedBench(kit, falling)
    warm_up(bench, output, "r")
    assert bench.done == 20  # the third group of four is 5 % slower than the fourth
    assert output.of(Progress)[-1].done == 20
    assert output.of(Compiled) == []


def test_warm_up_ends_on_a_machine_that_is_never_steady(kit, monkeypatch):
    monkeypatch.setattr("gptscope.profiling.worker.warmup.LONGEST_S", 0.05)
    bench = PacedBench(kit, itertools.cycle([10] * 4 + [20] * 4))
    warm_up(bench, kit.collected(), "r")
    assert bench.done >= 4


def test_steady_means_within_three_percent():
    assert is_steady([100, 100, 102, 102], 2)
    assert not is_steady([100, 100, 104, 104], 2)
