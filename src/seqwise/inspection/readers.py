"""How each kind of target is looked at: what is read, how it is searched for, and what there is not to see. READERS is
the table; of who looks at pictures, SEEN_READERS (seeing.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..data.batch import Batch, Tokens
from ..data.row_store import ROW_TOKENS
from ..data.schema import (
    CAPTION,
    CHOICE,
    LABEL,
    LABELS,
    MASKED_TOKEN,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    PICTURE,
    RECONSTRUCTION,
    SEQUENCE,
    SPAN,
    TAG,
    VECTOR,
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
from .answer_readers import CHOICE_READER, SPAN_READER, TAG_READER, AnswerReader
from .options import InspectOptions
from .read_masked import read_masked
from .read_numeric import read_series
from .read_vector import read_vector
from .reader import Inspectable, Look, Reader, WholeReader, given_text
from .reading import Reading, later_steps, prompt_of, read_copy, read_pair, read_text
from .search_tree import SearchTree, search_tree
from .seeing import IMAGE, SEEN_READERS

MAX_DRAWN_STEPS = 60  # of a search
NUM_FLOWS = 24  # steps from which gradients are followed back, about


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
        text = given_text(run, text)
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
        text = given_text(run, text)
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
        text = given_text(run, text)
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


def _of_encoder(read: Callable[..., Reading]) -> Look:
    """A text, or the beginning of the held-out part, in one row."""

    def look(run: Inspectable, text: str | None, target: str | None, options: InspectOptions) -> tuple[Reading, str]:
        text = given_text(run, text)
        spec = run.run.schema.input("tokens", TokenSpec)
        return read(run.model, spec, text.strip(), max_tokens=options.max_tokens), text

    return look


MASKED_READER = WholeReader(
    _of_encoder(read_masked),
    no_search="words are filled in where they stand, not one after the other.",
    no_gradients="every place sees every other in one step: there is no way back through time to follow.",
    no_memory="it is measured by what comes next, and here words are filled in.",
)
"""A text, each word of it hidden in its turn."""
VECTOR_READER = WholeReader(
    _of_encoder(read_vector),
    no_search="nothing is written: a vector is made of a text.",
    no_gradients="a vector is not right or wrong: nothing has a cost whose gradient could be followed.",
    no_memory="it is measured by what comes next, and here a vector is made of a whole text.",
)
"""A text, of which a vector is made."""


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


READERS: dict[str, Reader] = {
    NEXT_TOKEN: TextReader(),
    NEXT_VALUES: SeriesReader(),
    LABEL: AnswerReader(),
    LABELS: AnswerReader(),
    NUMBER: AnswerReader(),
    TAG: TAG_READER,
    SEQUENCE: PairReader(),
    RECONSTRUCTION: RowReader(),
    MASKED_TOKEN: MASKED_READER,
    VECTOR: VECTOR_READER,
    SPAN: SPAN_READER,
    CHOICE: CHOICE_READER,
    CAPTION: SEEN_READERS[CAPTION],
    PICTURE: SEEN_READERS[PICTURE],
}
"""By the kind of the main target."""


def reader_of(schema: Schema) -> Reader:
    """Of the kind of the main target, and of what is read: sequences, or pictures."""
    return (SEEN_READERS if IMAGE in schema.inputs else READERS)[schema.kind]
