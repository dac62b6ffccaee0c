"""uvicorn around the application: on loopback unless told otherwise, and to be stopped without losing anybody's answer.

A request has to arrive in time from its first byte on. uvicorn itself waits for ever for the rest of its headers.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import ConfigError
from .app import create_app
from .guard import LOOPBACK, Guard, Rules
from .hosting import Hosting, Limits

KEY = "SEQWISE_API_KEY"
MAX_HEADERS = 32 << 10  # bytes
BACKLOG = 512
KEEP_ALIVE = 30  # seconds between requests of one connection


def protocol_for(seconds: float) -> type[H11Protocol]:
    """Connections that are closed where nothing whole arrives in time."""

    class TimedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            if before is not None and before.response_complete and self._deadline is None:
                self._wait()  # the next request of this connection begins
            super().data_received(data)
            if self.cycle is not before and self._deadline is not None:  # its headers are whole
                self._deadline.cancel()
                self._deadline = None

        def connection_lost(self, exc: Exception | None) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._deadline = asyncio.get_running_loop().call_later(seconds, self._too_late)

        def _too_late(self) -> None:
            self._deadline = None
            self.transport.close()

    return TimedProtocol


def named_runs(given: list[str]) -> dict[str, Path]:
    """NAME=RUN, or RUN by the name of its folder."""
    runs: dict[str, Path] = {}
    for each in given:
        name, is_named, path = each.partition("=") if not Path(each).exists() else ("", "", each)
        folder = Path(path if is_named or not name else name)
        name = name if is_named else folder.resolve().name
        if not name:
            raise ConfigError(f'"{each}" names no run: write NAME=RUN, or RUN.')
        if name in runs:
            raise ConfigError(f"two runs are named {name}: {runs[name]} and {folder}. Name one of them: NAME={folder}.")
        runs[name] = folder
    return runs


def create_server(
    runs: Mapping[str, Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: tuple[str, ...] = (),
    limits: Limits | None = None,
    precision: str = "float32",
    log: Any = None,
) -> tuple[uvicorn.Server, socket.socket]:
    """A server and the socket that it listens at, bound already: what is wrong with the address is told at once."""
    limits, key = limits or Limits(), os.environ.get(KEY) or None
    if host not in LOOPBACK and key is None:
        raise ConfigError(
            f"--host {host} can be reached by others, so it needs a key: set {KEY}, or leave out --host to serve this "
            "machine alone."
        )
    rules = Rules(
        frozenset({*LOOPBACK, host.lower(), *map(str.lower, allowed_hosts)}),
        limits.max_body,
        limits.receive_seconds,
        key,
    )
    app: Guard = create_app(Hosting(runs, limits, precision=precision), rules, log=log)
    listening = _bound(host, port)
    config = uvicorn.Config(
        app,
        http=protocol_for(limits.receive_seconds),
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEADERS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
        backlog=BACKLOG,
    )
    return uvicorn.Server(config), listening


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        raise ConfigError(f"{host}:{port} cannot be listened at ({error.strerror}); choose another --port.") from None
    return listening
