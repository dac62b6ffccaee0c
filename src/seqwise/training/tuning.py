"""Fine-tuning by rule: what suits a body that has learned already, where nobody sets it by hand. TUNING is the table.

Transformers, after Devlin et al. 2019 (A.3) and Turc et al. 2019, whose narrow bodies learned best with higher rates:

    rate    = 5e-5 * 768 / model_dim, at most 5e-4           (1)
    rate    = 10 times that, where an adapter learns and the body stays        (layers/low_rank.py)
    epochs  = 3, or as many as make 300 updates              (2)   three passes over few rows are soon over
    number  = a cos(u, v) + b                                (3)   of two texts, by an encoder of sentences

Recurrent networks, after Howard & Ruder 2018: a slanted triangle, low layers more slowly, and unfrozen one by one.

What was measured stands in docs/lab-notebook.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..data.schema import NEXT_TOKEN, NUMBER, RECONSTRUCTION, STARTS, VECTOR, Schema, TokenSpec
from ..data.text_examples import TextStore
from ..errors import ConfigError
from ..models.adapters import is_adapted
from ..models.build import NeuralConfig, sees_all
from ..run import Run, RunConfig
from ..wording import counted
from .transfer import Transfer

BASE_RATE, BASE_WIDTH, HIGHEST_RATE = 5e-5, 768, 5e-4  # (1)
ADAPTER_RATE = 10  # times the rate of a whole body
EPOCHS, MIN_UPDATES, MAX_EPOCHS = 3, 300, 20  # (2)
FEW_ROWS = 5_000  # below, batches are half as large
RECURRENT_EPOCHS = 4
UNFROZEN_AFTER = 1 / 16  # of all epochs, one more layer
BY_TEXT = (NEXT_TOKEN, RECONSTRUCTION)
READ_AT_LEAST = 128  # tokens: a base knows more places than short rows show, and asked for longer texts it reads them
NOT_OF_THE_BODY = ("pooling", "max_steps", "pairing", "label_weights", "threshold", "crf", "max_answer")
"""Settings of a model that change no weight of its body."""
CHOSEN_AT_THE_END: dict[str, Any] = {"none_threshold": None}
"""Settings that a run has chosen for its own data, and that one which starts from it chooses anew."""


@dataclass(frozen=True)
class Tuning:
    """Settings for the sections model and training, over those of the base and of its size."""

    model: dict[str, Any]
    training: dict[str, Any]


Rule = Callable[[Run, int], Tuning]
"""Of the run that is started from, and how many rows there are to learn from."""


def _transformer(base: Run, num_rows: int) -> Tuning:
    model, batch_size = vars(base.config.model), _batch_size(num_rows)
    epochs = _epochs(EPOCHS, num_rows, batch_size)
    training = {
        "epochs": epochs,
        "max_epochs": epochs,
        "batch_size": batch_size,
        "optimizer": "adamw",
        "learning_rate": _rate(model["model_dim"]),
        "beta2": 0.999,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup_share": 0.08,
        "keep": "last",  # of labels the loss rises while fewer answers are wrong
        "num_samples": 0,
    }
    return Tuning({"pooling": model["pooling"]}, training)


def _rate(width: int) -> float:
    """(1), of two digits."""
    return float(f"{min(HIGHEST_RATE, BASE_RATE * BASE_WIDTH / width):.2g}")


def _recurrent(base: Run, num_rows: int) -> Tuning:
    batch_size = _batch_size(num_rows)
    epochs = _epochs(RECURRENT_EPOCHS, num_rows, batch_size)
    training = {
        "epochs": epochs,
        "max_epochs": epochs,
        "batch_size": batch_size,
        "optimizer": "adamw",
        "learning_rate": 3e-3,
        "weight_decay": 0.01,
        "schedule": "slanted_triangular",
        "layer_rate_factor": 0.6,
        "unfreeze_epochs": round(UNFROZEN_AFTER * epochs, 3),
        "keep": "last",
        "num_samples": 0,
    }
    return Tuning({"pooling": "mean", "dropout": 0.3, "dropout_kind": "variational"}, training)


def _batch_size(num_rows: int) -> int:
    return max(1, min(16 if num_rows < FEW_ROWS else 32, num_rows // 8))


def _epochs(usual: int, num_rows: int, batch_size: int) -> float:
    """The usual number, or more where rows are so few that they would make next to no updates."""
    return min(MAX_EPOCHS, max(usual, round(MIN_UPDATES * batch_size / max(1, num_rows))))


@dataclass(frozen=True)
class _Row:
    rule: Rule
    starts: tuple[str, ...] | None = None
    """Kinds of target that a body must have learned for the rule to hold; None for any."""


TUNING = {
    "rnn": _Row(_recurrent, BY_TEXT),
    "gru": _Row(_recurrent, BY_TEXT),
    "lstm": _Row(_recurrent, BY_TEXT),
    "gpt": _Row(_transformer),
    "bert": _Row(_transformer),
}
"""By family."""


def rule_for(base: Run | None, schema: Schema) -> Rule | None:
    """How a body that has read text is fine-tuned to answer for texts; None where that is not what is asked."""
    if base is None or not _answers_texts(schema) or not _reads_text(base.schema):
        return None
    row = TUNING.get(base.config.model_name)
    return row.rule if row is not None and (row.starts is None or base.schema.kind in row.starts) else None


def _reads_text(schema: Schema) -> bool:
    return isinstance(next(iter(schema.specs.values())), TokenSpec)


def _answers_texts(schema: Schema) -> bool:
    return sees_all(schema) and schema.kind not in STARTS and _reads_text(schema)


def with_base(
    base: Run,
    sizes: tuple[dict[str, Any], dict[str, Any]],
    schema: Schema,
    tuning: Tuning | None,
    *,
    has_adapter: bool = False,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the model and of training: sizes by rule, over them what the base has, over that how it is tuned.

    Where the base answers something else, what is not of its body is by rule. An adapter of the base is part of what it
    knows: it is no adapter of what starts from it.
    """
    model, training = sizes
    kept = {name: value for name, value in vars(base.config.model).items() if not name.startswith("adapter")}
    kept |= {name: value for name, value in CHOSEN_AT_THE_END.items() if name in kept}
    if tuning is None and schema.kinds == base.schema.kinds:
        training = {**training, "context": base.config.training.context}
    else:
        by_rule = {name: value for name, value in model.items() if name in NOT_OF_THE_BODY}
        limit = kept.get("context")  # of a model that has one
        kept |= by_rule
        if tuning is not None:
            kept |= tuning.model | _pairing(base, schema)
            training = {**training, **tuning.training}
        if limit is not None:
            longest = by_rule.get("max_steps", 0)
            kept["max_steps"] = min(max(longest, READ_AT_LEAST), limit) if longest else 0
            training = {**training, "context": min(training["context"], limit)}
    if has_adapter:
        training |= {"optimizer": "adamw", "learning_rate": ADAPTER_RATE * _rate(kept["model_dim"])}
    return kept, training


