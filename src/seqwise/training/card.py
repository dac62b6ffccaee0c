"""card.md: what a run is, what it was trained on, how well it does, how to use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..models import family, num_parameters
from ..run import Run
from ..tasks import task_named
from ..tasks.task import Score
from ..wording import counted

LEARNED = {
    "gradients": "{steps_made}, seed {seed}",
    "em": "expectation and maximisation, {starts} of up to {iterations}, seed {seed}",
    "counting": "counted in one pass",
}


def write_card(run: Run, model: Any, score: Score) -> str:
    config, row = run.config, family(run.config.model_name)
    training = config.training
    how = LEARNED[row.learns_by].format(
        steps_made=counted(training.steps, "step"),
        starts=counted(training.restarts, "start"),
        iterations=counted(training.steps, "iteration"),
        seed=training.seed,
    )
    lines = [
        f"# {run.path.name}",
        "",
        f"A {config.model_name} model of {config.task} ({row.year}): its state is {row.state}.",
        "",
        f"- Data: {config.data.description}",
        f"- Data fingerprint: sha256 {config.data.fingerprint}",
        *_about_vocab(run),
        f"- Learned numbers: {num_parameters(model):,}",
        f"- Training: {how}",
        *(f"- {sentence}" for sentence in _conventions(config.model)),
        "",
        "| validation | value |",
        "| --- | --- |",
        *(f"| {name} | {value} |" for name, value in score.rows()),
        "",
        "## Use",
        "",
        f"    {task_named(config.task).next_command(run.path.name)}",
        f"    seqwise evaluate {run.path.name}",
        "",
    ]
    return "\n".join(lines)


def _about_vocab(run: Run) -> Iterator[str]:
    vocab = run.vocab
    if vocab.tokenizer is not None:
        yield f"- Tokenizer: {vocab.tokenizer.kind}, {vocab.tokenizer.vocab_size:,} tokens"
    if vocab.scaling is not None:
        yield f"- Columns: {', '.join(vocab.scaling.columns)}, each brought to mean zero and variance one"
    if vocab.labels:
        yield f"- Labels: {', '.join(vocab.labels[:20])}"


def _conventions(model_config: Any) -> Iterator[str]:
    """Where texts disagree, what this model means."""
    reset = getattr(model_config, "reset", None)
    if reset is not None:
        where = "on the product with the state" if reset == "after" else "on the state, before the product"
        yield f"Convention: the update gate keeps (h = z * h + (1 - z) * n); the reset gate acts {where}"
