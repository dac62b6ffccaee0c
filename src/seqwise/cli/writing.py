"""Text as it is written, token by token."""

from __future__ import annotations

import sys

from ..api import TrainedRun
from ..decoding import DecodingConfig, stream
from .terminal import write


def stream_text(trained: TrainedRun, prompt: str, config: DecodingConfig) -> None:
    """Write the prompt, then each character as soon as it is certain: later tokens may complete its bytes."""
    write(sys.stdout, prompt)
    tokens: list[int] = []
    shown = ""
    for token in stream(trained.model, trained.prompt_ids(prompt), config):
        tokens.append(token)
        text = trained.text_after(prompt, tokens)
        if text.endswith("\ufffd") or not text.startswith(shown):
            continue
        write(sys.stdout, text[len(shown) :])
        shown = text
    final = trained.text_after(prompt, tokens)
    write(sys.stdout, (final[len(shown) :] if final.startswith(shown) else "") + "\n")
