"""Words that depend on a number, and sentences that depend on where they are read.

A sentence for people names an option as it is typed: --minutes 2. Whoever called a function of the API has no such
option, and reads minutes=2 there: `in_python` words any sentence anew, so that each is written once. The functions of
the API do so (`speaks_python`), but where the command line calls them (`as_typed`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, wraps
from typing import ParamSpec, TypeVar

from .errors import SeqwiseError

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
Kind = TypeVar("Kind", bound=type)
RENAMED = {
    "split-at": "split",
    "set": "overrides",
    "config": "config_file",
    "from": "start_from",
    "labels": "label_counts",
}
RENAMED |= {"n-best": "num_results", "num": "num_results", "analogy": "analogies"}
"""Options whose parameter has another name."""
ONE_WORD = ("model", "task", "tokenizer", "method", "view", "device", "length-form", "from", "config")
"""Options that a bare word behind them belongs to."""
LISTS = ("columns", "models", "tokenizers", "set")
VERBS = {"train": "train", "compare": "compare", "generate": "load({}).generate", "evaluate": "load({}).evaluate"}
VERBS |= {"predict": "load({}).predict", "inspect": "load({}).inspect", "check": "load({}).check"}
VERBS["caption"] = "load({}).caption"

SETTINGS = r"[\w.]+=[^\s,;)]*(?:,[\w.]+=[^\s,;)]*)*[^\s,;:).]"
VALUE = rf'"[^"]*"|\w+(?:,\w+)+|-?\d[\w./]*|[A-Z]{{2,}}\b|{SETTINGS}'  # what cannot be a word of the sentence
OPTION = re.compile(
    rf"--({'|'.join(ONE_WORD)})(?: ([^\s;:,.)](?:[^\s;:,)]*[^\s;:,.)])?))?(?![\w-])|--([a-z][\w-]*)(?: ({VALUE}))?"
)
COMMAND = re.compile(rf"\bseqwise ({'|'.join(VERBS)})((?: (?:--[a-z-]+|[^\s;,()-][^\s;,()]*[^\s;,().]|[^\s;,().-]))*)")


def plural(number: float, thing: str, things: str = "") -> str:
    """ "token" for one, "tokens" for more and for none."""
    return thing if number == 1 else things or f"{thing}s"


def counted(number: int, thing: str, things: str = "") -> str:
    """ "1 token", "1,200 tokens"."""
    return f"{number:,} {plural(number, thing, things)}"


def in_python(sentence: str, *, resume: str = "continue_training") -> str:
    """A sentence about options, for who calls functions: --minutes 2 becomes minutes=2, a command becomes a call.

    `resume` is the function that does what --resume does.
    """
    called = COMMAND.sub(lambda found: _call(found[1], found[2].split(), resume), sentence)
    worded = OPTION.sub(lambda found: _argument(found[1] or found[3], found[2] or found[4], resume), called)
    return worded.replace("=....", "=...")  # at the end of a sentence


def as_option(parameter: str) -> str:
    """The way back: start_from is --from."""
    typed = {name: option for option, name in RENAMED.items()}
    return f"--{typed.get(parameter, parameter.replace('_', '-'))}"


def _argument(option: str, value: str | None, resume: str) -> str:
    if option == "resume":
        return f"seqwise.{resume}" + (f" {value}" if value else "")
    if option == "device":
        option, value = "set", f"training.device={value or '...'}"
    name = RENAMED.get(option, option.replace("-", "_"))
    return f"{name}=..." if value is None else f"{name}={_literal(option, value)}"


def _literal(option: str, value: str) -> str:
    if option == "labels":
        return "[" + ", ".join("None" if part == "all" else part for part in value.strip('"').split(",")) + "]"
    if value.isupper() or re.fullmatch(r"-?\d+(\.\d+)?", value):
        return value
    bare = value.strip('"')
    if option in LISTS:
        parts = [bare] if option == "set" else bare.split(",")
        return "[" + ", ".join(f'"{part}"' for part in parts) + "]"
    return f'"{bare}"'


def _call(verb: str, words: list[str], resume: str) -> str:
    """`seqwise train DATA --out runs/x` -> `seqwise.train(DATA, out="runs/x")`."""
    names: list[str] = []
    options: dict[str, str | None] = {}
    place = 0
    while place < len(words):
        word, behind = words[place], words[place + 1] if place + 1 < len(words) else "--"
        if not word.startswith("--"):
            names.append(word if word.isupper() else f'"{word}"')
        elif word == "--resume" or behind.startswith("--"):
            options[word[2:]] = None
        else:
            options[word[2:]] = behind
            place += 1
        place += 1
    if "resume" in options:
        folder = options.get("out")
        return f"seqwise.{resume}({'...' if folder is None else _literal('out', folder)})"
    run = "" if "{}" not in VERBS[verb] else names.pop(0) if names else "..."
    arguments = [*names, *(_argument(name, value, resume) for name, value in options.items())]
    return f"seqwise.{VERBS[verb].format(run)}({', '.join(arguments) or '...'})"


_is_typed = ContextVar("is_typed", default=False)


@contextmanager
def as_typed() -> Iterator[None]:
    """Sentences stay as they are, for who types commands."""
    before = _is_typed.set(True)
    try:
        yield
    finally:
        _is_typed.reset(before)


@contextmanager
def _worded(resume: str) -> Iterator[None]:
    try:
        yield
    except SeqwiseError as error:
        if not _is_typed.get():
            error.args = (in_python(str(error), resume=resume),)
        raise


def speaks_python(
    function: Callable[Given, Returned], *, resume: str = "continue_training"
) -> Callable[Given, Returned]:
    """The function, whose mistakes are told in the words of Python, now or while its result is iterated over."""

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        with _worded(resume):
            result = function(*args, **kwargs)
        return _each(result, resume) if isinstance(result, Iterator) else result  # type: ignore[return-value]

    return called


def _each(items: Iterator[object], resume: str) -> Iterator[object]:
    with _worded(resume):
        yield from items


def all_speak_python(kind: Kind) -> Kind:
    """A class, with every public method and property as by `speaks_python`."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, property):
            setattr(kind, name, property(speaks_python(member.fget), doc=member.__doc__))  # type: ignore[arg-type]
        elif isinstance(member, cached_property):
            member.func = speaks_python(member.func)
        elif callable(member):
            setattr(kind, name, speaks_python(member))
    return kind
