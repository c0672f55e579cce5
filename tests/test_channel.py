"""Channels: what is received is what was sent, by memory or by pipe, and stays so."""

from __future__ import annotations

import os
from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import channel
from headway.channel import Channel

Ends = tuple[Channel, Channel]


def opened() -> Ends:
    ours, theirs = Pipe()
    return Channel.open(ours), Channel.join(theirs)


def sent(sender: Channel, receiver: Channel, message: Any) -> Any:
    """A pipe holds little: somebody has to read while it is written."""
    thread = Thread(target=sender.send, args=(message,))
    thread.start()
    received = receiver.receive()
    thread.join()
    return received


@pytest.fixture(params=["memory", "no memory"], scope="module")
def ends(request: pytest.FixtureRequest) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "no memory":
            patch.delattr(os, "memfd_create", raising=False)
        elif not hasattr(os, "memfd_create"):
            pytest.skip("only Linux has memory without a name")
        patch.setattr(channel, "MEMORY", 1 << 16)
        both = opened()
        assert all((end.memory is None) == (request.param == "no memory") for end in both)
        yield both


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 500) | st.sampled_from([8191, 8192, 8193, 30_000]), max_size=4),
    back=st.booleans(),
    seed=st.integers(0, 99),
)
def test_what_is_received_is_what_was_sent(ends: Ends, sizes: list[int], back: bool, seed: int) -> None:
    """Also arrays that just fit into the memory, or do not; and they are nobody else's afterwards."""
    rng = np.random.default_rng(seed)
    sender, receiver = reversed(ends) if back else ends
    message = {"arrays": [rng.normal(size=size) for size in sizes], "flags": rng.random(7) < 0.5, "text": "x"}
    first = sent(sender, receiver, message)
    sent(receiver, sender, [np.full(8192, np.nan)])
    assert first["text"] == "x"
    np.testing.assert_array_equal(first["flags"], message["flags"])
    assert len(first["arrays"]) == len(sizes)
    for array, expected in zip(first["arrays"], message["arrays"], strict=True):
        assert array.flags.writeable
        np.testing.assert_array_equal(array, expected)


def test_nothing_is_left_when_the_ends_are_gone() -> None:
    files = Path("/proc/self/fd")
    if not files.exists():
        pytest.skip("no list of open files here")
    before = len(list(files.iterdir()))
    ends = opened()
    sent(*ends, np.ones(1000))
    assert len(list(files.iterdir())) > before
    for end in ends:
        end.connection.close()
    del ends, end
    assert len(list(files.iterdir())) == before


def test_nobody_at_the_other_end() -> None:
    ours, theirs = opened()
    theirs.connection.close()
    with pytest.raises(EOFError):
        ours.receive()
    with pytest.raises(ConnectionError):
        ours.send(1)
    connection, other = Pipe()
    other.close()
    with pytest.raises(ConnectionError):
        Channel.open(connection)
