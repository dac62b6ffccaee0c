"""Routes as OpenAI's clients ask them: models, completions, chat, embeddings."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import JSONResponse, StreamingResponse

from ..errors import ConfigError, SeqwiseError
from .batching import Written
from .chat import chat_prompt
from .completing import Piece, Prompt, prompt_of, scored, written
from .guard import error_object
from .hosting import Hosted, Hosting, check_continues
from .messages import ChatAsked, CompletionAsked, EmbeddingsAsked, Writing
from .metrics import Metrics
from .refusals import status_of

DEFAULT_TOKENS = 16  # of a completion, as OpenAI has it
DONE = "data: [DONE]\n\n"


def openai_routes(hosting: Hosting, metrics: Metrics) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["as OpenAI's clients ask"])

    @router.get("/models")
    async def models() -> dict[str, Any]:
        """The runs that are served."""
        return {"object": "list", "data": [_model(hosted) for hosted in hosting.runs.values()]}

    @router.get("/models/{name}")
    async def model(name: str) -> dict[str, Any]:
        return _model(hosting.find(name))

    @router.post("/completions", response_model=None)
    async def completions(asked: CompletionAsked) -> StreamingResponse | JSONResponse:
        """How texts go on: several for each prompt, streamed or whole."""
        hosted = hosting.find(asked.model)
        check_continues(hosted)
        prompts = [prompt_of(hosted, prompt) for prompt in asked.prompts]
        asking = Asking(hosting, metrics, hosted, asked, prompts, CompletionForm(hosted.name, asked.logprobs))
        return await asking.answer(asked.max_tokens, echo=asked.echo)

    @router.post("/chat/completions", response_model=None)
    async def chat(asked: ChatAsked) -> StreamingResponse | JSONResponse:
        """What comes next in a conversation, for runs that bring a template for it."""
        hosted = hosting.find(asked.model)
        check_continues(hosted)
        prompt = prompt_of(hosted, chat_prompt(hosted.path, asked.messages))
        alternatives = (asked.top_logprobs or 0) if asked.logprobs else None
        form = ChatForm(hosted.name, alternatives)
        most = asked.max_completion_tokens if asked.max_completion_tokens is not None else asked.max_tokens
        most = hosted.limits.max_tokens if most is None else most
        return await Asking(hosting, metrics, hosted, asked, [prompt], form).answer(most)

    @router.post("/embeddings")
    async def embeddings(asked: EmbeddingsAsked) -> dict[str, Any]:
        """Texts as vectors."""
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        async with hosting.used(asked.model) as hosted:
            joined = hosted.join("embed", lambda texts, how: list(hosted.run.embed(texts)))
            vectors = await joined.ask(texts)
        num = sum(len(hosted.run.tokenizer.encode(text)) for text in texts)
        data = [
            {"object": "embedding", "index": index, "embedding": _shown_vector(vector, asked.encoding_format)}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": num, "total_tokens": num}
        return {"object": "list", "data": data, "model": hosted.name, "usage": usage}

    return router


# -- forms of an answer ------------------------------------------------------------------------------------------------


@dataclass
class CompletionForm:
    """An answer as /v1/completions gives it."""

    name: str
    alternatives: int | None

    def __post_init__(self) -> None:
        self.id, self.created = f"cmpl-{secrets.token_hex(12)}", int(time.time())

    def whole(self, choices: list[Any], usage: dict[str, int]) -> dict[str, Any]:
        return {**self._head("text_completion"), "choices": choices, "usage": usage}

    def event(self, choices: list[Any], **more: Any) -> dict[str, Any]:
        return {**self._head("text_completion"), "choices": choices, **more}

    def choice(self, index: int, text: str, logprobs: Any, finish_reason: str | None) -> dict[str, Any]:
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason}

    delta = choice

    def logprobs(self, hosted: Hosted, tokens: Sequence[Written], offset: int) -> dict[str, Any] | None:
        if self.alternatives is None:
            return None
        piece = hosted.run.tokenizer.piece
        texts = [piece(each.token) for each in tokens]
        offsets = np.cumsum([offset, *map(len, texts)])[:-1].tolist()
        top = [{piece(token): _finite(log_p) for token, log_p in each.alternatives} for each in tokens]
        found = [_finite(each.log_prob) for each in tokens]
        return {"tokens": texts, "token_logprobs": found, "top_logprobs": top, "text_offset": offsets}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.name}


@dataclass
class ChatForm(CompletionForm):
    """An answer as /v1/chat/completions gives it."""

    def __post_init__(self) -> None:
        self.id, self.created = f"chatcmpl-{secrets.token_hex(12)}", int(time.time())

    def whole(self, choices: list[Any], usage: dict[str, int]) -> dict[str, Any]:
        return {**self._head("chat.completion"), "choices": choices, "usage": usage}

    def event(self, choices: list[Any], **more: Any) -> dict[str, Any]:
        return {**self._head("chat.completion.chunk"), "choices": choices, **more}

    def choice(self, index: int, text: str, logprobs: Any, finish_reason: str | None) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish_reason}

    def delta(self, index: int, text: str, logprobs: Any, finish_reason: str | None) -> dict[str, Any]:
        told = {} if finish_reason and not text else {"role": "assistant", "content": text}
        return {"index": index, "delta": told, "logprobs": logprobs, "finish_reason": finish_reason}

    def logprobs(self, hosted: Hosted, tokens: Sequence[Written], offset: int) -> dict[str, Any] | None:
        if self.alternatives is None:
            return None
        piece = hosted.run.tokenizer.piece
        content = [
            {
                **_named(piece(each.token), each.log_prob),
                "top_logprobs": [_named(piece(token), log_p) for token, log_p in each.alternatives],
            }
            for each in tokens
        ]
        return {"content": content, "refusal": None}


def _named(piece: str, log_prob: float) -> dict[str, Any]:
    return {"token": piece, "logprob": _finite(log_prob), "bytes": list(piece.encode("utf-8", "replace"))}


def _finite(log_prob: float) -> float:
    """JSON has no infinity."""
    return max(log_prob, -1e30)


# -- answering ---------------------------------------------------------------------------------------------------------


@dataclass
class Asking:
    """A request for texts, and what is needed to answer it."""

    hosting: Hosting
    metrics: Metrics
    hosted: Hosted
    asked: Writing
    prompts: Sequence[Prompt]
    form: CompletionForm

    async def answer(self, most: int | None, *, echo: bool = False) -> StreamingResponse | JSONResponse:
        """With `most` tokens each."""
        limit = self.hosting.limits.max_tokens
        most = DEFAULT_TOKENS if most is None else most
        if most > limit:
            raise ConfigError(f"max_tokens = {most} is more than this server writes at once, {limit}.")
        if self.asked.stream and echo:
            raise ConfigError("echo and stream do not go together; leave one out.")
        if self.asked.stream:
            events = self._stream(most)
            first = await anext(events)  # what is wrong with a request is told with its status
            return StreamingResponse(_and_then(first, events), media_type="text/event-stream")
        async with self.hosting.used(self.hosted.name):
            found = await self._whole(most)
            choices = [await self._choice(index, *one, echo=echo) for index, one in enumerate(found)]
        return JSONResponse(self.form.whole(choices, _usage(self.prompts, sum(len(tokens) for _, tokens, _ in found))))

    async def _choice(self, index: int, text: str, tokens: list[Written], reason: str, *, echo: bool) -> Any:
        prompt, offset = self.prompts[index // self.asked.n], 0
        if echo:
            tokens, text = [*await self._echoed(prompt), *tokens], prompt.text + text
        else:
            offset = len(prompt.text)
        return self.form.choice(index, text, self.form.logprobs(self.hosted, tokens, offset), reason)

    async def _echoed(self, prompt: Prompt) -> list[Written]:
        num = self.form.alternatives
        if num is None or len(prompt.ids) < 2:
            return []
        found: list[Written] = await self.hosted.in_worker(lambda: scored(self.hosted, prompt, num))
        return found

    async def _pieces(self, most: int) -> AsyncIterator[Piece]:
        began = time.perf_counter()
        if not most:
            for index in range(len(self.prompts) * self.asked.n):
                yield Piece(index, finish_reason="length")
            return
        async for piece in written(self.hosted, self.prompts, self.asked, most, self.form.alternatives or 0):
            if began and piece.written:
                self.metrics.observe("seqwise_first_token_seconds", time.perf_counter() - began, run=self.hosted.name)
                began = 0.0
            yield piece

    async def _whole(self, most: int) -> list[tuple[str, list[Written], str]]:
        """Each text with its tokens and why it ended."""
        num = len(self.prompts) * self.asked.n
        texts, tokens, reasons = [""] * num, [list[Written]() for _ in range(num)], ["length"] * num
        async for piece in self._pieces(most):
            texts[piece.index] += piece.text
            tokens[piece.index] += piece.written
            reasons[piece.index] = piece.finish_reason or reasons[piece.index]
        return list(zip(texts, tokens, reasons, strict=True))

    async def _stream(self, most: int) -> AsyncIterator[str]:
        """Server-sent events: tokens that are ready together share one."""
        num, offsets = 0, [len(prompt.text) for prompt in self.prompts for _ in range(self.asked.n)]
        options = self.asked.stream_options
        more: dict[str, Any] = {"usage": None} if options is not None and options.include_usage else {}
        async with self.hosting.used(self.hosted.name):
            async for piece in self._pieces(most):
                num += len(piece.written)
                tokens, offset = piece.written, offsets[piece.index]
                logprobs = self.form.logprobs(self.hosted, tokens, offset) if tokens else None
                offsets[piece.index] += len(piece.text)
                if piece.text or piece.finish_reason or logprobs:
                    delta = self.form.delta(piece.index, piece.text, logprobs, piece.finish_reason)
                    yield _event(self.form.event([delta], **more))
        if more:
            yield _event(self.form.event([], usage=_usage(self.prompts, num)))
        yield DONE


async def _and_then(first: str, rest: AsyncIterator[str]) -> AsyncIterator[str]:
    """What goes wrong once a stream has begun has no status any more: it is told as an event."""
    yield first
    try:
        async for event in rest:
            yield event
    except SeqwiseError as error:
        yield _event(error_object(str(error), status_of(error)))


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"


def _usage(prompts: Sequence[Prompt], num: int) -> dict[str, int]:
    read = sum(prompt.num_tokens for prompt in prompts)
    return {"prompt_tokens": read, "completion_tokens": num, "total_tokens": read + num}


def _model(hosted: Hosted) -> dict[str, Any]:
    config = hosted.run.run.config
    return {
        "id": hosted.name,
        "object": "model",
        "created": hosted.created,
        "owned_by": "seqwise",
        "family": config.model_name,
        "task": config.task,
        "continues": hosted.continues,
    }


def _shown_vector(vector: np.ndarray, form: str) -> Any:
    if form == "base64":
        return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode()
    return [float(value) for value in vector]
