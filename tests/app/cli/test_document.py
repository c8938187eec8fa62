"""The JSON documents: complete, described, and true to the records."""

import json
import typing
from pathlib import Path

import msgspec
import pytest

from gptscope.app.cli.document import ExperimentDocument, experiment_document
from gptscope.app.cli.json_output import encode_document
from gptscope.app.cli.library_report import LibraryState
from gptscope.app.cli.quality_document import QualityDocument
from gptscope.profiling.metrics.run_summary import RunSummary
from gptscope.profiling.metrics.verdict import Verdict
from gptscope.profiling.records import Capabilities, FineTuned, ModelFetched, ModelInspected, Peaks, Profile, Quality
from gptscope.profiling.store.entries import RunEntry

ROOTS = (
    ExperimentDocument,
    QualityDocument,
    RunSummary,
    Verdict,
    Quality,
    Peaks,
    RunEntry,
    ModelInspected,
    ModelFetched,
    FineTuned,
    Capabilities,
    LibraryState,
)
DATA = ("unknown", "versions", "environment", "gemm_tflops", "published", "fusions_skipped", "options")
"""Objects whose names are not fields."""


def struct_fields(kind: object, seen: set[type]) -> set[str]:
    names: set[str] = set()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in seen:
        seen.add(kind)
        hints = typing.get_type_hints(kind)
        for field in kind.__struct_fields__:
            names |= {field} | struct_fields(hints[field], seen)
    for part in typing.get_args(kind):
        names |= struct_fields(part, seen)
    return names


def keys(
    value: object, *, skip: tuple[str, ...] = ("unknown", "versions", "environment", "gemm_tflops", "published")
) -> set[str]:
    """All names in a document, but not those of objects whose names are data."""
    if isinstance(value, list | tuple):
        return set().union(*(keys(item) for item in value))
    if isinstance(value, dict):
        return set(value).union(*(keys(item) for name, item in value.items() if name not in DATA))
    return set()


def test_every_field_of_every_document_is_described(repository: Path, experiment) -> None:
    described = (repository / "docs" / "json.md").read_text(encoding="utf-8")
    document = experiment_document(experiment(text="x"), ("e1-a", "e1-b"), kept_in=None, not_kept="x")
    names = keys(json.loads(encode_document("experiment", document)))
    names = names.union(*(struct_fields(root, set()) for root in ROOTS))
    assert len(names) > 150
    assert sorted(name for name in names if f"`{name}`" not in described) == []


def test_an_experiment_as_json_holds_its_numbers(experiment) -> None:
    records = experiment()
    document = experiment_document(records, ("e1-a", "e1-b"), kept_in=Path("/lib"), not_kept=None)
    data = json.loads(encode_document("experiment", document))
    assert data["gptscope"] == "experiment"
    assert data["format"] == 1
    assert data["outcome"] == "done"
    assert data["kept"] == {"library": "/lib", "reason": None}
    first, second = data["runs"]
    assert data["baseline_run_id"] == first["run_id"] == "e1-a"
    assert second["summary"]["tokens_per_s"]["value"] == pytest.approx(
        2 * first["summary"]["tokens_per_s"]["value"], rel=0.02
    )
    (verdict,) = data["verdicts"]
    assert verdict["kind"] == "faster_same_output"
    assert verdict["speedup"]["value"] == pytest.approx(2, rel=0.02)
    assert verdict["candidate_run_id"] == "e1-b"
    assert first["quality"] is None
    assert second["quality"]["perplexity_change"] == 0.02
    assert second["variant"]["kv_cache"] == "static"
    assert [item["in_effect"] for item in first["evidence"]] == [True, False, None]
    profile = next(r for r in records if isinstance(r, Profile))
    assert first["profile"]["kernels"] == json.loads(msgspec.json.encode(profile.kernels))
    assert first["machine"]["unknown"]["compiler"]


def test_an_experiment_that_never_began_is_still_a_document() -> None:
    document = experiment_document([], (), kept_in=None, not_kept="--no-keep was given")
    assert document.outcome == "interrupted"
    assert document.runs == ()
    json.loads(encode_document("experiment", document))


def test_numbers_that_json_lacks_become_null() -> None:
    assert json.loads(encode_document("x", {"a": float("nan"), "b": [float("inf")], "ü": "✓"})) == {
        "gptscope": "x",
        "format": 1,
        "a": None,
        "b": [None],
        "ü": "✓",
    }
