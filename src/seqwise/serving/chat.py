"""Conversations as prompts: by a run's own template, in the form that Hugging Face has given them.

A template is somebody else's program: it runs in Jinja's sandbox, and sees nothing but the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .messages import Message

TEMPLATE = "vocab/chat_template.jinja"
MAX_PROMPT = 1 << 20  # characters


def chat_prompt(run: Path, messages: Sequence[Message]) -> str:
    """What the model reads of a conversation."""
    path = run / TEMPLATE
    if not path.exists():
        raise ConfigError(
            f"{run.name} has no template for conversations ({TEMPLATE}), so it was not trained to have any; ask "
            "/v1/completions."
        )
    template = _template(path, path.stat().st_mtime_ns)
    from jinja2 import TemplateError

    told = [{"role": message.role, "content": message.text} for message in messages]
    try:
        found = str(template.render(messages=told, add_generation_prompt=True, bos_token="", eos_token=""))
    except (TemplateError, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"the template of {run.name} does not take these messages: {error}.") from None
    if len(found) > MAX_PROMPT:
        raise ConfigError("the conversation is too long.")
    return found


@lru_cache(maxsize=16)
def _template(path: Path, changed: int) -> Any:
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise ConfigError('templates of conversations need Jinja: pip install "seqwise[serve]".') from None
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _refuse
    return environment.from_string(path.read_text(encoding="utf-8"))


def _refuse(sentence: str) -> None:
    """What templates call when a conversation is not to their taste."""
    raise ValueError(sentence)
