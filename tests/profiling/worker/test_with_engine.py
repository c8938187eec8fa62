"""The whole chain on the trained model: client, engine, two workers; text, profile, evidence, output compared."""

import itertools
import math

import pytest

from gptscope.profiling.client import EngineClient
from gptscope.profiling.engine.evaluation import GREEDY_TOKENS
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import (
    EvidenceReport,
    ExperimentFinished,
    Failure,
    GeneratedText,
    Profile,
    Quality,
    StartExperiment,
    StepSamples,
)
from gptscope.profiling.worker.windows import PROMPTS

pytestmark = pytest.mark.slow
PROMPT = "The whale was seen"


@pytest.fixture(scope="module")
def records() -> list[object]:
    variants = (
        Variant(threads=1),
        Variant(precision="bf16", fusions=("all",), kv_cache="static", threads=1),
    )
    work = Workload(kind="generate", prompt=PROMPT, new_tokens=24, steps=1)
    experiment = Experiment(
        model="bundled", workload=work, variants=variants, profile_steps=2, quality=True, peaks=False, device="cpu"
    )
    found: list[object] = []
    client = EngineClient()
    client.start()
    try:
        client.send(StartExperiment(experiment=experiment, experiment_id="e"))
        for record, _payload in client.records():
            found.append(record)
            if isinstance(record, ExperimentFinished):
                break
    finally:
        client.close()
    return found


def of(records, kind):
    return [record for record in records if isinstance(record, kind)]


def test_everything_succeeds(records):
    assert of(records, Failure) == []
    assert of(records, ExperimentFinished)[0].outcome == "done"


def test_both_variants_continue_the_prompt_with_words(records):
    texts: dict[str, str] = {}
    tokens: dict[str, int] = {}
    for piece in of(records, GeneratedText):
        texts[piece.run_id] = texts.get(piece.run_id, "") + piece.text
        tokens[piece.run_id] = tokens.get(piece.run_id, 0) + len(piece.token_ids)
    assert len(texts) == 2
    assert set(tokens.values()) == {24}
    assert all(sum(character.isalpha() for character in text) > 20 for text in texts.values())


def test_every_lever_shows_in_the_profile(records):
    reports = of(records, EvidenceReport)
    assert len(reports) == 2
    for report in reports:
        assert [item.sentence for item in report.items if not item.in_effect] == []
    assert {item.lever for item in reports[1].items} >= {"bf16", "attention", "qkv", "packed_linear", "static"}
    assert all(profile.steps == 2 for profile in of(records, Profile))


def test_bf16_says_nearly_the_same(records):
    (quality,) = of(records, Quality)
    assert quality.tokens == 16 * 512
    assert 1 < quality.baseline_perplexity < 500
    assert abs(quality.perplexity_change) < 0.05 * quality.baseline_perplexity
    assert 0 < quality.kl_mean < 0.01
    assert quality.top1_agreement > 0.95
    assert 0 < quality.perplexity_change_error < quality.perplexity_error
    assert quality.greedy_tokens == PROMPTS * GREEDY_TOKENS
    assert math.isfinite(quality.near_tie_margin)
    assert quality.broken_positions == 0


def test_steps_of_different_variants_never_overlap(records):
    """Their times come from two processes, but from one clock."""
    spans = [
        (start, start + length)
        for samples in of(records, StepSamples)
        if samples.phase == "measure"
        for start, length in zip(samples.start_ns, samples.duration_ns, strict=True)
    ]
    spans.sort()
    assert len(spans) >= 2 * 24
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
