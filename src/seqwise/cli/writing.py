"""What a model writes: token by token as it comes, or texts with their log-probabilities."""

from __future__ import annotations

import sys
import time

from ..api import TrainedRun
from ..decoding import DecodingConfig, generate, stream
from .results import say_results
from .terminal import say, write

REDRAW = 0.02  # seconds: all of a text is decoded anew, and tokens may come by the thousand


def write_texts(trained: TrainedRun, prompt: str, config: DecodingConfig, *, as_json: bool) -> None:
    """One text as it is written where it can be, else all of them at the end."""
    if not as_json and config.num_results == 1 and config.method in ("sample", "greedy"):
        stream_text(trained, prompt, config)
        return
    found = generate(trained.model, [trained.prompt_ids(prompt)], config)[0]
    texts = [prompt + trained.text_after(prompt, hypothesis.tokens) for hypothesis in found]
    if as_json:
        results = (
            {"prompt": prompt, "text": text, "log_prob": h.log_prob, "tokens": h.tokens, "finished": h.is_finished}
            for text, h in zip(texts, found, strict=True)
        )
        say_results("generate", results)
        return
    for text, hypothesis in zip(texts, found, strict=True):
        if len(texts) > 1:
            say(f"--- log-probability {hypothesis.log_prob:.3f}")
        say(text)


def stream_text(trained: TrainedRun, prompt: str, config: DecodingConfig) -> None:
    """Write the prompt, then each character as soon as it is certain: later tokens may complete its bytes."""
    write(sys.stdout, prompt)
    tokens: list[int] = []
    shown, last = "", 0.0
    for token in stream(trained.model, trained.prompt_ids(prompt), config):
        tokens.append(token)
        if time.monotonic() < last + REDRAW:
            continue
        last = time.monotonic()
        text = trained.text_after(prompt, tokens)
        if text.endswith("\ufffd") or not text.startswith(shown):
            continue
        write(sys.stdout, text[len(shown) :])
        shown = text
    final = trained.text_after(prompt, tokens)
    write(sys.stdout, (final[len(shown) :] if final.startswith(shown) else "") + "\n")
