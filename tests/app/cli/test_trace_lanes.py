"""The timeline that is drawn with characters."""

import json
from pathlib import Path

import pytest
from tests_app_traces import slice_event

from gptscope.app.__main__ import main


def test_a_devices_lane_is_busy_with_work_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    events = [
        slice_event("ProfilerStep#1", "user_annotation", 0, 100, 1, 1),
        slice_event("ProfilerStep#1", "gpu_user_annotation", 10, 80, 0, 7, device=0, stream=7),
        slice_event("gemm", "kernel", 10, 15, 0, 7, device=0, stream=7),
        slice_event("Memcpy DtoH", "gpu_memcpy", 20, 10, 0, 7, device=0, stream=7),
        slice_event("Stream Wait Event", "cuda_sync", 30, 50, 0, 7, device=0, stream=7),
        slice_event("ProfilerStep#1", "gpu_user_annotation", 10, 80, 0, 8, device=0, stream=8),
    ]
    trace, target = tmp_path / "trace.json", tmp_path / "out.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    assert main(["trace", "timeline", str(trace), "--json", str(target)]) == 0
    drawn = {line[2:34].strip(): line for line in capsys.readouterr().out.splitlines() if "|" in line}
    tracks = {track["thread"]: track for track in json.loads(target.read_text())["files"][0]["tracks"]}
    assert {thread: track["busy_ns"] for thread, track in tracks.items()} == {1: 100_000, 7: 20_000, 8: 0}
    assert drawn["GPU 0 stream 7"].endswith("| 20 %")
    shares = tracks[7]["busy_share"]
    assert sum(shares) / len(shares) == pytest.approx(0.2, abs=1e-3)
