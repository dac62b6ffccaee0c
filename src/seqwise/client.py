"""A run that somebody serves, with the verbs of a run.

    run = seqwise.connect("http://localhost:8000", model="poems")
    run.generate("Shall I ", max_tokens=40)
    run.predict(["a fine film"])

Only Python's own library is needed. Answers that say what was wrong are raised as errors with that sentence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from .errors import ConfigError, SeqwiseError

KEY = "SEQWISE_API_KEY"


class ServerError(SeqwiseError):
    """A server did not answer as it should."""


class RemoteRun:
    def __init__(self, url: str, model: str | None = None, *, key: str | None = None, timeout: float = 130.0):
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"{url} is no address of a server; it begins with http:// or https://.")
        self.url, self.timeout = url.rstrip("/").removesuffix("/v1"), timeout
        self._key = key or os.environ.get(KEY)
        self.model = model or self._only()

    def __repr__(self) -> str:
        return f"<RemoteRun {self.model} at {self.url}>"

    @property
    def models(self) -> list[str]:
        """Names of the runs that are served."""
        return [each["id"] for each in self._ask("/v1/models")["data"]]

    def generate(self, prompt: str = "", *, max_tokens: int = 200, **settings: Any) -> str:
        """The prompt and how it goes on; settings as /v1/completions takes them: temperature, top_k, seed, stop, ..."""
        asked = {"prompt": prompt, "max_tokens": max_tokens, **settings}
        return prompt + str(self._ask("/v1/completions", asked)["choices"][0]["text"])

    def stream(self, prompt: str = "", *, max_tokens: int = 200, **settings: Any) -> Iterator[str]:
        """How a prompt goes on, as it is written."""
        asked = {"prompt": prompt, "max_tokens": max_tokens, "stream": True, **settings}
        with self._open("/v1/completions", asked) as response:
            for line in response:
                event = line.decode().strip().removeprefix("data: ")
                if event and event != "[DONE]":
                    told = json.loads(event)
                    if "error" in told:
                        raise ServerError(told["error"]["message"])
                    yield from (choice["text"] for choice in told["choices"] if choice["text"])

    def predict(self, inputs: Sequence[Any], **settings: Any) -> list[Any]:
        """Labels, tags, translations, spans, hidden words or forecasts: an answer for each."""
        return list(self._ask("/predict", {"inputs": list(inputs), **settings})["outputs"])

    def translate(self, text: str, *, beam: int = 5) -> str:
        return str(self.predict([text], beam=beam)[0]["text"])

    def answer(self, question: str, context: str, *, num: int = 1) -> list[dict[str, Any]]:
        """Spans of a passage that answer a question, best first."""
        found: list[dict[str, Any]] = self.predict([{"question": question, "context": context}], num=num)[0]
        return found

    def fill(self, text: str, *, num: int = 5) -> list[dict[str, float]]:
        """The most probable words for each [MASK], with their probabilities."""
        found: list[dict[str, float]] = self.predict([text], num=num)[0]
        return found

    def forecast(self, values: Sequence[Any], *, horizon: int) -> dict[str, Any]:
        """What comes after a series, with a 95 % interval."""
        found: dict[str, Any] = self.predict([list(values)], horizon=horizon)[0]
        return found

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text."""
        return [each["embedding"] for each in self._ask("/v1/embeddings", {"input": list(texts)})["data"]]

    def log_likelihood(self, texts: Sequence[str]) -> list[float]:
        """How probable each text is, in nats."""
        return [each["log_likelihood"] for each in self._ask("/loglikelihood", {"texts": list(texts)})["texts"]]

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return [each["ids"] for each in self._ask("/tokenize", {"texts": list(texts)})["texts"]]

    def inspect(self, text: str) -> dict[str, Any]:
        """What goes on inside the model while it reads a text, as numbers."""
        found: dict[str, Any] = self._ask("/inspect", {"text": text})["inspection"]
        return found

    def _only(self) -> str:
        names = self.models
        if len(names) != 1:
            raise ConfigError(f"{self.url} serves several runs; name one as model: {', '.join(names)}.")
        return names[0]

    def _ask(self, route: str, asked: dict[str, Any] | None = None) -> dict[str, Any]:
        with self._open(route, asked) as response:
            found: dict[str, Any] = json.load(response)
        return found

    def _open(self, route: str, asked: dict[str, Any] | None) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        body = None if asked is None else json.dumps({"model": self.model, **asked}).encode()
        request = Request(self.url + route, data=body, headers=headers)
        try:
            return urlopen(request, timeout=self.timeout)
        except HTTPError as error:
            raise ServerError(_sentence(error)) from None
        except (URLError, TimeoutError, ConnectionError) as error:
            raise ServerError(f"{self.url} does not answer ({getattr(error, 'reason', error)}).") from None


def _sentence(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {error.code} {error.reason}."


def connect(url: str, model: str | None = None, *, key: str | None = None, timeout: float = 130.0) -> RemoteRun:
    """A run that is served at this address; `model` names it where there are several. `key`: as in SEQWISE_API_KEY."""
    return RemoteRun(url, model, key=key, timeout=timeout)
