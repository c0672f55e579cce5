"""Join a Ray cluster, or start Ray on this machine.

Nothing is sent to Ray's makers, and no dashboard is started. Ray takes SIGTERM for itself; whoever had it before gets
it back.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from headway.errors import ArgumentError

_SECONDS_TO_ANSWER = 10.0


def connect(address: str | None, cpus: int | None = None) -> bool:
    """Join the cluster at an address, or start Ray here (None) with so many CPUs; false if this process has done so."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its warning about GPUs, where there are none
    import ray
    from ray.exceptions import GetTimeoutError

    if ray.is_initialized():
        return False
    own: dict[str, Any] = {"num_cpus": cpus, "include_dashboard": False} if address is None else {}
    try:
        _require_listener(address or "")
        with warnings.catch_warnings(), _own_signals():
            warnings.simplefilter("ignore")
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (OSError, ValueError, RuntimeError, GetTimeoutError) as error:
        reason = str(error).partition("\n")[0]
        raise ArgumentError(
            f"no Ray cluster answers at {address!r} ({reason}); start one with ray start --head, or leave --address out"
        ) from None
    return True


def _require_listener(address: str) -> None:
    """Refuse a host and port at which nobody listens; Ray would wait for minutes, and end the process."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER).close()


@contextmanager
def _own_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    if before is not None and current_thread() is main_thread():
        signal.signal(signal.SIGTERM, before)
