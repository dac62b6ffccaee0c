"""seqwise answer: questions on a passage, which is a file, a text, or what standard input brings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as shared
from .terminal import say

if TYPE_CHECKING:
    from ..evaluation.span_answers import FoundSpan

NONE = "(the passage does not say)"


def answer(
    run: shared.RunFolder,
    questions: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="What is asked.")],
    context: Annotated[
        str | None, typer.Option(help="File that is asked on; - for standard input.", show_default="standard input")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Text that is asked on, instead of a file.")] = None,
    num: Annotated[int, typer.Option(min=1, help="Number of answers to list for each question.")] = 1,
    as_json: shared.AsJson = False,
) -> None:
    """Answer questions from a passage: the span that answers each, with its probability and where it stands."""
    from .preflight import check_runs

    check_runs(run)
    passage, name = read_passage(context, text)
    from ..api import TrainedRun
    from .results import say_results

    trained = TrainedRun(run)
    found = ((question, trained.answer(question, passage, num=num)) for question in questions)
    if as_json:
        say_results("answer", (_as_dict(question, spans, passage) for question, spans in found))
        return
    for question, spans in found:
        if len(questions) > 1:
            say(question)
        for line in _lines(spans, passage, name):
            say(line)


def read_passage(context: str | None, text: str | None) -> tuple[str, str]:
    """What is asked on, and what places in it are told by."""
    from ..data.files import read_text
    from ..errors import ConfigError, DataError

    if context is not None and text is not None:
        raise ConfigError("--context and --text exclude each other; drop one.")
    if text is not None:
        passage, name = text, ""
    elif context not in (None, "-"):
        path = Path(str(context))
        if not path.is_file():
            raise DataError(f"{path}: no such file.")
        passage, name = "".join(read_text(path)), str(path)
    elif context is None and sys.stdin.isatty():
        raise DataError('a question needs a passage: --context FILE, --text "…", or a text on standard input.')
    else:
        try:
            passage, name = sys.stdin.buffer.read().decode("utf-8"), "standard input"
        except UnicodeDecodeError as error:
            raise DataError(f"standard input: not UTF-8: byte {error.start}.") from None
    if not passage.strip():
        raise DataError(
            f"{name or '--text'}: there is no text in it to answer from. Give --context FILE, or --text with a passage."
        )
    return passage, name


def _lines(spans: list[FoundSpan], passage: str, name: str) -> Iterator[str]:
    for span in spans:
        where = "" if span.is_none else f"  ({_where(span, passage, name)})"
        shown = NONE if span.is_none else " ".join(span.text.split())
        yield f"{span.probability:7.3f}  {shown}{where}"


def _where(span: FoundSpan, passage: str, name: str) -> str:
    line = f"{name}:{_line(span, passage)}, " if name else ""
    return f"{line}characters {span.start:,} to {span.end:,}"


def _line(span: FoundSpan, passage: str) -> int:
    return passage.count("\n", 0, span.start) + 1


def _as_dict(question: str, spans: list[FoundSpan], passage: str) -> dict[str, Any]:
    from ..goals.span import span_as_dict

    answers = [{**span_as_dict(span), "line": None if span.is_none else _line(span, passage)} for span in spans]
    return {"question": question, "answers": answers}
