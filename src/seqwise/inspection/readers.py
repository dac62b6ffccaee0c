"""How each kind of target is looked at: what is read, how it is searched for, and what there is not to see. READERS is
the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ..data.batch import Batch, Tokens
from ..data.row_store import ROW_TOKENS
from ..data.schema import (
    LABEL,
    LABELS,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    RECONSTRUCTION,
    SEQUENCE,
    TAG,
    LabelSpec,
    Schema,
    TokenSpec,
    ValueSpec,
    pair_tokenizers,
)
from ..decoding.settings import DecodingConfig
from ..decoding.translate import token_limit
from ..errors import DataError
from ..goals.sequence import DEFAULT_RATIO, search_settings
from ..run import Run
from ..tasks import ReadsQuestions, task_named
from ..text import Tokenizer
from ..text.symbols import SymbolTokenizer
from ..wording import counted
from .options import InspectOptions
from .read_answers import labelled_row, read_labelled, read_tagged, tagged_row
from .read_numeric import read_example, read_series
from .reading import Reading, later_steps, prompt_of, read_copy, read_pair, read_text
from .search_tree import SearchTree, search_tree

MAX_DRAWN_STEPS = 60  # of a search
NUM_FLOWS = 24  # steps from which gradients are followed back, about
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

    has_source: bool
    """Whether what is read is answered by a sequence of its own."""
    is_running_text: bool
    """Whether it reads on and on: then memory, units and truncation can be looked at."""
    answers_options: tuple[str, ...]
    """Of InspectOptions, that say nothing elsewhere: pairs (of sentences), row, phrase."""
    no_gradients: str
    no_memory: str
    """Why there is nothing to see; empty where there is."""

    def reads_text(self, run: Run) -> bool:
        """Whether it can be given a text; else it reads the run's own held-out data."""
        ...

    def takes_target(self, run: Run) -> bool:
        """Whether it can be given what is to be answered, too."""
        ...

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
    is_running_text = True
    has_source = False
    answers_options: tuple[str, ...] = ("pairs",)
    no_gradients = no_memory = ""

    def reads_text(self, run: Run) -> bool:
        return True

    def takes_target(self, run: Run) -> bool:
        return False

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        text = run.unseen_text(UNSEEN) if text is None else text
        assert text is not None
        return read_text(run.model, run.tokenizer, text, max_tokens=options.max_tokens), text

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return later_steps(reading, NUM_FLOWS)

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
    has_source = True
    is_running_text = False
    answers_options: tuple[str, ...] = ()
    no_gradients = "for pairs, see under attention what reaches each token of the source."
    no_memory = "a translation depends on its whole source; see attention."

    def reads_text(self, run: Run) -> bool:
        return True

    def takes_target(self, run: Run) -> bool:
        return True

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


