"""What can be told before torch is imported: names that are unknown or empty, runs and data that are not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..checks import FAMILIES, check_family, check_run, check_task
from ..data.kinds import check_there, task_for
from ..data.pipes import owned
from ..errors import ConfigError, DataError, did_you_mean


def check_runs(*paths: str | Path) -> None:
    for path in paths:
        check_run(Path(path))


def check_pictures(paths: Sequence[str | Path]) -> None:
    """Files that are there; whether they hold pictures is told when they are read."""
    for path in map(Path, paths):
        if not path.is_file():
            kind = "a folder; of all pictures in one: seqwise predict RUN FOLDER" if path.is_dir() else "no such file"
            raise DataError(f"{path}: {kind}.")


def check_models(names: Sequence[str] | None) -> None:
    """Families to compare; a form such as seq2seq-dot is known by the family before the dash."""
    for name in names or ():
        if name.partition("-")[0] not in FAMILIES:
            raise ConfigError(f'unknown family "{name}". {did_you_mean(name, FAMILIES)}')


def label_counts_of(listed: str | None) -> list[int | None] | None:
    """ "100,500,all": numbers of labels, and None for all of them."""
    if listed is None:
        return None
    words = [word.strip() for word in listed.split(",")]
    for word in words:
        if word != "all" and not (word.isdecimal() and word.isascii() and int(word) > 0):
            raise ConfigError(
                f'--labels: "{word}" is no number of labels. Write numbers above 0, or all, with commas between: '
                "--labels 100,500,all"
            )
    return [None if word == "all" else int(word) for word in words]


def check_not_empty(**options: str | Sequence[str] | None) -> None:
    """An option that was given, but with nothing in it, is a mistake (a variable that is not set), not the default."""
    for name, value in options.items():
        if value is not None and not (value.strip() if isinstance(value, str) else value):
            raise ConfigError(f"--{name.replace('_', '-')} is empty. Give it a value, or drop it.")


def given_data(
    data: Sequence[str],
    *,
    model: str | None = None,
    task: str | None = None,
    columns: Sequence[str] | None = None,
    valid: str | None = None,
    test: str | None = None,
) -> tuple[list[str], str | None, str | None]:
    """The data to learn from, and what to validate and test on, with pipes read; what is missing or odd is refused."""
    check_not_empty(model=model, task=task, columns=columns, valid=valid, test=test)
    if model is not None:
        check_family(model)
    if task is not None:
        check_task(task)
    named = [*data, *(part for part in (valid, test) if part)]
    if named.count("-") > 1:
        raise ConfigError("- stands for standard input, which can be read once; name it once.")
    sources = owned(data, task)
    valid, test = (part and owned([part], task)[0] for part in (valid, test))
    check_there([*sources, *(part for part in (valid, test) if part)])
    if sources:
        task_for(task, sources, columns or ())
    return sources, valid, test