def _pairing(base: Run, schema: Schema) -> dict[str, Any]:
    """How alike two texts are is what vectors of texts tell already (3)."""
    spec = schema.only_input()
    is_similarity = schema.kinds == (NUMBER,) and isinstance(spec, TokenSpec) and spec.num_texts == 2
    return {"pairing": "cosine"} if is_similarity and base.schema.kind == VECTOR else {}


def own_weights(moved: Transfer, schema: Schema) -> dict[str, Tensor]:
    """What a run with an adapter starts from besides its base: all that this one does not have, and heads that answer
    for texts, which learn whether they are new or not."""
    new, has_head = {*moved.started, *moved.grown}, _answers_texts(schema)
    return {
        name: weight for name, weight in moved.weights.items() if name in new or (has_head and name.startswith("head."))
    }


def check_lengths(base: Run, config: NeuralConfig, stores: Mapping[str, Any], name: str) -> None:
    """Rows of which every word is answered for cannot be shortened: they must fit the places that the base has."""
    limit = vars(config).get("context")
    for part, store in stores.items():
        if limit is None or config.max_steps or not isinstance(store, TextStore):
            continue
        longest = int(store.lengths.max())
        if longest > limit:
            raise ConfigError(
                f"{name}, {part}: row {int(store.lengths.argmax()) + 1:,} has {longest:,} tokens, and {base.path} has "
                f"places for {limit:,}. Split such rows, or start from a run with a larger model.context."
            )


def in_words(config: RunConfig, schema: Schema) -> str | None:
    """How a run is fine-tuned; None where it is not."""
    training, model = config.training, config.model
    if not training.start or not _answers_texts(schema) or config.model_name not in TUNING:
        return None
    passes = f"{training.epochs:g} epochs" if training.epochs is not None else None
    fixed = counted(training.steps, "step") if training.steps else None
    minutes = f"{training.minutes:g} minutes" if training.minutes is not None else None
    budget = passes or minutes or fixed or ""
    warm_up = f"after a warm-up over {100 * training.warmup_share:g} % of the steps" if training.warmup_share else ""
    slower = f"each layer at {training.layer_rate_factor:g} of the one above" * (training.layer_rate_factor < 1)
    told = (
        budget,
        f"{training.optimizer} with a rate of {training.learning_rate:g} for a width of {model.model_dim}",
        f"{training.schedule.replace('_', ' ')} {warm_up}".strip(),
        slower,
        f"batches of {training.batch_size}",
        f"dropout {model.dropout:g}",
        f"pooling {model.pooling}",
        f"pairing {model.pairing}" * (model.pairing != "joined"),
        f"LoRA of rank {model.adapter_rank} beside {', '.join(model.adapter_targets)}" if is_adapted(model) else "",
        f"the {training.keep} weights kept",
        f"stopped after {training.patience} validations without gain" if training.patience is not None else "",
    )
    return f"fine-tuning {training.start}: {', '.join(part for part in told if part)}"
