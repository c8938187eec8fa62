"""A terminal program's view of the engine: records in order, deaths in a sentence, nothing left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from gptscope.profiling.client import EngineClient, ends, python_command
from gptscope.profiling.records import (
    Bye,
    Cancel,
    Capabilities,
    ExperimentFinished,
    Failure,
    Hello,
    InspectModel,
    MachineInfo,
    Shutdown,
)


def script(text: str) -> list[str]:
    return [sys.executable, "-P", "-c", text]


def test_an_engine_says_hello_and_bye():
    client = EngineClient(python_command("--worker-command", '["false"]'))
    client.start()
    records = [record for record, _ in client.stream(Shutdown(), 30)]
    assert isinstance(records[0], Hello)
    assert records[0].role == "engine"
    assert isinstance(records[-1], Bye)
    assert list(client.records(5)) == [], "nothing comes after Bye"
    client.close()
    assert client.pid is None


def test_an_engine_that_is_killed_is_told_as_the_last_record_and_further_use_is_harmless():
    with EngineClient(python_command("--worker-command", '["false"]')) as client:
        next(client.records(30))
        os.kill(client.pid, signal.SIGKILL)
        (failure,) = [record for record, _ in client.records(30)]
        assert isinstance(failure, Failure)
        assert failure.message.startswith("The engine was ended by signal 9 (SIGKILL")
        answer = client.ask(InspectModel(model="m"), 5)
        assert isinstance(answer, Failure)
        assert "has ended" in answer.message


def test_what_an_engine_printed_before_it_failed_is_kept_for_the_details():
    text = "import sys; print('bash: line 1: gptscope: not found'); print('last words', file=sys.stderr); sys.exit(127)"
    with EngineClient(script(text)) as client:
        (failure,) = [record for record, _ in client.records(30)]
        assert "exit code 127" in failure.message
        assert "last words" in failure.detail
        assert "gptscope: not found" in failure.detail


def test_a_program_that_does_not_exist_is_an_error_at_once():
    with pytest.raises(FileNotFoundError):
        EngineClient(["/does/not/exist"]).start()


def test_an_engine_that_hangs_is_killed_on_close():
    client = EngineClient(script("import time, subprocess; subprocess.Popen(['sleep', '99']); time.sleep(99)"))
    client.start()
    process = psutil.Process(client.pid)
    while not (children := process.children()):
        time.sleep(0.01)
    begun = time.perf_counter()
    client.close()
    assert time.perf_counter() - begun < 5
    assert not process.is_running()
    assert all(not child.is_running() or child.status() == psutil.STATUS_ZOMBIE for child in children)
    client.close()


def test_a_reader_waits_no_longer_than_it_wants_and_may_go_on():
    with EngineClient(python_command("--worker-command", '["false"]')) as client:
        assert isinstance(next(client.records(30))[0], Hello)
        begun = time.perf_counter()
        with pytest.raises(TimeoutError, match=r"sent nothing for 0\.25 s"):
            next(client.records(0.25))
        assert time.perf_counter() - begun < 1.0
        assert isinstance(client.ask(InspectModel(model="m"), 30), Failure)


def test_closing_while_records_pour_in_does_not_hang():
    text = (
        "import sys\n"
        "from gptscope.profiling import channel\n"
        "from gptscope.profiling.records import Notice\n"
        "data = channel.encode(Notice(message='m'), bytes(1 << 16))\n"
        "while True:\n"
        "    sys.stdout.buffer.write(data)\n"
    )
    client = EngineClient(script(text))
    client.start()
    next(client.records(30))
    time.sleep(0.3)
    threads = threading.active_count()
    begun = time.perf_counter()
    client.close()
    assert time.perf_counter() - begun < 6
    assert threading.active_count() < threads


def test_ctrl_c_in_the_terminal_does_not_reach_the_engine():
    client = EngineClient(python_command("--worker-command", '["false"]'))
    client.start()
    assert os.getpgid(client.pid) != os.getpgrp()
    client.close()


def test_an_engine_without_a_client_library_ends_when_its_input_ends():
    process = subprocess.run(
        python_command("--worker-command", '["false"]'), input=b"", stdout=subprocess.PIPE, timeout=30, check=False
    )
    assert process.returncode == 0


def test_each_command_has_its_last_record():
    machine = MachineInfo(
        hostname="h",
        system="s",
        cpu_name="c",
        physical_cores=1,
        logical_cores=1,
        memory_bytes=1,
        cpu_features=(),
        device="cpu",
        device_name="c",
        compiler=None,
    )
    assert ends(InspectModel(model="m"), Failure(kind="model", message="no"))
    assert not ends(InspectModel(model="m"), Capabilities(machine=machine, levers=(), versions={}))
    assert not ends(Shutdown(), ExperimentFinished(experiment_id="e", outcome="done"))
    assert ends(Cancel(), Hello(role="engine", pid=1, gptscope_version="0"))
