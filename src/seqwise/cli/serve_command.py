"""seqwise serve: runs over HTTP."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from ..errors import ConfigError
from .terminal import note, say


def serve(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs; NAME=RUN gives one a name.")],
    host: Annotated[str, typer.Option(help="Address to listen at; any but loopback needs a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that this server is called by, besides --host.")
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Texts of a run that are written side by side.")] = 32,
    max_waiting: Annotated[int, typer.Option(min=1, help="Texts of a run that may wait to be begun.")] = 256,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens that a request may ask for.")] = 4096,
    max_memory: Annotated[
        float | None, typer.Option(min=0, help="Gigabytes of weights of all runs.", show_default="no limit")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a request may take.")] = 120.0,
    precision: Annotated[str, typer.Option(help="Weights as learned, or rounded to 8 bits: int8.")] = "float32",
) -> None:
    """Serve runs over HTTP: completions as OpenAI's clients ask for them, and answers of every other kind.

    SEQWISE_API_KEY is the key that requests must bring, where it is set.
    """
    from .preflight import check_runs

    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ConfigError('serving needs FastAPI and uvicorn: pip install "seqwise[serve]".') from None
    from ..serving.hosting import Limits
    from ..serving.server import create_server, named_runs

    named = named_runs(runs)
    check_runs(*named.values())
    limits = Limits(
        max_rows=max_rows,
        max_waiting=max_waiting,
        max_tokens=max_tokens,
        seconds=timeout,
        max_memory=math.inf if max_memory is None else max_memory * 1e9,
    )
    server, listening = create_server(
        named, host=host, port=port, allowed_hosts=tuple(allow_host or ()), limits=limits, precision=precision
    )
    address = f"http://{host}:{listening.getsockname()[1]}"
    for name in named:
        note(f"{name}: {named[name]}")
    say(f"serving at {address}, as OpenAI's clients know it at {address}/v1; what can be asked: {address}/openapi.json")
    server.run(sockets=[listening])
