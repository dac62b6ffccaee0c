"""Our own routes: answers of every kind, likelihoods, tokens, traces; and how the server is."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse

from ..errors import ConfigError
from .answers import answering
from .completing import prompt_of, scored
from .hosting import Hosted, Hosting, check_continues
from .messages import InspectAsked, PredictAsked, TextsAsked
from .metrics import Metrics

MAX_INSPECTED = 20_000  # characters


def own_routes(hosting: Hosting) -> APIRouter:
    """For those who ask."""
    router = APIRouter(tags=["our own"])

    @router.post("/predict")
    async def predict(asked: PredictAsked) -> dict[str, Any]:
        """Labels, tags, translations, spans, hidden words, forecasts: an answer for each input."""
        hosted = hosting.find(asked.model)
        answer = answering(hosted.run)
        how = asked.model_copy(update={"inputs": []})
        async with hosting.used(hosted.name):
            joined = hosted.join("predict", lambda questions, how: answer(hosted.run, questions, how))
            return {"model": hosted.name, "outputs": await joined.ask(asked.inputs, how)}

    @router.post("/loglikelihood")
    async def loglikelihood(asked: TextsAsked) -> dict[str, Any]:
        """How probable texts are, token by token, in nats."""
        hosted = hosting.find(asked.model)
        check_continues(hosted)
        prompts = [prompt_of(hosted, text) for text in asked.texts]
        async with hosting.used(hosted.name):
            found = await hosted.in_worker(lambda: [scored(hosted, prompt) for prompt in prompts])
        piece = hosted.run.tokenizer.piece
        texts = [
            {
                "log_likelihood": sum(each.log_prob for each in tokens),
                "tokens": [piece(each.token) for each in tokens],
                "log_probs": [each.log_prob for each in tokens],
            }
            for tokens in found
        ]
        return {"model": hosted.name, "texts": texts}

    @router.post("/tokenize")
    async def tokenize(asked: TextsAsked) -> dict[str, Any]:
        """Texts as a run reads them."""
        hosted = hosting.find(asked.model)
        tokenizer = hosted.run.tokenizer
        encoded = [tokenizer.encode(text).tolist() for text in asked.texts]
        texts = [{"ids": ids, "tokens": [tokenizer.piece(token) for token in ids]} for ids in encoded]
        return {"model": hosted.name, "texts": texts}

    @router.post("/inspect")
    async def inspect(asked: InspectAsked) -> dict[str, Any]:
        """What goes on inside the model while it reads a text: what the inspect page shows, as numbers."""
        if len(asked.text) > MAX_INSPECTED:
            raise ConfigError(f"the text has more than {MAX_INSPECTED:,} characters; inspect a part of it.")
        async with hosting.used(asked.model) as hosted:
            found = await hosted.in_worker(lambda: hosted.run.inspect(asked.text).to_dict())
        return {"model": hosted.name, "inspection": found}

    return router


def watching_routes(hosting: Hosting, metrics: Metrics) -> APIRouter:
    """For those who look after the server."""
    router = APIRouter(tags=["how the server is"])

    @router.get("/health")
    async def health() -> dict[str, str]:
        """Whether the server is alive."""
        return {"status": "ok"}

    @router.get("/ready", response_model=None)
    async def ready() -> JSONResponse:
        """Whether it takes requests: no run has as many waiting as may."""
        full = [hosted.name for hosted in hosting.runs.values() if _is_full(hosted)]
        return JSONResponse({"status": "full" if full else "ready", "full": full}, 503 if full else 200)

    @router.get("/metrics", response_class=PlainTextResponse)
    async def show_metrics() -> str:
        """In the text format of Prometheus."""
        return metrics.text(_gauges(hosting))

    return router


def _is_full(hosted: Hosted) -> bool:
    return hosted.running is not None and hosted.running.num_waiting >= hosted.limits.max_waiting


def _gauges(hosting: Hosting) -> dict[str, dict[str, float]]:
    writing = {name: hosted.running for name, hosted in hosting.runs.items() if hosted.running is not None}
    return {
        "seqwise_loaded": {name: float(hosted.is_loaded) for name, hosted in hosting.runs.items()},
        "seqwise_waiting": {name: float(found.num_waiting) for name, found in writing.items()},
        "seqwise_running": {name: float(found.num_running) for name, found in writing.items()},
        "seqwise_generated_tokens_total": {name: float(found.counts.tokens) for name, found in writing.items()},
        "seqwise_prompt_tokens_read_total": {name: float(found.prompts.num_read) for name, found in writing.items()},
        "seqwise_prompt_tokens_known_total": {name: float(found.prompts.num_known) for name, found in writing.items()},
        "seqwise_steps_total": {name: float(found.counts.steps) for name, found in writing.items()},
    }
