"""A server in a thread of its own, for tests that ask one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqwise.serving.server import create_server


@contextmanager
def serving(runs: dict[str, Path], **settings: Any) -> Iterator[tuple[str, list[str]]]:
    """Its address, and the lines of its log."""
    log: list[str] = []
    settings = {"port": 0, "log": log.append, **settings}
    server, listening = create_server(runs, **settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < until
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", log
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()
        assert not thread.is_alive()
