"""The session against small real processes that speak (or fail to speak) frames."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gptscope.app.gui import session as module
from gptscope.app.gui.session import Session
from gptscope.profiling.records import AskCapabilities, Hello, Notice

ENGINE = """
import os, sys, time
from gptscope.profiling import channel
from gptscope.profiling.records import Bye, Hello, Notice, Shutdown
out = channel.FrameWriter(sys.stdout.buffer)
what = sys.argv[1]
print("a login shell says hello")
sys.stdout.flush()
out.send(Hello(role="engine", pid=os.getpid(), gptscope_version="test"))
out.send(Hello(role="worker", pid=1, gptscope_version="test"))
if what == "flood":
    for number in range(4000):
        out.send(Notice(message=str(number)))
if what == "exit":
    print("it broke here", file=sys.stderr)
    sys.exit(3)
for header, _ in channel.read_frames(0):
    command = channel.decode_command(header)
    if isinstance(command, Shutdown):
        if what == "stuck":
            time.sleep(60)
        out.send(Bye())
        break
    out.send(Notice(message=type(command).__name__))
"""


@pytest.fixture
def engine_script(tmp_path: Path) -> Path:
    file = tmp_path / "engine.py"
    file.write_text(ENGINE, "utf-8")
    return file


def make(script: Path, what: str) -> Session:
    return Session((sys.executable, "-P", str(script), what))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_records_arrive_typed_and_in_order_whatever_a_shell_printed(engine_script: Path, qtbot: QtBot) -> None:
    session = make(engine_script, "normal")
    records: list[object] = []
    session.record.connect(lambda record, _payload: records.append(record))
    session.send(AskCapabilities())
    qtbot.waitUntil(lambda: len(records) >= 3, timeout=10_000)
    assert isinstance(records[0], Hello)
    assert records[2] == Notice(message="AskCapabilities")
    pid = session.engine_pid
    assert pid > 1, "a worker's pid is not the engine's"
    session.close()
    assert not alive(pid)
    assert not session.running


def test_a_flood_of_records_is_handled_in_short_turns(
    engine_script: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make(engine_script, "flood")
    numbers: list[str] = []
    session.record.connect(lambda record, _p: numbers.append(record.message) if isinstance(record, Notice) else None)
    turns: list[float] = []
    plain = Session._handle

    def timed(self: Session) -> None:
        begin = time.perf_counter()
        plain(self)
        turns.append(time.perf_counter() - begin)

    monkeypatch.setattr(Session, "_handle", timed)
    session.start()
    qtbot.waitUntil(lambda: len(numbers) == 4000, timeout=20_000)
    assert numbers == [str(n) for n in range(4000)]
    assert len(turns) > 1, "4000 records in one go would hold the window up"
    assert sorted(turns)[len(turns) // 2] < 5 * module.BUDGET_S
    session.close()


def test_a_killed_engine_is_told_in_a_sentence_and_starts_again(engine_script: Path, qtbot: QtBot) -> None:
    session = make(engine_script, "normal")
    with qtbot.waitSignal(session.started, timeout=10_000):
        session.start()
    first = session.engine_pid
    with qtbot.waitSignal(session.ended, timeout=5_000) as ended:
        os.kill(first, signal.SIGKILL)
    assert "What was measured is kept" in ended.args[0]
    assert not session.running
    with qtbot.waitSignal(session.started, timeout=10_000):
        session.send(AskCapabilities())
    assert session.engine_pid != first
    session.close()


def test_an_engine_that_exits_is_told_with_its_last_words(engine_script: Path, qtbot: QtBot) -> None:
    session = make(engine_script, "exit")
    with qtbot.waitSignal(session.ended, timeout=10_000) as ended:
        session.start()
    assert "exit code 3" in ended.args[0]
    assert "it broke here" in session.stderr_tail()
    session.close()


def test_a_missing_program_is_told(qtbot: QtBot, tmp_path: Path) -> None:
    session = Session((str(tmp_path / "nothing"),))
    with qtbot.waitSignal(session.ended, timeout=5_000) as ended:
        session.start()
    assert ended.args[0].startswith("The engine could not be started")
    assert not session.running
    session.close()


def test_closing_does_not_wait_for_a_stuck_engine(
    engine_script: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CLOSE_MS", 300)
    session = make(engine_script, "stuck")
    with qtbot.waitSignal(session.started, timeout=10_000):
        session.start()
    pid, begin = session.engine_pid, time.monotonic()
    session.close()
    assert time.monotonic() - begin < 3
    assert not alive(pid)
