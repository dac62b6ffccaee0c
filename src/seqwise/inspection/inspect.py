"""Everything there is to see in a run, on one text: what the page, the JSON file and notebooks show.

    found = inspect_run(run, "The writer of the books is")
    found.reading.bits, found.attention[0].weights, found.influence.by_distance

A view that a family does not have is named in `absent`, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from ..data.batch import Batch, Tokens
from ..decoding.settings import DecodingConfig
from ..decoding.translate import most_tokens
from ..errors import ConfigError, DataError, SeqwiseError
from ..models import num_parameters
from ..models.contract import device_of, evaluating
from ..models.ngram import USED
from ..run import Run
from ..tasks.pairs import DEFAULT_RATIO, search_settings
from ..text import Tokenizer
from .embeddings import EmbeddingSpace
from .flow import Factor, Flow, Truncation, factors, gradient_flow, source_gradients, truncation
from .heads import AttentionMap, attention_maps
from .influence import Influence, influence_by_distance, loss_by_position
from .minimal_pairs import Judged, builtin_pairs, judge, read_pairs_file
from .positions import Positions, positions_of
from .reading import END, Reading, later_steps, pieces_of, prompt_of, read_pair, read_text
from .reading_rows import read_example, read_series
from .search_tree import SearchTree, search_tree
from .trace import record
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
MOST_DRAWN = 60  # steps of a search
TARGET, SOURCE = "pieces", "source"
UNSEEN = 500  # characters of unseen text, where none is given


class Inspectable(Protocol):
    """What is asked of a run (api.TrainedRun)."""

    path: Path
    run: Run

    @property
    def model(self) -> Any: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def translate(self, text: str) -> str: ...
    def unseen_text(self, num_chars: int) -> str: ...
    def unseen_store(self) -> Any: ...


@dataclass(frozen=True)
class InspectOptions:
    most_tokens: int = 500
    """How much of the text is shown."""
    beam_width: int | None = None
    """Hypotheses that the search keeps; where it is not said, as many as the run translates with, or 4 for text."""
    search_tokens: int = 12
    """How far the search goes on behind a text."""
    most_lags: int = 100
    """How far back gradients and influence are followed."""
    held_out_tokens: int = 4000
    """How much unseen text the finder of units reads."""
    row: int = 0
    """Numbers and examples: which one of the unseen part is read, or read first; from 0."""
    pairs: str | None = None
    """A file of minimal pairs; the built-in list where there is none."""
    analogies: tuple[str, ...] = ()
    """Each three words: "man king woman" asks for what is to woman as king is to man."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("most_tokens", "beam_width", "search_tokens", "most_lags", "held_out_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"inspect.{name} = {value} should be at least 1.")
        for name in ("row", "seed"):
            if getattr(self, name) < 0:
                raise ConfigError(f"inspect.{name} = {getattr(self, name)} should not be negative.")


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
    """Look at how the model of `run` reads `text`, or where there is none its own unseen data.

    Pairs: with a target, or the model's own.
    """
    return _Inspector(run, text, target, options or InspectOptions()).inspect()


def _placed(site: str, what: str, values: np.ndarray) -> OverText:
    """Values (T, U) as they were noted, each put to the token it belongs to."""
    if what == USED:  # is of the token that is predicted: the next
        values = np.concatenate([np.zeros((1, 1)), values[:-1]])
    if site.endswith("cells.1"):  # read from behind
        values = values[::-1]
    return OverText(site, what, values, SOURCE if ".encoder." in f".{site}." else TARGET)


def _with_known_targets(batch: Batch) -> Batch:
    """Without the last step of a text, whose target is not known."""
    inputs, targets = batch.inputs["tokens"].ids, batch.targets["tokens"].ids
    return Batch({"tokens": Tokens(inputs[:, :-1])}, {"tokens": Tokens(targets[:, :-1])})


