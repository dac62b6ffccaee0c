"""Lines in, lines out: a stream of sources of any length, translated in constant memory, in order, batched by length.

for answer in translate(model, vocab, open("sources.txt"), config, length_ratio=2.5):
    print(answer.text)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch
from ..data.pair_store import PairStore, Rows, cuts_by_length, source_ids
from ..data.schema import Schema, pair_tokenizers
from ..errors import ConfigError
from ..models.contract import Translator, device_of, evaluating
from . import generate
from .parallel import parallel_map
from .settings import DecodingConfig, Hypothesis

LINES = 4096  # read ahead, to find those of about one length
PLACES = 8192  # tokens of sources in a batch, over the width of the beam
MORE_TOKENS = 10  # than the longest target that training had for a source of this length


@dataclass(frozen=True)
class Alignment:
    """Where in the source each piece of the target was looked for."""

    source: list[str]
    target: list[str]
    weights: Tensor
    """(T, S), each row adds up to one."""

    def links(self) -> str:
        """The strongest source piece of each target piece, as "source-target" numbers."""
        return " ".join(f"{int(row.argmax())}-{place}" for place, row in enumerate(self.weights))


@dataclass(frozen=True)
class Answer:
    """What a model makes of one source, best first."""

    source: str
    texts: list[str]
    hypotheses: list[Hypothesis]
    scores: list[float]
    """What they were ranked by: log-probability over the norm of their length."""
    is_cut: bool = False
    """The source was longer than the model can place: only its beginning was read."""
    alignment: Alignment | None = None

    @property
    def text(self) -> str:
        return self.texts[0]


def translate(
    model: Translator,
    schema: Schema,
    lines: Iterable[str],
    config: DecodingConfig,
    *,
    length_ratio: float,
    with_alignments: bool = False,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Iterator[Answer]:
    """An answer for each line, in order; an empty line has an empty answer.

    `on_progress` is told how many more were found, as they are found: by whatever thread, and long before their turn.
    """
    if with_alignments and not model.can_align:
        raise ConfigError(
            "this model has no attention to read an alignment from; train one with model.attention=general."
        )
    lines = iter(lines)
    while chunk := list(islice(lines, LINES)):
        with evaluating(model):
            answers = _translate_chunk(model, schema, chunk, config, length_ratio, with_alignments, on_progress)
        yield from answers


def _translate_chunk(
    model: Translator,
    schema: Schema,
    chunk: list[str],
    config: DecodingConfig,
    length_ratio: float,
    with_alignments: bool,
    on_progress: Callable[[int], None],
) -> list[Answer]:
    source, target = pair_tokenizers(schema)
    texts = [line.rstrip("\n").strip() for line in chunk]
    answers = [Answer(text, [""], [Hypothesis([], 0.0, True)], [0.0]) for text in texts]
    encoded = [source_ids(text, source) for text in texts]
    longest = model.context or sys.maxsize
    is_cut = [len(ids) > longest for ids in encoded]
    rows = Rows.of(
        np.append(ids[: longest - 1], source.boundary) if cut else ids for ids, cut in zip(encoded, is_cut, strict=True)
    )
    asked = np.array([place for place, text in enumerate(texts) if text], dtype=np.int64)
    if len(asked) < len(texts):  # an empty line has its answer
        on_progress(len(texts) - len(asked))
    order = asked[np.argsort(rows.lengths[asked], kind="stable")]
    width = config.beam_width if config.method == "beam" else config.num_results
    batches = [order[start:end] for start, end in cuts_by_length(rows.lengths[order], max(1, PLACES // width))]

    def search(chosen: np.ndarray) -> list[list[Hypothesis]]:
        limits = [token_limit(length, length_ratio, model) for length in rows.lengths[chosen].tolist()]
        found = generate(model, Batch({"source": rows.padded(chosen)}, {}), config, limits=limits)
        on_progress(len(found))
        return found

    for chosen, found in zip(batches, _searched(model, search, batches), strict=True):
        for place, hypotheses in zip(chosen.tolist(), found, strict=True):
            written = [target.decode([t for t in h.tokens if t != target.boundary]) for h in hypotheses]
            scores = [h.score(config.length_penalty, config.length_form) for h in hypotheses]
            answers[place] = Answer(texts[place], written, hypotheses, scores, is_cut[place])
        if with_alignments:
            for place, alignment in zip(chosen.tolist(), _align(model, schema, rows, chosen, found), strict=True):
                answers[place] = replace(answers[place], alignment=alignment)
    return answers


def _searched(
    model: Translator, search: Callable[[np.ndarray], list[list[Hypothesis]]], batches: list[np.ndarray]
) -> list[list[list[Hypothesis]]]:
    """Batches of sources, the longest last: side by side where cores compute, one after the other on a GPU."""
    if device_of(model).type == "cpu":
        return parallel_map(search, batches)
    return [search(chosen) for chosen in batches]


def token_limit(source_tokens: int, length_ratio: float, model: Translator) -> int:
    """How long a target may become, which depends on its source alone."""
    limit = math.ceil(length_ratio * source_tokens) + MORE_TOKENS
    return limit if model.context is None else min(limit, model.context)


@torch.inference_mode()
def _align(
    model: Translator, schema: Schema, rows: Rows, chosen: np.ndarray, found: list[list[Hypothesis]]
) -> list[Alignment]:
    """Of the best hypothesis of each source."""
    source, target = pair_tokenizers(schema)
    best = [hypotheses[0].tokens for hypotheses in found]
    ends = [tokens if tokens[-1:] == [target.boundary] else [*tokens, target.boundary] for tokens in best]
    targets = Rows.of(np.array([target.boundary, *tokens]) for tokens in ends)
    some = Rows.of(rows.ids[rows.edges[place] : rows.edges[place + 1]] for place in chosen)
    batch = PairStore(some, targets, []).batch(np.arange(len(chosen))).to(device_of(model))
    weights = model.align(batch)
    assert weights is not None
    return [
        Alignment(
            [source.piece(token) for token in some.ids[some.edges[row] : some.edges[row + 1] - 1].tolist()],
            [target.piece(token) for token in tokens if token != target.boundary],
            weights[row, : sum(token != target.boundary for token in tokens), : int(some.lengths[row]) - 1].cpu(),
        )
        for row, tokens in enumerate(best)
    ]
