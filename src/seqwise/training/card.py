"""card.md: what a run is, what it was trained on, how well it does, how to use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..goals.goal import Score
from ..models import family, num_parameters
from ..models.contract import Model
from ..run import Run
from ..tasks import goal_of, task_named
from .borrowed import features_in_words
from .tuning import in_words


def write_card(run: Run, model: Model, score: Score, learned: str) -> str:
    """`learned`: how, in words."""
    config, row = run.config, family(run.config.model_name)
    lines = [
        f"# {run.path.name}",
        "",
        f"A {config.model_name} model of {config.task} ({row.year}): its state is {row.state}.",
        "",
        f"- Data: {config.data.description}",
        f"- Data fingerprint: sha256 {config.data.fingerprint}",
        *_about_vocab(run),
        f"- Parameters: {num_parameters(model):,}",
        f"- Training: {learned}",
        *_about_start(run),
        *(f"- {sentence}" for sentence in (*_conventions(config.model), *features_in_words(run, model))),
        "",
        "| validation | value |",
        "| --- | --- |",
        *(f"| {name} | {value} |" for name, value in score.rows()),
        "",
        "## Use",
        "",
        f"    {next_command(run, run.path.name)}",
        f"    seqwise evaluate {run.path.name}",
        "",
    ]
    return "\n".join(lines)


def next_command(run: Run, path: str) -> str:
    """What one does with a run that is at `path`."""
    use = family(run.config.model_name).use
    return f"seqwise {use} {path}" if use else goal_of(task_named(run.config.task), run.schema).next_command(path)


def _about_vocab(run: Run) -> Iterator[str]:
    kinds = [spec.kind for spec in run.schema.specs.values()]
    for name, spec in run.schema.specs.items():
        yield f"- {spec.describe()}" + (f" ({name})" if kinds.count(spec.kind) > 1 else "")


def _about_start(run: Run) -> Iterator[str]:
    """What training went on from, and how."""
    training = run.config.training
    if training.start:
        yield f"- Started from: {training.start} (sha256 {training.start_fingerprint})"
    if tuned := in_words(run.config, run.schema):
        yield f"- {tuned[0].upper()}{tuned[1:]}"


def _conventions(model_config: Any) -> Iterator[str]:
    """Where texts disagree, what this model means."""
    reset = getattr(model_config, "reset", None)
    if reset is not None:
        where = "on the product with the state" if reset == "after" else "on the state, before the product"
        yield f"Convention: the update gate keeps (h = z * h + (1 - z) * n); the reset gate acts {where}"
