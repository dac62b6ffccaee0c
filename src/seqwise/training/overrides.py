"""What the user asked for: a settings file, the options of the command, --set; checked before the data is read."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..checks import check_writable_name
from ..config import build, parse_override, read_toml, settings_of
from ..errors import ConfigError, DataError, did_you_mean
from ..run import HEADER, Run
from ..settings import DataConfig, renamed_settings

SECTIONS = ("data", "tokenizer", "model", "training")
RECIPE = "recipe"  # a settings file may carry the figure it should reach
FROM_DATA = ("vocab_size", "boundary")  # once settings of the section model
FROM_BASE = ("start", "start_fingerprint")  # of the section training: what --from named
BUDGETS = ("minutes", "steps", "epochs")


def absolute(source: str | Path) -> str:
    """A file by its full path, so that the run can be resumed from any folder; the name of a data set as it is.

    Two parallel files may stand with a comma between.
    """
    files = [Path(source)] if Path(source).exists() else [Path(file.strip()) for file in str(source).split(",")]
    if not all(file.exists() for file in files):
        return str(source)
    for file in files:
        check_writable_name(file.resolve())
    return ",".join(str(file.resolve()) for file in files)


def settings_in(config_file: Path) -> dict[str, Any]:
    """The sections of a settings file, which may also be the config.toml of a run."""
    values = read_toml(config_file)
    for name, value in values.items():
        if name in SECTIONS and not isinstance(value, dict):
            raise ConfigError(f"{config_file}: {name} = {value!r} should be a section: [{name}].")
        if name not in SECTIONS and name not in HEADER and name != RECIPE:
            what = "section" if isinstance(value, dict) else "setting"
            raise ConfigError(f'{config_file}: unknown {what} "{name}". {did_you_mean(name, SECTIONS)}')
    return renamed_settings(values)


def merged_settings(
    config_file: Path | None, options: dict[str, dict[str, Any]], overrides: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What the user set, by section: the file first, over it the options of the command, over those --set."""
    settings: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    if config_file is not None:
        for section, values in settings_in(config_file).items():
            if section in settings and section != "data":  # the data is named by the command
                dropped = {"model": FROM_DATA, "training": FROM_BASE}.get(section, ())
                settings[section].update({name: v for name, v in values.items() if name not in dropped})
    for section, named in options.items():
        chosen = {name: value for name, value in named.items() if value is not None}
        if section == "training" and set(BUDGETS) & set(chosen):
            for budget in BUDGETS:  # one budget: the command's
                settings[section].pop(budget, None)
        settings[section].update(chosen)
    for override in overrides:
        section, name, value = parse_override(override)
        if section not in settings:
            raise ConfigError(f'--set {override}: unknown section "{section}". {did_you_mean(section, SECTIONS)}')
        settings[section][name] = value
    return settings


def check_overrides(settings: dict[str, dict[str, Any]], model_config: type, where: str) -> None:
    """Mistakes that can be told before the data is read."""
    for name in FROM_DATA:
        if name in settings["model"]:
            raise ConfigError(f"{where}: model.{name} comes from the tokenizer; set tokenizer.vocab_size instead.")
    for name in FROM_BASE:
        if name in settings["training"]:
            raise ConfigError(f"{where}: training.{name} is filled in by training; use --from RUN instead.")
    if settings["training"].get("steps", 1) == 0 and len(set(BUDGETS) & set(settings["training"])) == 1:
        raise ConfigError(f"{where}: training.steps = 0 trains nothing; give at least 1 step.")
    for name in set(settings["model"]) - set(settings_of(model_config)):
        build(model_config, {name: None}, section="model", where=where)  # says which setting was meant


def moved_data(run: Run, asked: dict[str, Any]) -> DataConfig:
    """The run's data where it lies now: `asked` may name other files for it, which are taken out of `asked`.

    Whether they hold the same is told by the fingerprint, once they are read.
    """
    config, moved = run.config.data, dict[str, Any]()
    for name in ("source", "valid", "test"):
        value = asked.get(f"data.{name}")
        if value is not None and all(_is_there(source) for source in ([value] if isinstance(value, str) else value)):
            moved[name] = asked.pop(f"data.{name}")
    return replace(config, **moved)


def check_present(run: Run, config: DataConfig, what_to_do: str) -> None:
    """A run keeps the path of its data, not the data: where that is gone, say how to name its new place."""
    sources = [*config.source, *(file for file in (config.valid, config.test) if file is not None)]
    missing = next((source for source in sources if os.path.isabs(source) and not _is_there(source)), None)
    if missing is not None:
        raise DataError(
            f"{missing}: no such file or folder, and {run.path} was trained on it. "
            f"If it was moved, name its new place (- for standard input): {what_to_do}"
        )


def _is_there(source: str) -> bool:
    return Path(source).exists() or ("," in source and all(Path(file).exists() for file in source.split(",")))


def check_same(run: Run, asked: dict[str, Any]) -> None:
    """Resuming with other settings would be another run: say which one differs. Names are as in config.toml."""
    config = run.config
    found: dict[str, Any] = {"model": config.model_name, "task": config.task}
    for section in SECTIONS:
        values = getattr(config, section)
        found |= {f"{section}.{name}": getattr(values, name) for name in settings_of(cast(Hashable, type(values)))}
    for name, value in asked.items():
        if name not in found:
            raise ConfigError(f'unknown setting "{name}". {did_you_mean(name, found)}')
        if found[name] != value:
            raise ConfigError(
                f"{run.path} was trained with {name} = {found[name]}, not {value}. "
                "Resume without it, or train a new run with another --out."
            )