class RowReader:
    """A row, read and then written again."""

    has_source = is_running_text = False
    answers_options: tuple[str, ...] = ()
    no_gradients = ""
    no_memory = "it is measured by what comes next, and here a row is written again that was just read."

    def reads_text(self, run: Run) -> bool:
        return True

    def takes_target(self, run: Run) -> bool:
        return False

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        text = run.unseen_text(UNSEEN) if text is None else text
        assert text is not None
        tokenizer = run.run.schema.input("tokens", TokenSpec).tokenizer
        room = min(options.max_tokens, run.run.config.data.row_tokens or ROW_TOKENS)
        return read_copy(run.model, tokenizer, text.strip(), max_tokens=room), text

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        """Of the second copy: what reaches the first is what the state has to carry."""
        written: list[int] = reading.batch.targets["tokens"].is_scored[0].nonzero().flatten().tolist()
        return written[:: -(-len(written) // NUM_FLOWS)]

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> SearchTree:
        """How the row is written again."""
        model, ids = run.model, reading.batch.inputs["tokens"].ids
        read, width = ids.shape[1] // 2 + 1, min(options.beam_width or 4, model.vocab_size)
        boundary = int(ids[0, 0])
        limit = min(MAX_DRAWN_STEPS, read - 1)
        config = DecodingConfig(method="beam", beam_width=width, max_tokens=limit, length_penalty=1.0, stop=boundary)
        return search_tree(model, Batch({"tokens": Tokens(ids[:, :read])}, {}), config)

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return schema.input("tokens", TokenSpec).tokenizer


class SeriesReader:
    has_source = is_running_text = False
    answers_options: tuple[str, ...] = ("row",)
    no_gradients = ""
    no_memory = "it is measured by replacing tokens of a text."

    def reads_text(self, run: Run) -> bool:
        return False

    def takes_target(self, run: Run) -> bool:
        return False

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        spec, row = run.run.schema.target("values", ValueSpec), options.row
        reading = read_series(run.model, run.unseen_store(), spec, row=row, max_steps=options.max_tokens)
        return reading, f"from row {row:,} of the held-out part on"

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return later_steps(reading, NUM_FLOWS)

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> str:
        return "numbers are not searched for; seqwise predict forecasts them."

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return None


def _tokenizer_of(schema: Schema) -> Tokenizer | None:
    """Of texts that are answered; None where numbers are, or symbols without names."""
    spec = schema.only_input()
    if not isinstance(spec, TokenSpec) or isinstance(spec.tokenizer, SymbolTokenizer):
        return None
    return spec.tokenizer


def _answers_texts(run: Run) -> bool:
    """Whether texts can be asked about that are in no file, and not only the task's own examples."""
    return _tokenizer_of(run.schema) is not None and isinstance(task_named(run.config.task), ReadsQuestions)


class AnswerReader:
    """A text, two with a TAB between them, or a row of the held-out part; other examples by their row alone."""

    has_source = is_running_text = False
    answers_options: tuple[str, ...] = ("row", "phrase")
    no_gradients = ""
    no_memory = "it is measured by what comes next, and here a whole sequence is answered."

    def reads_text(self, run: Run) -> bool:
        return _answers_texts(run)

    def takes_target(self, run: Run) -> bool:
        return _answers_texts(run)

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        schema = run.run.schema
        if not _answers_texts(run.run):
            return self._read_example(run, options.row)
        is_known, where = text is None or target is not None, ""
        if text is None:
            row, where = _held_out_row(run, options.row), _place(options.row)
        else:
            row = labelled_row(text, target, schema)
        reading = read_labelled(run.model, schema, row, is_known=is_known, max_tokens=options.max_tokens)
        return reading, where + " / ".join(row.texts)

    def _read_example(self, run: Inspectable, row: int) -> tuple[Reading, str]:
        store, spec = run.unseen_store(), run.run.schema.main_spec
        labels = spec.names if isinstance(spec, LabelSpec) else []
        reading = read_example(run.model, store, labels, row=row)
        answer = spec.decode(store.answers[row]) if labels else f"{float(store.answers[row]):.4g}"
        return reading, f"example {row:,} of the held-out part, whose answer is {answer}"

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return [0]

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> str:
        return "all answers are weighed at once; see the last step under reading."

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return _tokenizer_of(schema)


class TagReader:
    """Words with white space between them, or a row of the held-out part."""

    has_source = is_running_text = False
    answers_options: tuple[str, ...] = ("row", "phrase")
    no_gradients = "a tag may rest on words before and behind it; see under answer which these are."
    no_memory = "it is measured by what comes next, and here each word is answered."

    def reads_text(self, run: Run) -> bool:
        return True

    def takes_target(self, run: Run) -> bool:
        return True

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        schema, where = run.run.schema, ""
        is_known = text is None or target is not None
        if text is None:
            row, where = _held_out_row(run, options.row), _place(options.row)
        else:
            row = tagged_row(text, target, schema.target(schema.main, LabelSpec))
        reading = read_tagged(run.model, schema, row, is_known=is_known, max_tokens=options.max_tokens)
        return reading, where + " ".join(row.words)

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return []

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> str:
        return "the tags of a row are weighed together, not one after the other; see them under answer."

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return schema.input("tokens", TokenSpec).tokenizer


def _held_out_row(run: Inspectable, row: int) -> Any:
    rows = run.unseen_store().rows
    if row >= len(rows):
        raise DataError(f"the part has {counted(len(rows), 'row')}; there is none with the number {row:,}.")
    return rows[row]


def _place(row: int) -> str:
    return f"row {row:,} of the held-out part: "


READERS: dict[str, Reader] = {
    NEXT_TOKEN: TextReader(),
    NEXT_VALUES: SeriesReader(),
    LABEL: AnswerReader(),
    LABELS: AnswerReader(),
    NUMBER: AnswerReader(),
    TAG: TagReader(),
    SEQUENCE: PairReader(),
    RECONSTRUCTION: RowReader(),
}
"""By the kind of the main target."""
