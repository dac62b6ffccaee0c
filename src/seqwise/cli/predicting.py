"""seqwise predict on lines: a file or standard input in, an answer for each line out, in order."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..api import TrainedRun
from ..config import to_json
from ..data.pair_files import languages_of, source_texts
from ..decoding.translate import Answer
from ..errors import DataError
from . import note, say
from .progress import counting


def answer_lines(
    run: TrainedRun,
    file: str | None,
    options: dict[str, Any],
    *,
    with_scores: bool,
    with_alignments: bool,
    as_json: bool,
) -> None:
    """`file` is a path, or - (or nothing) for standard input. Of a .tsv or .jsonl the source is read."""
    num_cut = 0
    answers = run.answers(source_lines(run, file), with_alignments=with_alignments, **options)
    for number, answer in enumerate(counting(answers, "lines"), start=1):
        num_cut += answer.is_cut
        for line in _lines(number, answer, options, with_scores, as_json):
            say(line)
    if num_cut:
        longest = run.model.context
        note(
            f"note: {num_cut:,} lines are longer than the {longest} tokens the model can place; the beginning was read"
        )


def source_lines(run: TrainedRun, file: str | None) -> Iterator[str]:
    if file is None or file == "-":
        yield from _standard_input()
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


def _standard_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"standard input: not UTF-8: line {number}, byte {error.start}.") from None


def _lines(number: int, answer: Answer, options: dict[str, Any], with_scores: bool, as_json: bool) -> Iterable[str]:
    scores = answer.scores
    if as_json:
        results = [
            {"text": text, "score": score, "log_prob": h.log_prob, "tokens": h.tokens}
            for text, score, h in zip(answer.texts, scores, answer.hypotheses, strict=True)
        ]
        found: dict[str, Any] = {"source": answer.source, "results": results}
        if answer.alignment is not None:
            found["alignment"] = {
                "source": answer.alignment.source,
                "target": answer.alignment.target,
                "weights": [[round(w, 4) for w in row] for row in answer.alignment.weights.tolist()],
            }
        yield to_json(found)
        return
    is_list = (options.get("num_results") or 1) > 1
    for place, (text, score) in enumerate(zip(answer.texts, scores, strict=True)):
        fields = [str(number)] if is_list else []
        fields += [f"{score:.4f}"] if with_scores or is_list else []
        fields.append(text)
        if answer.alignment is not None and place == 0:
            fields.append(answer.alignment.links())
        yield "\t".join(fields)
