"""Sizes by rule: what model and batch suit this much text and this much time. Every choice can be set by hand.

The rules come from runs on 2 CPU cores (docs/lab-notebook.md): in half a minute a narrow network with a short context
learns most; with more time, width, depth and context grow, and dropout comes in where the text is read many times.
"""

from __future__ import annotations

import math
from typing import Any

from ..settings import TrainingConfig
from ..tasks.task import Facts

DEFAULT_MINUTES = 2.0
TOKENS_PER_SECOND = 12_000  # about what a small network learns from on 2 cores
MOST_EM_TOKENS = 1_000_000  # more are cut where they would not fit the time
EM_SECONDS = 1e-9  # of an iteration, per token and pair of states
COUNTING_SECONDS = 4e-7  # per token and level
SHORT_TEXT = 100_000  # tokens; below, narrower networks do
MANY_TOKENS = 1000  # of a target: it is made of pieces of words
PAIR_TOKENS_PER_SECOND = 4000  # of targets, about
MANY_WORDS = 5000  # from here on the output layer is most of the work, and an adaptive softmax pays


def suggest(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings for the sections model and training."""
    if facts.task == "numbers":
        return _for_numbers(model_name, facts)
    if facts.task == "label":
        return _for_labels(model_name, facts)
    if facts.task == "pairs":
        return _for_pairs(model_name, facts)
    if model_name in ("rnn", "gru", "lstm"):
        return _recurrent(facts)
    return {"ngram": _ngram, "hmm": _hmm, "window": _window, "conv": _conv, "gpt": _gpt}[model_name](facts)


NUMBER_SIZES: dict[str, dict[str, Any]] = {
    "window": {"embed_dim": 16, "model_dim": 64},
    "conv": {"model_dim": 32, "num_layers": 4},
    "rnn": {"model_dim": 64},
    "gru": {"model_dim": 64},
    "lstm": {"model_dim": 64},
    "gpt": {"num_layers": 2, "model_dim": 32, "num_heads": 2},
}


def _for_numbers(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Series are short and noisy: small networks, some dropout, and a reach of about two seasons."""
    if model_name == "hmm":
        return {"num_states": 8}, {"steps": 100, "restarts": 4}
    if model_name == "kalman":
        state_dim = 16 if facts.num_columns == 1 else min(48, 8 + 5 * facts.num_columns)
        season = facts.season if facts.season > 1 else 0
        sizes = {"state_dim": state_dim, "season": season}
        if facts.minutes is None:
            return sizes, {"steps": 20 if facts.num_columns == 1 else 10}
        # as many as fit and still help: many columns go on gaining for long, short series are soon learned by heart
        return sizes, {"steps": 300, "evaluate_every": 5, "patience": 3}
    reach = int(min(256, max(32, 2 * facts.season), max(4, facts.train_tokens // 4)))
    model = {**NUMBER_SIZES[model_name], "dropout": 0.1}
    if model_name == "window":
        model["window"] = min(reach, max(8, min(48, facts.season + 1)))
    if model_name == "gpt":
        model |= {"context": reach, "feed_forward_dim": 96}
    training = {
        "batch_size": max(1, min(16, facts.train_tokens // (2 * reach))),
        "context": reach,
        "optimizer": "adamw",
        "learning_rate": 3e-3,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup_steps": 20,
        "num_samples": 0,
    }
    return model, training


LABEL_SIZES: dict[str, dict[str, Any]] = {
    "window": {"window": 8, "embed_dim": 16, "model_dim": 128, "pooling": "mean"},
    "conv": {"model_dim": 64},
    "rnn": {"model_dim": 128},
    "gru": {"model_dim": 128},
    "lstm": {"model_dim": 128},
    "gpt": {"num_layers": 2, "model_dim": 64, "num_heads": 2},
}


def _for_labels(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    model = dict(LABEL_SIZES[model_name])
    if model_name == "conv":
        model["num_layers"] = max(2, math.ceil(math.log2(facts.length + 1)) - 1)  # so that the last step sees the first
    if model_name == "gpt":
        model["context"] = max(2, facts.length)
    if model_name == "lstm":  # forgets about as slowly as the sequence is long (Tallec & Ollivier 2018)
        model["forget_bias"] = round(max(1.0, math.log(max(1, facts.length))), 1)
    training = {
        "batch_size": max(1, min(64, facts.train_tokens // 4)),
        "context": facts.length,
        "optimizer": "adamw",
        "learning_rate": 2e-3,
        "schedule": "linear",
        "warmup_steps": 50,
        "num_samples": 0,
    }
    return model, training


def _for_pairs(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Pairs of short strings are learned by small networks in minutes; sentences want width, and dropout by passes.

    Of sentences, a Transformer was at 25 BLEU after three minutes with Muon, at 18 with AdamW (docs/lab-notebook.md).
    """
    minutes = facts.minutes or DEFAULT_MINUTES
    is_small = facts.vocab_size < MANY_TOKENS
    if model_name == "seq2seq":
        model: dict[str, Any] = {"model_dim": 256 if is_small or minutes < 10 else 320, "num_layers": 1}
    else:
        width = 128 if is_small or minutes < 5 else 192 if minutes < 90 else 256
        model = {"num_layers": 2 if is_small else 3, "model_dim": width, "num_heads": width // 32}
        model["feed_forward_dim"] = 4 * width
        model["context"] = max(256, facts.length)
    passes = minutes * 60 * PAIR_TOKENS_PER_SECOND / max(1, facts.train_tokens)
    model["dropout"] = 0.0 if is_small and passes < 20 else 0.1 if passes < 5 else 0.2 if passes < 20 else 0.3
    model["label_smoothing"] = 0.0 if is_small else 0.1
    training = {
        "batch_tokens": 2048,
        "context": facts.length,
        "optimizer": "adamw" if is_small else "muon",
        "learning_rate": 2e-3,
        "matrix_learning_rate": 0.02,
        "beta2": 0.98,
        "schedule": "linear",
        "warmup_steps": 100,
        "average_over": 0 if is_small else 5,
        "sample_tokens": max(1, min(200, facts.length)),
    }
    return model, training


def least_training_bytes(num_weights: int, model: Any, training: TrainingConfig, train_tokens: int) -> int:
    """What training by gradients cannot do without: weights and gradients, what the optimiser remembers of each and a
    copy to go back to, and of each step of a batch about four activations a layer."""
    copies = 2 if training.optimizer == "sgd" else 3
    places = training.batch_tokens or training.batch_size * min(training.context, train_tokens)
    width = getattr(model, "num_layers", 1) * getattr(model, "model_dim", 1)
    return 4 * (num_weights * (1 + 2 * copies) + 4 * width * places // training.micro_batches)


def fitting_heads(suggested: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The suggestion with as many heads as divide the width that was given: at most as many, each of an even width."""
    if "num_heads" not in suggested or "num_heads" in given or not isinstance(given.get("model_dim"), int):
        return suggested
    width, most = given["model_dim"], suggested["num_heads"]
    dividing = [number for number in range(most, 0, -1) if width % number == 0]
    even = [number for number in dividing if width // number % 2 == 0]  # rotary positions turn pairs of its numbers
    return {**suggested, "num_heads": (even or dividing)[0]}


def narrowed(model: dict[str, Any]) -> dict[str, Any] | None:
    """The settings of a network about a quarter narrower; None where it cannot get narrower."""
    unit = 2 * model.get("num_heads", 1)  # rotary positions turn pairs of a head's numbers, directions have halves
    width = int(0.75 * model["model_dim"]) // unit * unit
    if width < max(8, unit):
        return None
    narrower = {**model, "model_dim": width}
    for name in ("embed_dim", "feed_forward_dim"):
        if model.get(name):
            narrower[name] = max(8, int(0.75 * model[name]))
    return narrower


def tried_tokens(seconds: float) -> int:
    """As many as thirty iterations of EM with 16 states read in a seventh of the time."""
    return max(1000, int(seconds / 7 / (30 * 16 * 16 * EM_SECONDS)))


def _hmm(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """As many states as half a hundred iterations have time for, and the text has tokens for."""
    seconds = (facts.minutes or DEFAULT_MINUTES) * 60
    read = min(max(1, facts.train_tokens), MOST_EM_TOKENS)
    affordable = math.sqrt(seconds / (50 * EM_SECONDS * read))
    learnable = math.sqrt(facts.train_tokens / 10)
    return {"num_states": int(min(64, max(4, min(affordable, learnable))))}, {"steps": 100, "restarts": 2}


def _ngram(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    if facts.tokenizer == "char":
        order = round(min(9, max(3, math.log10(max(10, facts.train_tokens)) + 1)))  # 1 M characters: 7
    else:
        order = 5
    training: dict[str, Any] = {}
    if facts.minutes is not None:  # so that one count takes a third of the time at most
        most = int(facts.minutes * 60 / 3 / (COUNTING_SECONDS * order))
        training["train_tokens"] = 0 if facts.train_tokens <= most else most
    return {"order": order, "across_lines": facts.tokenizer != "word"}, training


def _window(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    is_long = (facts.minutes or DEFAULT_MINUTES) >= 4
    if facts.tokenizer == "char":
        model: dict[str, Any] = {"window": 16, "embed_dim": 32, "model_dim": 512 if is_long else 256}
    else:
        model = {"window": 5, "embed_dim": 128, "model_dim": 256}
    model["dropout"] = _dropout(facts, 0.1 if is_long else 0.0)
    return model, _small_steps(facts, context=64, rows=32)


def _conv(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    is_long = (facts.minutes or DEFAULT_MINUTES) >= 4
    width = 64 if facts.train_tokens < SHORT_TEXT else 192 if is_long else 128
    model: dict[str, Any] = {"model_dim": width, "num_layers": 6, "kernel_size": 3}
    model["dropout"] = _dropout(facts, 0.1 if is_long else 0.0)
    return model, _small_steps(facts, context=128, rows=16)


def _small_steps(facts: Facts, *, context: int, rows: int) -> dict[str, Any]:
    return {
        "batch_size": _rows(facts, context, rows),
        "context": context,
        "optimizer": "muon",
        "learning_rate": 5e-3,
        "matrix_learning_rate": 0.02,
        "weight_decay": 0.05 if (facts.minutes or DEFAULT_MINUTES) >= 5 else 0.0,
        "schedule": "linear",
        "warmup_steps": 30,
    }


def _recurrent(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two layers of 256 with Muon learn characters faster than one of 384 or 512 (docs/lab-notebook.md)."""
    minutes = facts.minutes or DEFAULT_MINUTES
    if facts.vocab_size >= MANY_WORDS:
        return _recurrent_words(facts, minutes)
    width = 256 if facts.train_tokens >= SHORT_TEXT else 128
    if minutes < 2:
        model: dict[str, Any] = {"model_dim": width, "num_layers": 1, "dropout": _dropout(facts, 0.0)}
    else:
        model = {"model_dim": width, "num_layers": 2, "dropout": _dropout(facts, 0.1 if minutes < 5 else 0.15)}
    return model, _small_steps(facts, context=64, rows=32)


def _recurrent_words(facts: Facts, minutes: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """As the recipe for Penn Treebank (recipes/ptb-lstm.toml), with less dropout where the text is read less often."""
    dropout = 0.4 if minutes >= 15 else 0.3 if minutes >= 4 else 0.1
    model = {"model_dim": 512, "embed_dim": 256, "num_layers": 1, "dropout": _dropout(facts, dropout)}
    training = {
        "batch_size": _rows(facts, 35, 64),
        "context": 35,
        "optimizer": "muon",
        "learning_rate": 6e-3,
        "matrix_learning_rate": 0.02,
        "weight_decay": 0.1,
        "schedule": "linear",
        "warmup_steps": 50,
    }
    return {**model, "adaptive_softmax": True}, training


def _gpt(facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    minutes = facts.minutes or DEFAULT_MINUTES
    if minutes < 1.5 or facts.train_tokens < SHORT_TEXT:
        model: dict[str, Any] = {"num_layers": 3, "model_dim": 96, "num_heads": 3, "feed_forward_dim": 288}
        model |= {"context": 64, "dropout": _dropout(facts, 0.0)}
    elif minutes < 5:
        model = {"num_layers": 4, "model_dim": 128, "num_heads": 4, "feed_forward_dim": 384}
        model |= {"context": 128, "dropout": _dropout(facts, 0.0)}
    else:
        model = {"num_layers": 4, "model_dim": 160, "num_heads": 5, "feed_forward_dim": 480}
        model |= {"context": 128, "dropout": _dropout(facts, 0.05)}
    training = {
        "batch_size": _rows(facts, model["context"], 24),
        "context": model["context"],
        "optimizer": "muon",
        "learning_rate": 6e-3 if minutes < 5 else 5e-3,
        "matrix_learning_rate": 0.02,
        "weight_decay": 0.05 if minutes >= 5 else 0.0,
        "schedule": "linear",
        "warmup_steps": 30 if minutes < 5 else 50,
        "clip_norm": 0.0,
    }
    return model, training


def _dropout(facts: Facts, wanted: float) -> float:
    """More where the text is read so often that it could be learned by heart, none where it is hardly read twice."""
    if facts.minutes is None:  # who counts in steps knows how often it is read
        return wanted
    passes = facts.minutes * 60 * TOKENS_PER_SECOND / max(1, facts.train_tokens)
    if passes < 2:
        return 0.0
    return wanted if passes < 15 else max(wanted, 0.2 if passes < 60 else 0.3)


def _rows(facts: Facts, context: int, wanted: int) -> int:
    """Fewer rows where the text is so short that a batch would be much of it."""
    return max(1, min(wanted, facts.train_tokens // (4 * context)))
