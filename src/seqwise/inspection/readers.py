"""How each kind of target is looked at: what is read, how it is searched for, and what there is not to see. READERS is
the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ..data.batch import Batch, Tokens
from ..data.schema import (
    LABEL,
    LABELS,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    SEQUENCE,
    LabelSpec,
    Schema,
    TokenSpec,
    ValueSpec,
    pair_tokenizers,
)
from ..decoding.settings import DecodingConfig
from ..decoding.translate import token_limit
from ..goals.sequence import DEFAULT_RATIO, search_settings
from ..run import Run
from ..text import Tokenizer
from .options import InspectOptions
from .read_numeric import read_example, read_series
from .reading import Reading, later_steps, prompt_of, read_pair, read_text
from .search_tree import SearchTree, search_tree

MAX_DRAWN_STEPS = 60  # of a search
UNSEEN = 500  # characters of held-out text, where none is given


class Inspectable(Protocol):
    """What is asked of a run (api.TrainedRun)."""

    path: Path
    run: Run

    @property
    def model(self) -> Any: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def translate(self, text: str) -> str: ...
    def unseen_text(self, num_chars: int) -> str | None: ...
    def unseen_store(self) -> Any: ...


class Reader(Protocol):
    """A row of READERS."""

    reads_text: bool
    """Whether it can be given a text; else it reads the run's own held-out data."""
    has_source: bool
    """Whether what is read is answered by something else, which may be given too: the target."""
    is_running_text: bool
    """Whether it reads on and on: then memory, units and truncation can be looked at."""
    answers_options: tuple[str, ...]
    """Of InspectOptions, that say nothing elsewhere: pairs (of sentences), row."""
    no_gradients: str
    no_memory: str
    """Why there is nothing to see; empty where there is."""

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        """And what was read, or where it is from."""
        ...

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        """From which gradients are followed back."""
        ...

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> SearchTree | str:
        """How it was found, or could go on; or why there is no search."""
        ...

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        """Of what embeddings stand for and a search finds; None where that has no names."""
        ...


class TextReader:
    reads_text = is_running_text = True
    has_source = False
    answers_options: tuple[str, ...] = ("pairs",)
    no_gradients = no_memory = ""

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        text = run.unseen_text(UNSEEN) if text is None else text
        assert text is not None
        return read_text(run.model, run.tokenizer, text, max_tokens=options.max_tokens), text

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return later_steps(reading, 24)

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> SearchTree:
        """How the text could go on."""
        model, ids = run.model, reading.batch.inputs["tokens"].ids
        room = (model.context or math.inf) - options.search_tokens
        keep = int(max(1, min(room, ids.shape[1])))
        width = min(options.beam_width or 4, model.vocab_size)
        config = DecodingConfig(method="beam", beam_width=width, max_tokens=options.search_tokens, length_penalty=1.0)
        return search_tree(model, Batch({"tokens": Tokens(ids[:, -keep:])}, {}), config)

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return schema.target("tokens", TokenSpec).tokenizer


class PairReader:
    reads_text = has_source = True
    is_running_text = False
    answers_options: tuple[str, ...] = ()
    no_gradients = "for pairs, see under attention what reaches each token of the source."
    no_memory = "a translation depends on its whole source; see attention."

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        text = run.unseen_text(UNSEEN) if text is None else text
        assert text is not None
        target = run.translate(text) if target is None else target
        return read_pair(run.model, run.run.schema, text, target, max_tokens=options.max_tokens), text

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return []

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> SearchTree:
        """How the target was found."""
        model, ratio = run.model, run.run.config.data.length_ratio or DEFAULT_RATIO
        limit = min(MAX_DRAWN_STEPS, token_limit(reading.batch.inputs["source"].shape[1], ratio, model))
        width = None if options.beam_width is None else min(options.beam_width, model.vocab_size)
        config = search_settings(run.run.schema, beam_width=width, max_tokens=limit)
        tree = search_tree(model, prompt_of(reading.batch), config)
        if limit == MAX_DRAWN_STEPS and not tree.answers[0].is_finished:
            reading.notes.append(f"of the search the first {MAX_DRAWN_STEPS} steps are drawn")
        return tree

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        """Of targets, which are searched for; sources may have another one."""
        return pair_tokenizers(schema)[1]


class SeriesReader:
    reads_text = has_source = is_running_text = False
    answers_options: tuple[str, ...] = ("row",)
    no_gradients = ""
    no_memory = "it is measured by replacing tokens of a text."

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        spec, row = run.run.schema.target("values", ValueSpec), options.row
        reading = read_series(run.model, run.unseen_store(), spec, row=row, max_steps=options.max_tokens)
        return reading, f"from row {row:,} of the held-out part on"

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return later_steps(reading, 24)

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> str:
        return "numbers are not searched for; seqwise predict forecasts them."

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return None


class AnswerReader:
    reads_text = has_source = is_running_text = False
    answers_options: tuple[str, ...] = ("row",)
    no_gradients = ""
    no_memory = "it is measured by replacing tokens of a text."

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        schema, store, row = run.run.schema, run.unseen_store(), options.row
        spec = schema.main_spec
        labels = spec.names if isinstance(spec, LabelSpec) else []
        reading = read_example(run.model, store, labels, row=row)
        answer = spec.decode(store.answers[row]) if labels else f"{float(store.answers[row]):.4g}"
        return reading, f"example {row:,} of the held-out part, whose answer is {answer}"

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return [0]

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> str:
        return "all answers are weighed at once; see the last step under reading."

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return None


READERS: dict[str, Reader] = {
    NEXT_TOKEN: TextReader(),
    NEXT_VALUES: SeriesReader(),
    LABEL: AnswerReader(),
    LABELS: AnswerReader(),
    NUMBER: AnswerReader(),
    SEQUENCE: PairReader(),
}
"""By the kind of the main target."""
