"""Everything there is to see in a run, on one text: what the page, the JSON file and notebooks show.

    found = inspect_run(run, "The writer of the books is")
    found.reading.bits, found.attention[0].weights, found.influence.by_distance

A view that a family does not have is named in `absent`, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens
from ..data.schema import SPAN, TAG
from ..data.text_examples import TextStore
from ..errors import ConfigError, DataError, SeqwiseError
from ..layers.contextual import LayerWeights, layer_weights
from ..models import num_parameters
from ..models.contract import evaluating
from ..models.ngram import USED
from ..text import Tokenizer
from .contrast import Contrast, Seen, contrast
from .embeddings import EmbeddingSpace
from .evidence import KINDS, Evidence, find_evidence
from .gradient_flow import Factor, Flow, Truncation, factors, gradient_flow, source_gradients, truncation
from .heads import AttentionMap, attention_maps
from .held_out import Units, units_over_rows, units_over_text
from .influence import Influence, influence_by_distance, loss_by_position
from .minimal_pairs import Judged, builtin_pairs, judge, read_pairs_file
from .options import InspectOptions
from .positions import Positions, positions_of
from .read_answers import given_labels
from .read_spans import Answering, find_answering
from .reader import Inspectable
from .readers import reader_of
from .reading import END, Reading
from .search_tree import SearchTree
from .seen_picture import SeenPicture, see
from .tagging import Tagging, find_tagging
from .units import Tracking, find_units

OVER_TEXT = (
    "input gate",
    "forget gate",
    "output gate",
    "reset gate",
    "update gate",
    "candidate",
    "memory",
    "state",
    "hidden",
    "stream",
    "belief",
    "mean",
    "spread",
    USED,
)
"""What is noted at every step, in the order in which it is offered."""
CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128)
WORDS_ON_MAP = 80
TARGET, SOURCE = "pieces", "source"


@dataclass(frozen=True)
class OverText:
    """Numbers of one layer at every step."""

    site: str
    what: str
    values: np.ndarray
    """(T, U), or (S, U) on the side of a source."""
    side: str = TARGET
    """Over which pieces it stands: those of the text or target, or those of the source."""


@dataclass(frozen=True)
class Neighbours:
    word: str
    near: list[tuple[str, float]]
    """With their cosines."""


@dataclass(frozen=True)
class WordMap:
    words: list[str]
    places: np.ndarray
    """(N, 2)."""
    shares: tuple[float, float]


@dataclass
class Inspection:
    name: str
    family: str
    task: str
    text: str
    """What was read, or where it is from."""
    parameters: int
    reading: Reading
    evidence: Evidence | None = None
    """Texts with a label or a number: what moved the answer."""
    tagging: Tagging | None = None
    """Words with a tag each."""
    answering: Answering | None = None
    """Questions on passages: where the answer might begin and end."""
    seen: SeenPicture | None = None
    """Of who looks at a picture: where, and what the answer rests on."""
    layer_weights: LayerWeights | None = None
    """Of the features that are read beside words; None where there are none."""
    over_text: list[OverText] = field(default_factory=list)
    tracked: list[Tracking] = field(default_factory=list)
    attention: list[AttentionMap] = field(default_factory=list)
    source_gradients: np.ndarray | None = None
    """Pairs: (T, S)."""
    flow: list[Flow] = field(default_factory=list)
    factors: list[Factor] = field(default_factory=list)
    truncation: list[Truncation] = field(default_factory=list)
    clipped: list[tuple[int, float, float]] = field(default_factory=list)
    """Of the training log: step, the largest length of a gradient since the report before, share of steps cut."""
    influence: Influence | None = None
    by_position: list[float] = field(default_factory=list)
    """Bits a token by how many stand before it."""
    minimal_pairs: list[Judged] = field(default_factory=list)
    search: SearchTree | None = None
    search_pieces: dict[int, str] = field(default_factory=dict)
    """What the tokens of the tree look like."""
    word_map: WordMap | None = None
    neighbours: list[Neighbours] = field(default_factory=list)
    analogies: list[Neighbours] = field(default_factory=list)
    positions: Positions | None = None
    contrast: Contrast | None = None
    """Beside another text that was read by the same model: what changed between both."""
    absent: dict[str, str] = field(default_factory=dict)
    """View -> why there is nothing to see."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that the page shows, in plain lists and numbers."""
        from .as_json import inspection_as_json

        return inspection_as_json(self)

    def save(self, path: str | Path, beside: Inspection | None = None) -> None:
        """Write the page, with another inspection beside this one."""
        from .page import save_inspection

        save_inspection([self, *([beside] if beside else [])], Path(path))

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame of its own."""
        from .page import write_inspection

        return f'<iframe srcdoc="{escape(write_inspection([self]))}" width="100%" height="800"></iframe>'


def inspect_run(
    run: Inspectable, text: str | None = None, *, target: str | None = None, options: InspectOptions | None = None
) -> Inspection:
    """Look at how the model of `run` reads `text`, or where there is none its own held-out data.

    Pairs: with a target, or the model's own. Labels and tags: the target is what should be answered, where it is known.
    """
    return _Inspector(run, text, target, options or InspectOptions()).inspect()


def compare_texts(model: object, first: Inspection, second: Inspection, *, word: str | None = None) -> None:
    """Two texts that one model read: what changed between both, and what became of a word, is kept with the first."""
    seen = [Seen(one.reading, one.attention) for one in (first, second)]
    if word is None and not set(first.reading.pieces[1:-1]) & set(second.reading.pieces):
        return  # nothing that both have
    first.contrast = contrast(model, seen[0], seen[1], word=word)


def _placed(site: str, what: str, values: Tensor, reading: Reading) -> OverText:
    """Values (R, T, U) as they were noted, each put to the token it belongs to."""
    noted = values.detach().double().cpu().numpy()
    if site.endswith("cells.1"):  # read from behind
        noted = noted[:, ::-1]
    over = noted[0] if reading.steps is None else put_back(noted, reading.steps, len(reading.pieces))
    if what == USED:  # is of the token that is predicted: the next
        over = np.concatenate([np.zeros((1, 1)), over[:-1]])
    return OverText(site, what, over, SOURCE if ".encoder." in f".{site}." else TARGET)


def put_back(values: np.ndarray, steps: np.ndarray, num_pieces: int) -> np.ndarray:
    """What a network noted of rows (R, T', U) that it read of one row, at the pieces of that row, (T, U); zero
    elsewhere."""
    found = np.zeros((num_pieces, values.shape[2]))
    found[steps[steps >= 0]] = values[steps >= 0]
    return found


def _with_known_targets(batch: Batch) -> Batch:
    """Without the last step of a text, whose target is not known."""
    inputs, targets = batch.inputs["tokens"].ids, batch.targets["tokens"].ids
    return Batch({"tokens": Tokens(inputs[:, :-1])}, {"tokens": Tokens(targets[:, :-1])})


class _Inspector:
    """One view after the other; what is missing says why."""

    def __init__(self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions):
        self.run, self.model, self.options = run, run.model, options
        self.schema, self.reader = run.run.schema, reader_of(run.run.schema)
        self.is_neural, config = isinstance(self.model, nn.Module), run.run.config
        if target is not None and not self.reader.takes_target(run.run):
            raise ConfigError(f"{run.path} was trained on {config.task}, which has no target; drop --target.")
        self.is_given = text is not None
        if self.is_given and not self.reader.reads_text(run.run):
            raise ConfigError(
                f"{run.path} reads {config.task}, not text; drop --text, and its own held-out data is read."
            )
        self.target = target
        self.reading, text = self.reader.read(run, text, target, options)
        self.found = Inspection(
            run.path.name, config.model_name, config.task, text, num_parameters(self.model), self.reading
        )

    def inspect(self) -> Inspection:
        self._picture()
        self._answer()
        self._over_text()
        self._attention()
        self._flow()
        self._memory()
        self._search()
        self._embeddings()
        self._positions()
        self._unanswered()
        return self.found

    @property
    def _is_given_whole(self) -> bool:
        """Whether nothing of the held-out part is read: a question can be asked of one of its pictures."""
        return self.options.image is not None if self.reading.picture is not None else self.is_given

    def _unanswered(self) -> None:
        """Say what was asked of this model although it cannot tell."""
        asked = {
            "analogies": bool(self.options.analogies) and "embeddings" in self.found.absent,
            "pairs": self.options.pairs is not None and "pairs" not in self.reader.answers_options,
            "image": self.options.image is not None and self.reading.picture is None,
            "row": self.options.row > 0 and (self._is_given_whole or "row" not in self.reader.answers_options),
            "target": self.target is not None and not self.is_given and self.found.tagging is not None,
            "phrase": self.options.phrase is not None and self.found.evidence is None,
        }
        for name in (name for name, is_unanswered in asked.items() if is_unanswered):
            self.reading.notes.append(f"{name} does not apply to {self.found.family} on {self.found.task}")

    def _absent(self, view: str, why: str) -> None:
        self.found.absent[view] = why

    def _picture(self) -> None:
        if self.reading.picture is not None:
            self.found.seen = see(self.model, self.schema, self.reading)
            self.reading.notes.extend(self.found.seen.notes)

    def _answer(self) -> None:
        """What moved the answer to a text, and the tags of its words."""
        if self.schema.kind == SPAN:
            self.found.answering = find_answering(self.model, self.schema, self.reading)
        if not self.reading.words:
            return
        self.found.layer_weights = layer_weights(self.model)
        if self.schema.kind == TAG:
            self.found.tagging = find_tagging(self.model, self.schema, self.reading)
        answered = [name for name, target in self.schema.targets.items() if target.head in KINDS]
        for name in answered[:1]:
            wanted = given_labels(self.target, self.schema) if self.target and name == self.schema.main else []
            self.found.evidence = find_evidence(
                self.model, self.schema, self.reading, target=name, wanted=wanted, phrase=self.options.phrase
            )

    def _over_text(self) -> None:
        trace, found = self.reading.trace, self.found
        for what in OVER_TEXT:
            for site, values in trace.passes(what, len(self.reading.pieces)):
                if self.reading.picture is not None and values.shape[1:2] != (self.num_words,):
                    continue  # of places of the picture
                found.over_text.append(_placed(site, what, values, self.reading))
        if not found.over_text:
            return self._absent("inside", f"{found.family} notes nothing that changes from token to token.")
        units, pieces = self._units()
        if units:
            found.tracked = find_units(units, pieces, seed=self.options.seed)
        return None

    def _units(self) -> tuple[Units, list[str]]:
        """Over held-out data; none where there is too little of it."""
        held_out, rows = self.held_out, self.held_out_rows
        if held_out is None or len(held_out) < 2 or self.reading.picture is not None:
            return {}, []
        if rows is not None:
            return units_over_rows(self.model, self.tokenizer, rows, self.options.held_out_tokens)
        return units_over_text(self.model, self.tokenizer, held_out)

    @property
    def num_words(self) -> int:
        """Steps of text beside a picture."""
        tokens = self.reading.batch.inputs.get("tokens")
        return 0 if tokens is None else int(tokens.shape[1])

    @cached_property
    def held_out(self) -> np.ndarray | None:
        """Tokens of the run's own held-out text; None where it is not at hand."""
        limit = self.options.held_out_tokens
        if self.held_out_rows is not None:
            return self.held_out_rows.tokens.ids[:limit]
        if not self.reader.is_running_text:
            return None
        try:
            text = self.run.unseen_text(8 * limit)
        except SeqwiseError as error:
            self.reading.notes.append(f"the run's own held-out text could not be read: {error}")
            return None
        return None if text is None else self.run.tokenizer.encode(text)[:limit]

    @cached_property
    def held_out_rows(self) -> TextStore | None:
        """Texts of the run's own that are answered."""
        if not self.reading.words:
            return None
        try:
            store: TextStore = self.run.unseen_store()
        except SeqwiseError as error:
            self.reading.notes.append(f"the run's own held-out texts could not be read: {error}")
            return None
        return store

    def _attention(self) -> None:
        steps, length = self.reading.steps, len(self.reading.pieces)
        apart = None if steps is None else (steps, length)
        self.found.attention = attention_maps(self.reading.trace, length, apart)
        if self.reading.picture is not None:
            self.found.attention = [one for each in self.found.attention for one in self._among_words(each)]
            if not self.found.attention:
                self._absent("attention", "no word looks at another one here; see under picture where it was looked.")
            return
        if self.reader.has_source and self.is_neural:
            self.found.source_gradients = source_gradients(self.model, self.reading.batch).cpu().numpy()
        if not self.found.attention:
            self._absent(
                "attention", f"{self.found.family} has no attention here: what it knows of the past is in its state."
            )

    def _among_words(self, found: AttentionMap) -> list[AttentionMap]:
        """What words look at of each other, where they do; of one stream of words and places, the part of the words."""
        T, size = self.num_words, found.weights.shape[1:]
        places = None if self.found.seen is None else self.found.seen.places
        joint = () if places is None or not T else (T + len(places.boxes), T + len(places.boxes) + 1)
        if size[0] != size[1] or size[0] not in (T, *joint):
            return []
        return [replace(found, weights=found.weights[:, :T, :T])]

    def _flow(self) -> None:
        if not self.is_neural:
            return self._absent(
                "gradients", f"{self.found.family} does not learn by gradients: there is none to follow."
            )
        self.found.clipped = self._clipping()
        if self.reader.no_gradients:
            return self._absent("gradients", self.reader.no_gradients)
        if self.reading.steps is not None:
            return self._absent("gradients", "two texts are read each by itself; see under answer what moved it.")
        if len(self.reading.pieces) < 3:
            return self._absent("gradients", "one token has no past for a gradient to reach; give a longer text.")
        batch, steps = self.reading.batch, self.reader.flow_steps(self.reading)
        with evaluating(self.model):
            self.found.flow = gradient_flow(self.model, batch, steps=steps, max_lags=self.options.max_lags)
            self.found.factors = factors(self.model, self.reading.trace)
            if self.reader.is_running_text and self.model.carries_state:
                self.found.truncation = truncation(self.model, _with_known_targets(batch), CHUNKS)
        return None

    def _clipping(self) -> list[tuple[int, float, float]]:
        reports = [report for report in self.run.run.read_log() if "gradient_norm" in report]
        before, found = 0, []
        for report in reports:
            steps = report["step"] - before
            if steps > 0 and math.isfinite(report["gradient_norm"]):
                found.append((report["step"], report["gradient_norm"], report.get("clipped", 0) / steps))
            before = report["step"]
        return found

    def _memory(self) -> None:
        if self.reader.no_memory:
            return self._absent("memory", self.reader.no_memory)
        found, options = self.found, self.options
        ids = torch.tensor(self.reading.ids)
        if len(ids) > 2:
            found.influence = influence_by_distance(self.model, ids, max_distance=options.max_lags, seed=options.seed)
        held_out = self.held_out
        if held_out is not None and len(held_out):
            window = min(self.model.context or 256, 256)
            found.by_position = loss_by_position(self.model, held_out, self.run.tokenizer.boundary, window=window)
        pairs = read_pairs_file(Path(options.pairs)) if options.pairs else builtin_pairs()
        found.minimal_pairs = judge(self.model, self.run.tokenizer, pairs)
        return None

    def _search(self) -> None:
        tree = self.reader.search(self.run, self.reading, self.options)
        if isinstance(tree, str):
            return self._absent("search", tree)
        self.found.search = tree
        self.found.search_pieces = {node.token: self._piece(node.token) for node in tree.nodes}
        return None

    @property
    def tokenizer(self) -> Tokenizer:
        found = self.reader.tokenizer(self.schema)
        assert found is not None  # views that name tokens are absent where there are none
        return found

    def _piece(self, token: int) -> str:
        """Where a target is written, the boundary is its end."""
        is_end = self.reader.has_source and token == self.tokenizer.boundary
        return END if is_end else self.tokenizer.piece(token)

    def _embeddings(self) -> None:
        if self.reader.tokenizer(self.schema) is None:
            return self._absent("embeddings", "what is read here are numbers or symbols without names.")
        space = EmbeddingSpace.of(self.model)
        if space is None:
            return self._absent("embeddings", f"{self.found.family} knows tokens by name, not by vectors.")
        known = self.tokenizer.vocab_size  # behind these stand tokens that no text has
        seen = [token for token in dict.fromkeys(self.reading.ids) if token < known and space.has(token)]
        frequent = filter(space.has, self._frequent(min(known, len(space.table))))
        tokens = list(dict.fromkeys([*seen, *islice(frequent, WORDS_ON_MAP)]))[:WORDS_ON_MAP]
        drawn = space.map(tokens)
        self.found.word_map = WordMap([self._piece(token) for token in tokens], drawn.places, drawn.shares)
        self.found.neighbours = [self._near(self._piece(t), space.neighbours(t)) for t in seen[:WORDS_ON_MAP]]
        self.found.analogies = [self._analogy(space, asked) for asked in self.options.analogies]
        return None

    def _frequent(self, vocab_size: int) -> list[int]:
        """Tokens of held-out text, those that come most often first; all of them where there is none."""
        held_out = self.held_out
        if held_out is None:
            return list(range(vocab_size))
        counts = np.bincount(held_out, minlength=vocab_size)
        return [int(token) for token in np.argsort(-counts, kind="stable") if counts[token]]

    def _near(self, word: str, near: Sequence[tuple[int, float]]) -> Neighbours:
        known = self.tokenizer.vocab_size  # behind these stand tokens that no text has
        return Neighbours(word, [(self._piece(token), cosine) for token, cosine in near if token < known])

    def _analogy(self, space: EmbeddingSpace, asked: str) -> Neighbours:
        words = asked.split()
        if len(words) != 3:
            raise DataError(f'"{asked}": an analogy has three words, as in "man king woman".')
        a, b, c = (self._token(word) for word in words)
        return self._near(f"{words[0]} : {words[1]} = {words[2]} : ?", space.analogy(a, b, c))

    def _token(self, word: str) -> int:
        """The one token that is this word, at the start of a text or behind a space."""
        for written in (f" {word}", word):
            ids = self.tokenizer.encode(written)
            if len(ids) == 1 and int(ids[0]) != getattr(self.tokenizer, "unknown", None):
                return int(ids[0])
        raise DataError(f'"{word}" is not one token of this model; analogies are asked of whole tokens.')

    def _positions(self) -> None:
        self.found.positions = positions_of(self.model)
        if self.found.positions is None:
            self._absent("positions", f"{self.found.family} has no position vectors: order is in how it reads.")
