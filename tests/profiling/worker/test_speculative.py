"""The decode workloads with guessed tokens: every token counted once, guesses reported."""

from dataclasses import replace

import pytest
import torch

from gptscope.models.decoding.session import DecodeSession
from gptscope.models.gpt import GPT, init_weights
from gptscope.models.levers import LeverContext
from gptscope.models.prepare import prepare
from gptscope.profiling.experiment import Workload
from gptscope.profiling.metrics.waterfall import by_module
from gptscope.profiling.records import GeneratedText, StepSamples
from gptscope.profiling.worker import capture, profile_report
from gptscope.profiling.worker.benches import make_bench
from gptscope.profiling.worker.drafts import load_draft
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.reporting import StepReporter
from gptscope.profiling.worker.speculative import SpeculativeBench
from gptscope.profiling.worker.texts import FirstSequenceText, TokenSource

PROMPT_1L = torch.tensor([list(b"abcabcabcabc")])
OPTIONS = {"draft-model": {"model": "preset:tiny"}}
FP32_BASE = {"base": "fp32"}


def bench(kit, *, new_tokens=20, stream=None) -> SpeculativeBench:
    prepared = kit.prepared(speculation="prompt-lookup", options={"prompt-lookup": {"shortest": 1}})
    made = make_bench(prepared, Workload(new_tokens=new_tokens), TokenSource(None, 256, 3), PROMPT_1L, stream)
    assert isinstance(made, SpeculativeBench)
    return made


def test_each_sequence_has_its_tokens_however_many_steps_they_took(kit):
    output = kit.collected()
    bench(kit).run(StepReporter(output, "r", "measure"), 2)
    decode = [one for one in output.of(StepSamples) if one.kind == "decode"]
    assert sum(sum(one.tokens) for one in decode) == 2 * 19
    drafted = sum(sum(one.drafted) for one in decode)
    accepted = sum(count - 1 for one in decode for count in one.tokens)
    assert 0 < accepted <= drafted
    contexts = [value for one in decode for value in one.context]
    assert contexts[0] == PROMPT_1L.shape[1] + 1


def test_the_text_is_that_of_plain_decoding(kit):
    output = kit.collected()
    stream = FirstSequenceText(output, "r", kit.letters())
    bench(kit, stream=stream).run(StepReporter(output, "r", "measure"), 1)
    shown = [token for one in output.of(GeneratedText) for token in one.token_ids]
    session = DecodeSession(kit.prepared(), 1, 40)
    plain = [int(session.prefill(PROMPT_1L))] + [int(session.step()) for _ in range(19)]
    assert shown == plain


@pytest.mark.parametrize("new_tokens", [1, 2, 20])
def test_warming_up_ends_after_the_steps_asked_for(kit, new_tokens):
    reporter = StepReporter(kit.collected(), "r", "warmup")
    bench(kit, new_tokens=new_tokens).warm(reporter, 5)
    assert len(reporter.durations_ns["decode"]) == (0 if new_tokens == 1 else 5)


def test_a_profile_is_per_token_and_its_evidence_counts_the_guesses(kit, tmp_path):
    one, output = bench(kit), kit.collected()
    one.prepared.reset_counters()
    recording = capture.record(one, 4, tmp_path, StepReporter(output, "r", "profile"))
    assert recording.steps == 4
    (samples,) = output.of(StepSamples)
    assert recording.tokens == sum(samples.tokens) > 4
    assert samples.context[1] - samples.context[0] == samples.tokens[0]
    profile = profile_report.profile_record(recording, 1.0, "r")
    assert profile.steps == recording.tokens
    report = profile_report.evidence_record(one.prepared, profile, recording.steps, "r")
    said = {item.lever: item for item in report.items}
    assert said["prompt-lookup"].in_effect
    assert said["dynamic"].in_effect  # guesses are no sign of a cache that does not work


def profiled(one, kit, folder, steps=4):
    """The profile of some steps, and evidence by lever."""
    one.prepared.reset_counters()
    recording = capture.record(one, steps, folder, StepReporter(kit.collected(), "r", "profile"))
    profile = profile_report.profile_record(recording, 1.0, "r")
    report = profile_report.evidence_record(one.prepared, profile, recording.steps, "r")
    return profile, {item.lever: item for item in report.items}


def with_draft(kit, precision) -> SpeculativeBench:
    context = LeverContext(
        machine=kit.machine,
        config=kit.tiny,
        workload="decode",
        precision=precision,
        fusions=frozenset({"qkv", "mlp", "norm"}),
        speculation="draft-model",
        options=OPTIONS,
    )
    model, draft = GPT(kit.tiny).eval(), GPT(kit.tiny).eval()
    init_weights(model, 5)
    init_weights(draft, 5)
    prepared = prepare(model, context, torch.device("cpu"), draft=draft)
    made = make_bench(prepared, Workload(new_tokens=20), TokenSource(None, 256, 3), PROMPT_1L, None)
    assert isinstance(made, SpeculativeBench)
    return made


@pytest.mark.parametrize("precision", ["fp32", "int8-dynamic"])
def test_a_draft_models_kernels_are_no_evidence_for_the_measured_model(precision, kit, tmp_path):
    levers = ("qkv", "mlp", "norm")
    plain = make_bench(
        kit.prepared(precision=precision, fusions=levers), Workload(new_tokens=20), TokenSource(None, 256, 3),
        PROMPT_1L, None,
    )  # fmt: skip
    _, alone = profiled(plain, kit, tmp_path)
    profile, beside = profiled(with_draft(kit, precision), kit, tmp_path)
    for lever in (precision, *levers):
        assert beside[lever] == alone[lever]
        assert beside[lever].in_effect
    share = sum(row.share for row in profile.kernels if by_module(row) == "draft model")
    assert 0.3 < share < 1.0  # the same model again, several times per step
    assert f"Guessing took {share:.0%} of the kernel time." in beside["draft-model"].sentence
    down = "draft.blocks.*.mlp.down"
    products = [row for row in profile.kernels if row.module.startswith(down) and row.category == "GEMM"]
    assert products[0].label.startswith("draft mlp.down")


def test_a_model_that_was_never_quantized_is_caught_beside_a_draft_that_was(kit, tmp_path):
    one = with_draft(kit, "fp32")
    claimed = replace(one.prepared.context, precision="int8-dynamic", options=OPTIONS | {"int8-dynamic": FP32_BASE})
    one.prepared.context, one.prepared.draft = claimed, with_draft(kit, "int8-dynamic").prepared.draft
    _, found = profiled(one, kit, tmp_path)
    assert found["int8-dynamic"].in_effect is False
    assert "Per step 0 INT8 products" in found["int8-dynamic"].sentence


def test_a_draft_model_that_splits_text_otherwise_is_refused(kit):
    context = kit.prepared().context
    options = {"draft-model": {"model": "bundled"}}
    drafting = type(context)(machine=context.machine, config=None, workload="decode", precision="fp32",
                             speculation="draft-model", options=options)  # fmt: skip
    with pytest.raises(RequestError, match="The draft model bundled splits text into other tokens"):
        load_draft(drafting, kit.letters(), kit.collected())
    assert load_draft(drafting, None, kit.collected()) is not None
    assert load_draft(context, None, kit.collected()) is None
