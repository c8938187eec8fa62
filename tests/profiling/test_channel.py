"""Frames survive any cut and any noise, and nothing grows without bound."""

import io
import itertools
import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptscope.profiling import channel
from gptscope.profiling.channel import MAGIC, ChannelError, FrameReader, FrameWriter
from gptscope.profiling.experiment import Experiment, Variant, Workload
from gptscope.profiling.records import (
    CommandDone,
    Failure,
    Notice,
    Profile,
    StartExperiment,
    StepSamples,
)

headers = st.text(max_size=60).map(lambda text: channel.encode_header(Notice(message=text)))
frames = st.tuples(headers, st.binary(max_size=200))
clean_noise = st.binary(max_size=50).filter(lambda data: not set(data) & set(MAGIC))


def feed_in_pieces(data: bytes, cuts: list[int]) -> tuple[list[channel.Frame], FrameReader]:
    reader = FrameReader()
    result = []
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        result += reader.feed(data[start:end])
    return result, reader


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.tuples(clean_noise, frames), max_size=6), clean_noise, st.lists(st.integers(0, 10_000), max_size=12))
def test_frames_come_out_whole_whatever_the_cut_and_the_noise_between(parts, tail, cuts):
    data = b"".join(noise + channel.frame(*item) for noise, item in parts) + tail
    result, reader = feed_in_pieces(data, cuts)
    assert result == [item for _, item in parts]
    assert reader.dropped_bytes == sum(len(noise) for noise, _ in parts) + len(tail)
    assert reader.waiting_bytes == 0


@given(
    st.lists(st.one_of(st.just(MAGIC), st.binary(max_size=30), frames.map(lambda f: channel.frame(*f))), max_size=12)
)
@settings(max_examples=200, deadline=None)
def test_one_byte_at_a_time_gives_the_same_as_all_at_once(parts):
    data = b"".join(parts)
    whole = FrameReader()
    expected = whole.feed(data)
    single = FrameReader()
    result = [item for byte in data for item in single.feed(bytes([byte]))]
    assert result == expected
    assert single.waiting_bytes <= len(data)


def test_a_false_magic_does_not_swallow_the_frame_inside_it():
    inner = channel.frame(b'{"type":"notice","message":"real"}')
    false = MAGIC + (20).to_bytes(4, "little") + (0).to_bytes(4, "little") + b"{ not the end of json"
    reader = FrameReader()
    assert reader.feed(false + inner) == [(b'{"type":"notice","message":"real"}', b"")]


def test_noise_of_any_length_is_not_kept():
    reader = FrameReader()
    for _ in range(50):
        assert reader.feed(b"GSF" + b"x" * 100_000) == []
    assert reader.waiting_bytes < 4
    assert len(reader.noise) == channel.NOISE_BYTES
    assert reader.dropped_bytes > 5_000_000 - 4


def test_lengths_beyond_the_caps_are_noise_at_once():
    reader = FrameReader()
    huge = MAGIC + (0xFFFFFFFF).to_bytes(4, "little") + (0xFFFFFFFF).to_bytes(4, "little") + b"{"
    assert reader.feed(huge) == []
    assert reader.waiting_bytes == 0


def test_what_a_login_shell_prints_is_told_as_noise():
    reader = FrameReader()
    reader.feed(b"bash: python: command not found\n")
    assert b"command not found" in reader.noise


def test_a_payload_above_one_mebibyte_is_refused():
    channel.encode(Notice(message="fits"), bytes(channel.MAX_PAYLOAD_BYTES))
    with pytest.raises(ChannelError, match="1048577 bytes"):
        channel.encode(Notice(message="too large"), bytes(channel.MAX_PAYLOAD_BYTES + 1))


def test_a_header_above_its_cap_is_refused():
    with pytest.raises(ChannelError, match="header"):
        channel.encode(Notice(message="x" * (channel.MAX_HEADER_BYTES + 1)))


def test_losses_that_are_no_numbers_survive_the_way():
    sent = StepSamples(
        run_id="r",
        slice=0,
        phase="measure",
        kind="train",
        start_ns=(1, 2, 3, 4),
        duration_ns=(1, 1, 1, 1),
        tokens=(1, 1, 1, 1),
        loss=(1.5, math.nan, math.inf, -math.inf),
    )
    received = channel.decode_record(channel.encode_header(sent))
    assert isinstance(received, StepSamples)
    assert received.loss[0] == 1.5
    assert math.isnan(received.loss[1])
    assert received.loss[2:] == (math.inf, -math.inf)


def test_unknown_values_stay_none_and_the_word_null_stays_a_word():
    sent = Failure(kind="internal", message="null", run_id=None)
    assert channel.decode_record(channel.encode_header(sent)) == sent


def test_a_file_name_that_is_not_utf8_can_be_sent():
    sent = Notice(message="cannot read m\udcffdel.gguf")
    received = channel.decode_record(channel.encode_header(sent))
    assert received == Notice(message="cannot read m\\udcffdel.gguf")


def test_messages_of_both_directions_come_back_equal():
    experiment = Experiment(model="preset:tiny", workload=Workload(prompt="a\nbé"), variants=(Variant(), Variant()))
    start = StartExperiment(experiment=experiment, experiment_id="e1")
    assert channel.decode_command(channel.encode_header(start)) == start
    profile = Profile(run_id="r", steps=3, overhead=1.5, wall_us=10.0, busy_us=9.0, kernels=(), device="cpu")
    assert channel.decode_record(channel.encode_header(profile)) == profile
    done = CommandDone(command="warm_up")
    assert channel.decode_record(channel.encode_header(done)) == done


def test_fields_of_a_newer_version_are_ignored_and_unknown_messages_are_told():
    assert channel.decode_record(b'{"type":"notice","message":"m","later":[1]}') == Notice(message="m")
    with pytest.raises(ChannelError, match="same version of gptscope"):
        channel.decode_record(b'{"type":"from_the_future"}')
    with pytest.raises(ChannelError):
        channel.decode_record(b'{"type":"notice","message":"\xff"}')
    with pytest.raises(ChannelError):
        channel.decode_command(b"{broken}")


def test_an_impossible_workload_is_refused_with_its_own_sentence():
    good = channel.encode_header(
        StartExperiment(
            experiment=Experiment(model="m", workload=Workload(batch=7), variants=(Variant(),)), experiment_id="e"
        )
    )
    with pytest.raises(ChannelError, match="batch is 0, but it must be 1 or more"):
        channel.decode_command(good.replace(b'"batch":7', b'"batch":0'))


def test_writer_and_reader_meet_over_a_real_pipe():
    read_end, write_end = os.pipe()
    with open(write_end, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
        writer = FrameWriter(stream)
        writer.send(Notice(message="one"))
        writer.send(Notice(message="two"), b"payload")
    try:
        received = list(channel.read_frames(read_end))
    finally:
        os.close(read_end)
    assert [channel.decode_record(header) for header, _ in received] == [Notice(message="one"), Notice(message="two")]
    assert [payload for _, payload in received] == [b"", b"payload"]


def test_a_writer_flushes_each_frame():
    raw = io.BytesIO()
    stream = io.BufferedWriter(raw, buffer_size=1 << 16)  # type: ignore[arg-type]
    FrameWriter(stream).send(Notice(message="now"))
    assert raw.getvalue() == channel.encode(Notice(message="now"))
