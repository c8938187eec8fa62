"""The hub source against a small server on this machine that speaks the hub's protocol."""

import json
import re
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import huggingface_hub
import pytest
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor

from gptscope.models.loaders.base import LoadRequest, ModelError, OfflineError
from gptscope.models.loaders.hf_hub import HfHubSource

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "some-org/little-llama"


class Hub:
    """One repository, what was asked of it, and how it misbehaves."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.ranges: dict[str, str] = {}
        self.refuse: tuple[int, str] | None = None
        """Status and X-Error-Code given to every request."""
        self.cut: dict[str, int] = {}
        """File -> bytes after which the connection breaks; the next requests for it are answered 503."""

    def sent(self, name: str) -> bool:
        return f"GET {name}" in self.requests


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        hub = self.hub
        if hub.refuse is not None:
            self.reply(hub.refuse[0], b"no", {"X-Error-Code": hub.refuse[1]}, body=body)
        elif self.path.startswith(f"/api/models/{REPO}"):
            siblings = [{"rfilename": name, "size": len(content)} for name, content in hub.files.items()]
            info = {
                "id": REPO,
                "sha": COMMIT,
                "siblings": siblings,
                "safetensors": {"parameters": {"F32": 9}, "total": 9},
            }
            self.reply(200, json.dumps(info).encode(), {"Content-Type": "application/json"}, body=body)
        elif (match := re.fullmatch(rf"/{REPO}/resolve/\w+/(.+)", self.path)) and match[1] in hub.files:
            self.file(match[1], body=body)
        else:
            self.reply(404, b"no", {"X-Error-Code": "EntryNotFound" if "resolve" in self.path else "RepoNotFound"})

    def file(self, name: str, *, body: bool) -> None:
        hub, content = self.hub, self.hub.files[name]
        if body:
            hub.requests.append(f"GET {name}")
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{abs(hash((name, content)))}"', "Accept-Ranges": "bytes"}
        start = 0
        if body and (wanted := self.headers.get("Range")):
            hub.ranges[name] = wanted
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if body and name in hub.cut:
            if not hub.cut[name]:
                self.reply(503, b"busy", {})
                return
            self.send_response(200)
            for key, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(content[: hub.cut[name]])
            hub.cut[name] = 0
            self.close_connection = True
            return
        self.reply(206 if start else 200, content[start:], headers, body=body)

    def reply(self, status: int, content: bytes, headers: dict[str, str], *, body: bool = True) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_args: Any) -> None:
        """Quiet."""


@pytest.fixture
def hub(folder: Path, settings: dict[str, Any], byte_level_tokenizer: FastTokenizer) -> Hub:
    hub = Hub()
    hub.files = {
        "config.json": (folder / "config.json").read_bytes(),
        "generation_config.json": b'{"eos_token_id": [0, 2]}',
        "tokenizer.json": byte_level_tokenizer.to_str().encode(),
        "model.safetensors": (folder / "model.safetensors").read_bytes(),
        "pytorch_model.bin": b"not needed",
        "README.md": b"not needed",
        "modeling_evil.py": b"raise SystemExit",
        "onnx/model.onnx": b"not needed",
    }
    return hub


@pytest.fixture
def endpoint(hub: Hub) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"hub": hub}))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def source(endpoint: str, tmp_path: Path) -> HfHubSource:
    return HfHubSource(endpoint, tmp_path / "cache")


def test_describing_fetches_the_config_only(hub: Hub, source: HfHubSource) -> None:
    description = source.describe(REPO)
    assert (description.name, description.source, description.config.d_model) == (REPO, "hf_hub", 32)
    assert description.weight_file_bytes == len(hub.files["model.safetensors"])
    assert description.weight_format == "F32"
    assert description.has_tokenizer
    assert "Not on this machine yet" in description.notes[0]
    assert description.fetch_bytes == len(hub.files["model.safetensors"])
    assert hub.requests == ["GET config.json"]


def test_fetching_takes_only_what_is_needed_and_tells_how_far_it_is(hub: Hub, source: HfHubSource) -> None:
    seen: list[tuple[float, float, str, str]] = []
    folder = source.fetch(REPO, lambda *step: seen.append(step))
    names = ["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert hub.requests == [f"GET {name}" for name in names], "weights last: a snapshot that has them is complete"
    done = [step[0] for step in seen]
    total = sum(len(hub.files[name]) for name in names)
    assert done == sorted(done)
    assert seen[-1] == (total, total, "bytes", REPO)


def test_second_use_needs_no_network(hub: Hub, source: HfHubSource, tmp_path: Path) -> None:
    source.fetch(REPO, lambda *_: None)
    away = HfHubSource("http://127.0.0.1:9", tmp_path / "cache")
    loaded = away.load(REPO, LoadRequest())
    assert loaded.description.name == REPO
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.eos_ids == (0, 2)
    assert away.describe(REPO).notes == ()


def test_interrupted_fetch_is_not_complete_and_resumes(
    hub: Hub, source: HfHubSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 1000)  # else nothing arrives before the cut
    hub.cut["model.safetensors"] = 10_000
    with pytest.raises(OfflineError, match="503"):
        source.fetch(REPO, lambda *_: None)
    assert source.cached(REPO) is None
    assert "Not on this machine yet" in source.describe(REPO).notes[0]
    del hub.cut["model.safetensors"]
    folder = source.fetch(REPO, lambda *_: None)
    assert hub.ranges["model.safetensors"].startswith("bytes=10000-")
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_sharded_repository_is_complete_with_its_last_shard_only(
    hub: Hub, endpoint: str, tmp_path: Path, settings: dict[str, Any], random_tensors: Callable[..., dict[str, Tensor]]
) -> None:
    from safetensors.torch import save

    tensors = random_tensors(settings)
    names = sorted(tensors)
    del hub.files["model.safetensors"], hub.files["pytorch_model.bin"]
    shards = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
    for shard, part in shards.items():
        hub.files[shard] = save({name: tensors[name] for name in part})
    index = {"weight_map": {name: shard for shard, part in shards.items() for name in part}}
    hub.files["model.safetensors.index.json"] = json.dumps(index).encode()
    source = HfHubSource(endpoint, tmp_path / "cache")
    loaded = source.load(REPO, LoadRequest())
    assert hub.requests[-1] == "GET model.safetensors.index.json"
    folder = source.cached(REPO)
    assert folder is not None
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert source.cached(REPO) is None, "a snapshot that lacks one shard is not complete"
    assert loaded.description.weight_file_bytes == sum(len(hub.files[shard]) for shard in shards)
    assert not hub.sent("README.md")


def test_architecture_that_we_lack_is_told_before_the_weights_are_fetched(
    hub: Hub, source: HfHubSource, settings: dict[str, Any]
) -> None:
    hub.files["config.json"] = json.dumps({**settings, "model_type": "mamba"}).encode()
    with pytest.raises(ModelError, match="'mamba' is not supported"):
        source.fetch(REPO, lambda *_: None)
    assert not hub.sent("model.safetensors")


def test_repository_without_usable_weights_says_what_to_do(hub: Hub, source: HfHubSource) -> None:
    hub.files = {"config.json": hub.files["config.json"], "little.Q4_0.gguf": b"..."}
    with pytest.raises(ModelError, match=r"no config\.json with safetensors.*little\.Q4_0\.gguf.*give its path"):
        source.describe(REPO)


@pytest.mark.parametrize(
    ("status", "code", "kind", "message"),
    [
        (404, "RepoNotFound", ModelError, "there is no model some-org/little-llama on the hub"),
        (401, "", ModelError, "there is no model|refuses"),
        (403, "GatedRepo", ModelError, "is gated: accept its terms"),
        (500, "", OfflineError, "answers 500"),
        (418, "", ModelError, "answers 418"),
    ],
)
def test_refusals_have_their_sentences(
    hub: Hub, source: HfHubSource, status: int, code: str, kind: type[ModelError], message: str
) -> None:
    hub.refuse = (status, code)
    with pytest.raises(ModelError, match=message) as caught:
        source.fetch(REPO, lambda *_: None)
    assert type(caught.value) is kind


def test_offline_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = HfHubSource("http://127.0.0.1:9", tmp_path / "cache")
    for action in (away.describe, lambda name: away.fetch(name, lambda *_: None)):
        started = time.monotonic()
        with pytest.raises(OfflineError, match="hub cannot be reached"):
            action(REPO)
        assert time.monotonic() - started < 10
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(OfflineError, match="HF_HUB_OFFLINE"):
        away.describe(REPO)


def test_full_disk_is_told_before_the_download(hub: Hub, source: HfHubSource, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil
    from types import SimpleNamespace

    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(total=200_000, used=100_000, free=100_000))
    with pytest.raises(ModelError, match=r"needs .* GB .* only 0\.0 GB are free"):
        source.fetch(REPO, lambda *_: None)
    assert not hub.sent("model.safetensors")
