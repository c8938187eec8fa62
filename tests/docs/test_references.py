"""What the documents point to is there: links, headings, files, make targets."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md"), *REPOSITORY.glob("assets/**/*.md")])
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ENDINGS = "csv|json|md|png|py|safetensors|svg|toml|txt"


def anchors(document: Path) -> set[str]:
    """Headings as GitHub makes them linkable."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", document.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(document: Path) -> list[str]:
    text = FENCE.sub("", document.read_text("utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?:src|srcset)=\"([^\"]+)\"", text)
    broken = []
    for target in targets:
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (document.parent / name).resolve() if name else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


def missing_files(document: Path) -> list[str]:
    """Paths in inline code that begin with a folder of the repository."""
    tops = "|".join(sorted(path.name for path in REPOSITORY.iterdir() if path.is_dir() and path.name[0] != "."))
    named = re.findall(
        rf"(?:`|\s)((?:{tops})/[\w./-]*?(?:/|\.(?:{ENDINGS})))(?=[`\s,;:)])", document.read_text("utf-8")
    )
    return [name for name in named if not (REPOSITORY / name).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_files_exist(document: Path) -> None:
    assert broken_links(document) == []
    assert missing_files(document) == []


def test_a_missing_file_and_heading_are_noticed(tmp_path: Path) -> None:
    document = tmp_path / "some.md"
    document.write_text(
        "# Here\n[a](#here) [b](#there) [c](gone.md) `docs/gone.py` and `docs/architecture.md`\n", "utf-8"
    )
    assert broken_links(document) == ["#there", "gone.md"]
    assert missing_files(document) == ["docs/gone.py"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([\w-]+(?: [\w-]+)*):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    known = {target for line in targets for target in line.split()}
    named = re.findall(r"(?:`|^)make ([a-z][\w-]*)", document.read_text("utf-8"), re.MULTILINE)
    assert set(named) <= known


def test_every_json_document_is_described() -> None:
    described = (REPOSITORY / "docs" / "json.md").read_text("utf-8")
    sources = "".join(path.read_text("utf-8") for path in sorted((REPOSITORY / "app" / "cli").glob("*.py")))
    written = set(re.findall(r"\.write\(\s*\"([a-z-]+)\"", sources))
    assert {"experiment", "peaks", "trace-diff"} <= written
    assert [name for name in sorted(written) if f"`{name}`" not in described] == []
