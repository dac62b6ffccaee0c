"""Text as it is written, token by token."""

from __future__ import annotations

import sys

from ..api import TrainedRun
from ..decoding import DecodingConfig, stream


def stream_text(trained: TrainedRun, prompt: str, config: DecodingConfig) -> None:
    """Write the prompt, then each character as soon as it is certain: later tokens may complete its bytes."""
    sys.stdout.write(prompt)
    tokens: list[int] = []
    shown = ""
    for token in stream(trained.model, trained.prompt_ids(prompt), config):
        tokens.append(token)
        text = trained.text_after(prompt, tokens)
        if text.endswith("\ufffd") or not text.startswith(shown):
            continue
        sys.stdout.write(text[len(shown) :])
        sys.stdout.flush()
        shown = text
    final = trained.text_after(prompt, tokens)
    sys.stdout.write((final[len(shown) :] if final.startswith(shown) else "") + "\n")
    sys.stdout.flush()
