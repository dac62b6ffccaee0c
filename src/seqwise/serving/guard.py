"""What stands before every request: who may ask, how large and how slow it may be; and what is written down of it.

The guard is a plain ASGI application around another. It refuses with the same error object as the routes.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .metrics import Metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = ("/health", "/ready")
"""Asked by machines that watch, without a key."""
HEARD_OUT = 64  # times as much as a request may have
LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")


@dataclass(frozen=True)
class Rules:
    hosts: frozenset[str]
    """Names that a request may call this server by: a page that calls it by another name came here by a trick."""
    max_body: int
    receive_seconds: float
    key: str | None = field(default=None, repr=False)


class RefusedError(Exception):
    """With the status and the sentence that say why."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class Guard:
    def __init__(self, app: App, rules: Rules, metrics: Metrics, log: Callable[[str], None] | None = None):
        self.app, self.rules, self.metrics = app, rules, metrics
        self.log = log or _to_stderr

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, has_begun = time.perf_counter(), 0, False

        async def watched(message: Message) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                status, has_begun = message["status"], True
            await send(message)

        try:
            self._check(scope)
            body = await self._body(scope, receive)
            await self.app(scope, _given_again(body, receive), watched)
        except RefusedError as error:
            if not has_begun:
                await _refuse(watched, error)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "unknown")
            self.metrics.add("seqwise_requests_total", route=route, status=str(status))
            self.metrics.observe("seqwise_request_seconds", seconds, route=route)
            client = scope.get("client") or ("", 0)
            facts = {"time": round(time.time(), 3), "client": client[0], "method": scope["method"], "route": route}
            self.log(json.dumps({**facts, "status": status, "ms": round(1000 * seconds, 1)}))

    def _check(self, scope: Scope) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = _name_of(headers.get(b"host", ""))
        if host not in self.rules.hosts:
            raise RefusedError(403, "this server is not called by that name; see --host and --allow-host.")
        origin = headers.get(b"origin")
        if origin and origin != "null" and urlsplit(origin).netloc.lower() != headers.get(b"host", "").lower():
            raise RefusedError(403, "pages of other sites may not ask this server.")
        if origin == "null":
            raise RefusedError(403, "pages without an address of their own may not ask this server.")
        if self.rules.key is not None and scope["path"] not in OPEN:
            given = headers.get(b"authorization", "").removeprefix("Bearer ").strip()
            if not hmac.compare_digest(given.encode(), self.rules.key.encode()):
                raise RefusedError(401, "the API key is missing or wrong: send it as Authorization: Bearer KEY.")

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """All of it, before anything is computed: as large and as slow as it may be. What is too much is heard out for
        a while, as clients listen only when they have said all."""
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.rules.receive_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError(400, "the request was cut off.")
                    part, is_last = message.get("body", b""), not message.get("more_body", False)
                    size += len(part)
                    if size <= self.rules.max_body:
                        parts.append(part)
                    elif is_last or size > HEARD_OUT * self.rules.max_body:
                        raise RefusedError(413, f"a request may have {self.rules.max_body:,} bytes; send less at once.")
                    if is_last:
                        return b"".join(parts)
        except TimeoutError:
            raise RefusedError(408, "the request took too long to arrive.") from None


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _given_again(body: bytes, receive: Receive) -> Receive:
    """The body at once; afterwards what comes, such as that who asked has gone."""
    is_given = False

    async def give() -> Message:
        nonlocal is_given
        if not is_given:
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return give


def _name_of(host: str) -> str:
    """Without the port."""
    if host.startswith("["):
        return host[: host.find("]") + 1].lower()
    return host.rsplit(":", 1)[0].lower() if ":" in host else host.lower()


def error_object(sentence: str, status: int, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """As OpenAI's clients expect it."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": sentence, "type": kind, "param": param, "code": code}}


async def _refuse(send: Send, error: RefusedError) -> None:
    body = json.dumps(error_object(str(error), error.status)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if error.status == 401 else [(b"connection", b"close")]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
