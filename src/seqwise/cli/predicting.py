"""seqwise predict on lines: a file or standard input in, an answer for each line out, in order."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..api import TrainedRun
from ..data.pair_files import languages_of, source_texts
from ..decoding.translate import Answer
from ..errors import DataError
from ..goals.goal import AnswersRows
from ..wording import plural
from .progress import counting
from .results import say_results
from .terminal import note, say


def answer_lines(
    run: TrainedRun,
    lines: Iterable[str],
    options: dict[str, Any],
    *,
    with_scores: bool,
    with_alignments: bool,
    as_json: bool,
) -> None:
    """JSON has the alignment wherever the model has one."""
    num_cut = 0
    with_alignments = with_alignments or (as_json and run.model.can_align)

    def counted() -> Iterator[Answer]:
        nonlocal num_cut
        for answer in counting(run.answers(lines, with_alignments=with_alignments, **options), "lines"):
            num_cut += answer.is_cut
            yield answer

    if as_json:
        say_results("predict", map(_as_dict, counted()))
    else:
        for number, answer in enumerate(counted(), start=1):
            for line in _lines(number, answer, options, with_scores):
                say(line)
    if num_cut:
        longest = run.model.context
        are = plural(num_cut, "line is", "lines are")
        note(f"note: {num_cut:,} {are} longer than the {longest} tokens the model can place; the beginning was read")


def answer_part(
    run: TrainedRun, data: str | None, split: str | None, options: dict[str, Any], *, as_json: bool
) -> None:
    """What is no question for each line: forecasts, labels, tags."""
    if as_json and isinstance(run.goal, AnswersRows):
        say_results("predict", run.predictions(data, split=split))
        return
    lines = run.predict(data, split=split, **options)
    if not as_json:
        for line in lines:
            say(line)
    elif run.goal.writes_table:
        rows = csv.DictReader(lines)
        say_results("predict", ({name: float(value) for name, value in row.items()} for row in rows))
    else:
        say_results("predict", ({"answer": line} for line in lines))


def source_lines(run: TrainedRun, file: str | None) -> Iterator[str]:
    """`file` is a path, or - (or nothing) for standard input. Of a .tsv or .jsonl the source is read."""
    if file is None or file == "-":
        yield from standard_input()
        return
    path = Path(file)
    if not path.exists() or path.is_dir():
        raise DataError(f"{file}: no such file.")
    config, notes = run.run.config.data, list[str]()
    for place, text in enumerate(source_texts(path, config.columns or languages_of(config.source), notes)):
        if place == 0:
            for sentence in notes:
                note(f"note: {sentence}")
        yield text


def standard_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"standard input: not UTF-8: line {number}, byte {error.start}.") from None


def _as_dict(answer: Answer) -> dict[str, Any]:
    answers = [
        {"text": text, "score": score, "log_prob": h.log_prob, "tokens": h.tokens}
        for text, score, h in zip(answer.texts, answer.scores, answer.hypotheses, strict=True)
    ]
    found: dict[str, Any] = {"source": answer.source, "answers": answers, "alignment": None}
    if answer.alignment is not None:
        found["alignment"] = {
            "source": answer.alignment.source,
            "target": answer.alignment.target,
            "weights": [[round(w, 4) for w in row] for row in answer.alignment.weights.tolist()],
        }
    return found


def _lines(number: int, answer: Answer, options: dict[str, Any], with_scores: bool) -> Iterable[str]:
    is_list = (options.get("num_results") or 1) > 1
    for place, (text, score) in enumerate(zip(answer.texts, answer.scores, strict=True)):
        fields = [str(number)] if is_list else []
        fields += [f"{score:.4f}"] if with_scores or is_list else []
        fields.append(text)
        if answer.alignment is not None and place == 0:
            fields.append(answer.alignment.links())
        yield "\t".join(fields)
