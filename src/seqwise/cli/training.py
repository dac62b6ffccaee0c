"""seqwise train: prepare or resume a session, show its reports, say what came out and what to do next."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from ..api import free_path
from ..config import parse_override
from ..errors import ConfigError
from ..run import Run
from ..training.card import next_command
from ..training.overrides import absolute, settings_in
from ..training.preparing import prepare, resume
from ..training.request import Request
from ..training.session import Session
from .progress import display
from .results import say_results
from .terminal import note, say


def run_training(
    *,
    data: list[str],
    model: str | None,
    out: Path | None,
    should_resume: bool,
    start_from: Path | None,
    config_file: Path | None,
    overrides: list[str],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    with display() as shown:
        if should_resume:
            if out is None:
                raise ConfigError("--resume needs to know which run: add --out RUN.")
            if config_file is not None or start_from is not None:
                raise ConfigError("--resume goes on with the run's own settings; drop --config and --from.")
            asked = _asked(data, model, overrides, options)
            session = resume(out, asked=asked, tell=shown.tell, on_progress=shown.prepare)
        else:
            if not data:
                raise ConfigError("what should be read? Name a file, a folder or a data set (see: seqwise data list).")
            if model is None and start_from is not None:
                model = Run.open(start_from).config.model_name
            if model is None and config_file is not None:
                model = settings_in(config_file).get("family")
            model = "gpt" if model is None else model
            asked = {"start_from": start_from, "config_file": config_file, "overrides": overrides, **options}
            request = Request.of(data, model=model, out=out or free_path(data, model), **asked)
            session = prepare(request, tell=shown.tell, on_progress=shown.prepare)
        with ctrl_c() as wants_stop:
            session.train(shown.report, wants_stop=wants_stop, tell=shown.tell)
    _conclude(session, as_json=as_json)


def _asked(data: list[str], model: str | None, overrides: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """What the user named beside --resume, to be compared with the run; names as in config.toml."""
    asked: dict[str, Any] = {f"training.{name}": options[name] for name in ("minutes", "steps", "epochs", "seed")}
    asked |= {"model": model, "tokenizer.kind": options["tokenizer"], "data.split": options["split"]}
    asked |= {f"data.{name}": options[name] and absolute(options[name]) for name in ("valid", "test")}
    asked |= {"task": options["task"], "data.columns": options["columns"], "data.season": options["season"]}
    asked["data.source"] = [absolute(name) for name in data] or None
    asked = {name: value for name, value in asked.items() if value is not None}
    for override in overrides:
        section, name, value = parse_override(override)
        asked[f"{section}.{name}"] = value
    return asked


@contextmanager
def ctrl_c() -> Iterator[Any]:
    """The first Ctrl-C asks training to stop after this step, with a checkpoint; a second one ends it at once."""
    asked = False

    def ask(signum: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        note("stopping after this step; press Ctrl-C again to stop at once")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _conclude(session: Session, *, as_json: bool) -> None:
    path, score = session.run.path, session.score
    if as_json:
        say_results("train", [_outcome(session)])
    if session.is_interrupted:
        note(f"stopped; everything is saved. Go on with: seqwise train --resume --out {path}")
        raise typer.Exit(130)
    if as_json:
        return
    assert score is not None
    say(f"{path}: on valid: {score.headline()}")
    say(f"signature: {score.signature}")
    say(f"next: {next_command(session.run, str(path))}")


def _outcome(session: Session) -> dict[str, Any]:
    """For programs; `valid` is how well the model does on the valid part, null where training was stopped before."""
    config = session.run.config
    found = {"run": str(session.run.path), "model": config.model_name, "task": config.task}
    valid = None if session.is_interrupted or session.score is None else session.score.to_dict()
    return {**found, "finished": not session.is_interrupted, "valid": valid}
