"""Who takes part in a comparison: families, forms of them, and those that start from a run that is there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data.schema import CAPTION, LABEL, MASKED_TOKEN, NEXT_TOKEN, NEXT_VALUES, PICTURE, SEQUENCE
from ..errors import ConfigError, did_you_mean
from ..models import MODELS, Family
from ..models.ngram_family import METHODS
from ..tasks import ALSO_READ_AS, can_do, reads_of, task_named

BY_GRADIENTS = "gradients"


@dataclass(frozen=True)
class Start:
    """A run whose body is kept, as `train --from` keeps it."""

    path: str
    family: str

    @property
    def name(self) -> str:
        """What tells apart who starts from it, and its vocabulary: "from-lm"."""
        folder = re.sub(r"[^A-Za-z0-9._+]+", "-", Path(self.path).name).strip("-").removesuffix("-final")
        return f"from-{folder or 'run'}"


@dataclass(frozen=True)
class Entrant:
    """What takes part: a family, or one form of it."""

    name: str
    family: str
    kinds: tuple[str, ...]
    """Of the main target, for which it is this form that takes part."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of its model, besides those that follow from data and budget."""
    start: Start | None = None
    """None starts from scratch."""

    @property
    def row(self) -> Family:
        return MODELS[self.family]

    @property
    def learns_by(self) -> str:
        return self.row.learns[self.kinds[0]]

    @property
    def overrides(self) -> list[str]:
        return [f"model.{name}={value}" for name, value in self.settings.items()]

    def does(self, kinds: Sequence[str]) -> bool:
        """Whether it answers all that the data asks for, the main target first."""
        return kinds[0] in self.kinds and self.row.does(kinds)


ATTENTIONS = ("none", "dot", "general", "additive")
SHAPES = ("two-streams", "three-encoders", "one-stream")
FORMS: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("ngram", NEXT_TOKEN): {"ngram": {"order": 0}},
    ("ngram", LABEL): {f"ngram-{method}": {"method": method} for method in METHODS},
    ("hmm", NEXT_TOKEN): {"hmm": {"num_states": 0}},
    ("hmm", NEXT_VALUES): {"hmm": {"num_states": 0}},
    ("seq2seq", SEQUENCE): {f"seq2seq-{kind}": {"attention": kind} for kind in ATTENTIONS},
    ("captioner", CAPTION): {
        "captioner-mean": {"attention": "none"},
        "captioner-soft": {"attention": "soft"},
        "captioner-hard": {"attention": "hard"},
        "captioner-transformer": {"decoder": "transformer"},
    },
    ("crossmodal", LABEL): {
        **{f"crossmodal-{shape}": {"shape": shape} for shape in SHAPES},
        "crossmodal-words-only": {"reads": "words"},
        "crossmodal-picture-only": {"reads": "picture"},
    },
}
"""By family and kind of target: the names of all forms that take part, with their settings, where it is not the family
as it is. An order or a number of states of 0 is chosen by validation."""


NOT_RANKED = {
    MASKED_TOKEN: "it learns hidden words, what stands before and behind them being known, and a product of such "
    "probabilities (pseudo-perplexity) is no likelihood of a text that could be ranked with others. Compare it where "
    "there are labels or tags",
    PICTURE: "it learns to paint such pictures, and is scored by a bound, which is no likelihood",
}
"""By kind of target: why who learns it from the same data cannot be set beside the others."""


def not_ranked(task: str) -> dict[str, str]:
    """Families that make something else of the same data, each with the reason why they take no part."""
    kinds = [kind for other in ALSO_READ_AS.get(task, ()) for kind in task_named(other).kinds if kind in NOT_RANKED]
    doing = {name for name, row in MODELS.items() if can_do(row, task_named(task))}
    reads = reads_of(task_named(task))
    others = {name: row for name, row in MODELS.items() if name not in doing and row.can_read(*reads)}
    return {name: NOT_RANKED[kind] for name, row in others.items() for kind in kinds if kind in row.learns}


def entrants(task: str, start: Start | None = None) -> dict[str, Entrant]:
    """All that do a task, by name, in the order of the lineage; the family of `start` once more, with its body."""
    found: dict[str, Entrant] = {}
    doing = {family: row for family, row in MODELS.items() if can_do(row, task_named(task))}
    for family, row in doing.items():
        for kind in (kind for kind in task_named(task).kinds if kind in row.learns):
            for name, settings in FORMS.get((family, kind), {family: {}}).items():
                before = found[name].kinds if name in found else ()
                found[name] = Entrant(name, family, (*before, kind), settings)
        if start is not None and start.family == family and (kinds := kinds_from(family, task)):
            name = f"{family}-{start.name}"
            found[name] = Entrant(name, family, kinds, start=start)
    return found


def kinds_from(family: str, task: str) -> tuple[str, ...]:
    """Kinds of target that a family learns by gradients, so that it can start from weights that are there."""
    learns = MODELS[family].learns
    return tuple(kind for kind in task_named(task).kinds if learns.get(kind) == BY_GRADIENTS)


def choose_models(asked: Sequence[str] | None, task: str, start: Start | None = None) -> list[str]:
    """Who takes part: all that do the task, or those asked for, by the name of a family or of one form of it. With a
    family takes part who starts from a run of it."""
    fitting = entrants(task, start)
    families = {entrant.family for entrant in fitting.values()}
    for name in asked or []:
        if name not in MODELS and name not in fitting:
            raise ConfigError(f'unknown family "{name}". {did_you_mean(name, [*MODELS, *fitting])}')
        if name in (why := not_ranked(task)):
            raise ConfigError(f"{name} takes no part in comparisons of {task}: {why[name]}.")
        if name not in families and name not in fitting:
            raise ConfigError(f"{name} does not do the task {task}. Families that do: {', '.join(fitting)}.")
    if not asked:
        return [name for name, entrant in fitting.items() if entrant.row.takes_part or entrant.start is not None]
    named = {fitting[name].family if name in fitting else name for name in asked}
    return [
        name
        for name, entrant in fitting.items()
        if name in asked or entrant.family in (named if entrant.start is not None else asked)
    ]