class _Inspector:
    """One view after the other; what is missing says why."""

    def __init__(self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions):
        self.run, self.model, self.options = run, run.model, options
        self.config, self.task = run.run.config, run.run.config.task
        self.is_pairs, self.is_text = self.task == "pairs", self.task == "text"
        self.is_neural = isinstance(self.model, nn.Module)
        if target is not None and not self.is_pairs:
            raise ConfigError(f"{run.path} was trained on {self.task}, which has no target; drop --target.")
        if self.is_text or self.is_pairs:
            text = run.unseen_text(UNSEEN) if text is None else text
            self.reading = self._read_text(text, target)
        elif text is not None:
            raise ConfigError(f"{run.path} reads {self.task}, not text; drop --text, and its own unseen data is read.")
        else:
            self.reading, text = self._read_rows()
        self.found = Inspection(
            run.path.name, self.config.model_name, self.task, text, num_parameters(self.model), self.reading
        )

    def _read_text(self, text: str, target: str | None) -> Reading:
        most = self.options.most_tokens
        if self.is_pairs:
            target = self.run.translate(text) if target is None else target
            return read_pair(self.model, self.run.run.vocab, text, target, most_tokens=most)
        return read_text(self.model, self.run.tokenizer, text, most_tokens=most)

    def _read_rows(self) -> tuple[Reading, str]:
        """And where it is from."""
        store, vocab, row = self.run.unseen_store(), self.run.run.vocab, self.options.row
        if self.task == "label":
            labels = vocab.labels or []
            reading = read_example(self.model, store, labels, row=row)
            answer = labels[int(store.answers[row])] if labels else f"{float(store.answers[row]):.4g}"
            return reading, f"example {row:,} of the unseen part, whose answer is {answer}"
        assert vocab.scaling is not None
        reading = read_series(self.model, store, vocab.scaling, row=row, most_steps=self.options.most_tokens)
        return reading, f"from row {row:,} of the unseen part on"

    def inspect(self) -> Inspection:
        self._over_text()
        self._attention()
        self._flow()
        self._memory()
        self._search()
        self._embeddings()
        self._positions()
        self._unanswered()
        return self.found

    def _unanswered(self) -> None:
        """Say what was asked of this model although it cannot tell."""
        asked = {
            "analogies": bool(self.options.analogies) and "embeddings" in self.found.absent,
            "pairs": self.options.pairs is not None and not self.is_text,
            "row": self.options.row > 0 and (self.is_text or self.is_pairs),
        }
        for name in (name for name, is_unanswered in asked.items() if is_unanswered):
            self.reading.notes.append(f"{name}: asked for, but it says nothing of {self.found.family} on {self.task}")

    def _absent(self, view: str, why: str) -> None:
        self.found.absent[view] = why

    def _over_text(self) -> None:
        trace, found = self.reading.trace, self.found
        for what in OVER_TEXT:
            for site, values in trace.all(what):
                found.over_text.append(_placed(site, what, values[0].detach().double().cpu().numpy()))
        if not found.over_text:
            return self._absent("inside", f"{found.family} notes nothing that changes from token to token.")
        if not self.is_text:
            return None
        held_out = self.held_out
        if held_out is None or len(held_out) < 2:
            return None
        units, pieces = self._units_over(held_out)
        if units:
            found.tracked = find_units(units, pieces, seed=self.options.seed)
        return None

    def _units_over(self, ids: np.ndarray) -> tuple[dict[tuple[str, str], np.ndarray], list[str]]:
        """States at every token of unseen text, read in stretches; gates follow the same features, but less plainly."""
        tokenizer = self.run.tokenizer
        window = min(getattr(self.model, "context", None) or 256, 256, len(ids))
        num_rows = len(ids) // window
        rows = torch.from_numpy(ids[: num_rows * window].reshape(num_rows, window))
        batch = Batch({"tokens": Tokens(rows)}, {"tokens": Tokens(rows)}).to(device_of(self.model))
        with torch.inference_mode(), evaluating(self.model), record(self.model) as trace:
            self.model.score(batch)
        units = {
            (site, what): values.flatten(0, 1).double().cpu().numpy()
            for what in ("state", "memory", "hidden", "stream", "belief")
            for site, values in trace.all(what)
        }
        return units, pieces_of(tokenizer, rows.flatten().tolist())

    @cached_property
    def held_out(self) -> np.ndarray | None:
        """Tokens of the run's own unseen text; None where it is not at hand."""
        most = self.options.held_out_tokens
        try:
            text = self.run.unseen_text(8 * most)
        except SeqwiseError as error:
            self.reading.notes.append(f"the run's own unseen text could not be read: {error}")
            return None
        return self.run.tokenizer.encode(text)[:most]

    def _attention(self) -> None:
        self.found.attention = attention_maps(self.reading.trace)
        if self.is_pairs and self.is_neural:
            self.found.source_gradients = source_gradients(self.model, self.reading.batch).cpu().numpy()
        if not self.found.attention:
            self._absent(
                "attention", f"{self.found.family} has no attention here: what it knows of the past is in its state."
            )

    def _flow(self) -> None:
        if not self.is_neural:
            return self._absent(
                "gradients", f"{self.found.family} does not learn by gradients: there is none to follow."
            )
        self.found.clipped = self._clipping()
        if self.is_pairs:
            return self._absent("gradients", "for pairs, see under attention what reaches each token of the source.")
        if len(self.reading.pieces) < 3:
            return self._absent("gradients", "one token has no past for a gradient to reach; give a longer text.")
        batch = self.reading.batch
        steps = [0] if self.task == "label" else later_steps(self.reading, 24)
        with evaluating(self.model):
            self.found.flow = gradient_flow(self.model, batch, steps=steps, most_lags=self.options.most_lags)
            self.found.factors = factors(self.model, self.reading.trace)
            if self.is_text and self.model.carries_state:
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
        if self.is_pairs:
            return self._absent("memory", "a translation depends on its whole source; see attention.")
        if not self.is_text:
            return self._absent("memory", "it is measured by replacing tokens of a text.")
        found, options = self.found, self.options
        ids = torch.tensor(self.reading.ids)
        if len(ids) > 2:
            found.influence = influence_by_distance(self.model, ids, most_distance=options.most_lags, seed=options.seed)
        held_out = self.held_out
        if held_out is not None and len(held_out):
            window = min(getattr(self.model, "context", None) or 256, 256)
            found.by_position = loss_by_position(self.model, held_out, self.run.tokenizer.boundary, window=window)
        pairs = read_pairs_file(Path(options.pairs)) if options.pairs else builtin_pairs()
        found.minimal_pairs = judge(self.model, self.run.tokenizer, pairs)
        return None

    def _search(self) -> None:
        """Pairs: how the target was found. Text: how it could go on."""
        options, batch = self.options, self.reading.batch
        if self.task == "numbers":
            return self._absent("search", "numbers are not searched for; seqwise predict forecasts them.")
        if self.task == "label":
            return self._absent("search", "all answers are weighed at once; see the last step under reading.")
        width = None if options.beam_width is None else min(options.beam_width, self.model.vocab_size)
        if self.is_pairs:
            prompt, ratio = prompt_of(batch), self.config.data.length_ratio or DEFAULT_RATIO
            most = min(MOST_DRAWN, most_tokens(batch.inputs["source"].shape[1], ratio, self.model))
            config = search_settings(self.run.run.vocab, beam_width=width, max_tokens=most)
        else:
            ids = batch.inputs["tokens"].ids
            room = (getattr(self.model, "context", None) or math.inf) - options.search_tokens
            keep = int(max(1, min(room, ids.shape[1])))
            prompt = Batch({"tokens": Tokens(ids[:, -keep:])}, {})
            width = width or min(4, self.model.vocab_size)
            config = DecodingConfig(
                method="beam", beam_width=width, max_tokens=options.search_tokens, length_penalty=1.0
            )
        tree = search_tree(self.model, prompt, config)
        if self.is_pairs and most == MOST_DRAWN and not tree.answers[0].is_finished:
            self.reading.notes.append(f"of the search the first {MOST_DRAWN} steps are drawn")
        self.found.search = tree
        self.found.search_pieces = {node.token: self._piece(node.token) for node in tree.nodes}
        return None

    def _piece(self, token: int) -> str:
        tokenizer = self.run.run.vocab.tokenizer
        assert tokenizer is not None
        return END if self.is_pairs and token == tokenizer.boundary else tokenizer.piece(token)

    def _embeddings(self) -> None:
        if self.run.run.vocab.tokenizer is None:
            return self._absent("embeddings", "what is read here are numbers or symbols without names.")
        space = EmbeddingSpace.of(self.model) if self.is_neural else None
        if space is None:
            return self._absent("embeddings", f"{self.found.family} knows tokens by name, not by vectors.")
        seen = list(dict.fromkeys(self.reading.ids))
        tokens = list(dict.fromkeys([*seen, *self._frequent(len(space.table))]))[:WORDS_ON_MAP]
        drawn = space.map(tokens)
        self.found.word_map = WordMap([self._piece(token) for token in tokens], drawn.places, drawn.shares)
        self.found.neighbours = [self._near(self._piece(t), space.neighbours(t)) for t in seen[:WORDS_ON_MAP]]
        self.found.analogies = [self._analogy(space, asked) for asked in self.options.analogies]
        return None

    def _frequent(self, vocab_size: int) -> list[int]:
        """Tokens of unseen text, those that come most often first; all of them where there is none."""
        held_out = self.held_out if self.is_text else None
        if held_out is None:
            return list(range(vocab_size))
        counts = np.bincount(held_out, minlength=vocab_size)
        return [int(token) for token in np.argsort(-counts, kind="stable") if counts[token]]

    def _near(self, word: str, near: Sequence[tuple[int, float]]) -> Neighbours:
        return Neighbours(word, [(self._piece(token), cosine) for token, cosine in near])

    def _analogy(self, space: EmbeddingSpace, asked: str) -> Neighbours:
        words = asked.split()
        if len(words) != 3:
            raise DataError(f'"{asked}": an analogy has three words, as in "man king woman".')
        a, b, c = (self._token(word) for word in words)
        return self._near(f"{words[0]} : {words[1]} = {words[2]} : ?", space.analogy(a, b, c))

    def _token(self, word: str) -> int:
        """The one token that is this word, at the start of a text or behind a space."""
        tokenizer = self.run.run.vocab.tokenizer
        assert tokenizer is not None
        for written in (f" {word}", word):
            ids = tokenizer.encode(written)
            if len(ids) == 1 and int(ids[0]) != getattr(tokenizer, "unknown", None):
                return int(ids[0])
        raise DataError(f'"{word}" is not one token of this model; analogies are asked of whole tokens.')

    def _positions(self) -> None:
        self.found.positions = positions_of(self.model)
        if self.found.positions is None:
            self._absent("positions", f"{self.found.family} has no position vectors: order is in how it reads.")
