"""seqwise data phrases: a text with its phrases joined, as a file to learn vectors from."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..data.files import lines_of, writing
from ..errors import ConfigError
from ..settings import DataConfig
from ..tasks import task_named
from ..text.phrases import join_text
from ..text.words import PROSE
from ..wording import counted
from .results import say_results
from .terminal import say

SHOWN = 20


def write_phrases(sources: list[str], out: Path, settings: dict[str, Any], *, lower_case: bool, as_json: bool) -> None:
    """Of files all of their text, of a data set its training part."""
    if out.exists():
        raise ConfigError(f"{out} exists already. Choose another name.")
    data = task_named("text").open(DataConfig(source=sources))
    parts = list(data.parts.values()) if Path(sources[0]).exists() else [data.parts["train"]]
    text = lines_of(chain.from_iterable(part.blocks() for part in parts))
    lines = [PROSE.findall(line.lower() if lower_case else line) for line in text]  # marks are words of their own
    joined, phrases = join_text(lines, **settings)
    with writing(out) as file:
        file.writelines(f"{' '.join(line)}\n".encode() for line in joined)
    if as_json:
        say_results("data phrases", [{"out": str(out), "lines": len(lines), "phrases": phrases}])
        return
    for phrase, score in islice(phrases.items(), SHOWN):
        say(f"{score:12,.0f}  {phrase}")
    say(f"{out}: {counted(len(phrases), 'phrase')} joined in {counted(len(lines), 'line')}")
    say(f"next: seqwise train {out} --model word2vec")
