"""The application: routes in the words of OpenAI's clients for what continues text, and our own for all the rest.

app = create_app(Hosting({"poems": Path("runs/poems-lstm")}, Limits()), rules)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from .. import __version__
from ..errors import SeqwiseError
from .guard import Guard, Rules, error_object
from .hosting import Hosting
from .metrics import Metrics
from .openai_routes import openai_routes
from .own_routes import own_routes, watching_routes
from .refusals import status_of

ABOUT = "Runs of seqwise over HTTP: texts go on, rows are labelled, sources translated, series forecast."
RETRY_AFTER = "1"  # seconds


def create_app(hosting: Hosting, rules: Rules, *, metrics: Metrics | None = None, log: Any = None) -> Guard:
    metrics = metrics or Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.get_running_loop().run_in_executor(None, lambda: hosting.stop(seconds=hosting.limits.seconds))

    app = FastAPI(
        title="seqwise",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,  # those pages load scripts from other places
        redoc_url=None,
        responses={"4XX": {"description": "What was wrong with the request, in one sentence."}},
    )
    app.include_router(openai_routes(hosting, metrics))
    app.include_router(own_routes(hosting))
    app.include_router(watching_routes(hosting, metrics))
    app.add_exception_handler(SeqwiseError, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _our_fault)
    return Guard(app, rules, metrics, log)


async def _told(request: Request, error: Exception) -> JSONResponse:
    """What people can do wrong is told as it stands."""
    status = status_of(error)
    headers = {"Retry-After": RETRY_AFTER} if status == 429 else None
    code = "model_not_found" if status == 404 else None
    return JSONResponse(error_object(str(error), status, code=code), status, headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    """The first of what does not fit, in one sentence; what was given is not repeated: it may be long, or no JSON."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body",) and not isinstance(part, int))
    if first["type"] == "json_invalid":
        return JSONResponse(error_object("the request is no JSON that can be read.", 400), 400)
    if "json" not in request.headers.get("content-type", ""):
        return JSONResponse(error_object("send the request as JSON, with Content-Type: application/json.", 400), 400)
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "is not known here"
    where = f"{place}: " if place else ""
    return JSONResponse(error_object(f"{where}{message[:300]}.", 400, param=place or None), 400)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    sentence = {
        400: "the body of the request cannot be read as JSON.",
        404: "there is nothing at this address.",
        405: "this address is asked in another way.",
    }
    said = sentence.get(error.status_code, str(error.detail))
    return JSONResponse(error_object(said, error.status_code), error.status_code, error.headers)


async def _our_fault(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse(error_object("something went wrong on the server's side.", 500), 500)
