"""Settings: frozen dataclasses with a sentence per field, TOML in and out, dotted overrides, "did you mean".

values = {"num_layers": 2}
build(GPTConfig, values, section="model", where="gpt.toml")     # unknown name -> ConfigError with the nearest one
parse_override("model.num_layers=2")                            # -> ("model", "num_layers", 2)
to_toml({"model": config})                                      # every field, its sentence as a comment
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import math
import re
import textwrap
import tomllib
import types
import typing
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal, TypeVar

from .errors import ConfigError, did_you_mean

Config = TypeVar("Config")

MAX_DEPTH = 64
DEEP_KEY = re.compile(
    rf"""(?:^|[\[{{,])[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{MAX_DEPTH},}}""", re.MULTILINE
)
TOO_DEEP = "lists or tables are nested too deeply"


@dataclasses.dataclass(frozen=True)
class Setting:
    """One field of a config: what `seqwise models NAME` lists and the TOML file explains."""

    name: str
    kind: Any
    default: Any
    """`dataclasses.MISSING` where the field must be given."""
    sentence: str

    @property
    def choices(self) -> tuple[Any, ...]:
        return typing.get_args(self.kind) if typing.get_origin(self.kind) is Literal else ()


@functools.cache
def settings_of(config_class: Any) -> dict[str, Setting]:
    """The fields of a config dataclass by name, with the sentence that stands below each in the source."""
    sentences = _sentences(config_class)
    kinds = typing.get_type_hints(config_class)
    return {
        field.name: Setting(field.name, kinds[field.name], _default(field), sentences.get(field.name, ""))
        for field in dataclasses.fields(config_class)
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _sentences(config_class: type) -> dict[str, str]:
    """Docstrings below fields are not kept at run time; the source has them. Those of parents come first."""
    found: dict[str, str] = {}
    for parent in (p for p in reversed(config_class.__mro__) if dataclasses.is_dataclass(p)):
        tree = ast.parse(textwrap.dedent(inspect.getsource(parent)))
        body = typing.cast(ast.ClassDef, tree.body[0]).body
        for field, below in itertools.pairwise(body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(sentence))):
                    found[name] = " ".join(sentence.split())
    return found


def build(config_class: type[Config], values: dict[str, Any], *, section: str, where: str = "settings") -> Config:
    """Make a config from plain values; a ConfigError names the file, the setting and the fix."""
    known = settings_of(typing.cast(Hashable, config_class))
    checked = {}
    for name, value in values.items():
        if name not in known:
            near = did_you_mean(name, known, prefix=f"{section}.")
            raise ConfigError(f'{where}: unknown setting "{section}.{name}". {near}')
        checked[name] = _checked(value, known[name], f"{section}.{name}", where)
    missing = [name for name, s in known.items() if s.default is dataclasses.MISSING and name not in checked]
    if missing:
        raise ConfigError(f'{where}: setting "{section}.{missing[0]}" is missing.')
    try:
        return config_class(**checked)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _checked(value: Any, setting: Setting, name: str, where: str) -> Any:
    kinds = typing.get_args(setting.kind) if isinstance(setting.kind, types.UnionType) else (setting.kind,)
    if setting.choices:
        if value not in setting.choices:
            raise ConfigError(f'{where}: {name} = "{value}" is not one of {", ".join(map(str, setting.choices))}.')
        return value
    if value is None and type(None) in kinds:
        return None
    if isinstance(value, bool) and bool not in kinds:
        raise ConfigError(f"{where}: {name} = {value} should be {_kind_name(kinds)}.")
    if isinstance(value, int) and float in kinds and int not in kinds:
        return float(value)
    plain = tuple(typing.get_origin(kind) or kind for kind in kinds)
    if not isinstance(value, plain):
        raise ConfigError(f"{where}: {name} = {value!r} should be {_kind_name(kinds)}.")
    if isinstance(value, list):
        of = next(typing.get_args(kind)[0] for kind in kinds if typing.get_origin(kind) is list)
        if not all(type(item) is of for item in value):
            items = {str: "words", int: "whole numbers"}[of]
            raise ConfigError(f"{where}: {name} = {value!r} should be a list of {items}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: {name} = {value} should be a finite number.")
    return value


def _kind_name(kinds: tuple[Any, ...]) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", list: "a list"}
    return " or ".join(words.get(typing.get_origin(k) or k, str(k)) for k in kinds if k is not type(None))


def parse_override(text: str) -> tuple[str, str, Any]:
    """'model.num_layers=2' -> ('model', 'num_layers', 2); the value is read as TOML, else taken as a word."""
    name, equals, raw = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise ConfigError(f'--set "{text}" should look like --set model.num_layers=2.')
    try:
        value = _parse_toml(f"value = {raw}")["value"]
    except ValueError:
        value = raw.strip()
    return section, key, value


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return _parse_toml(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}).") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}.") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from None


def to_toml(header: dict[str, Any], sections: dict[str, Any]) -> str:
    """Header values, then one table per config, each field under its sentence; None has no TOML form."""
    lines = [f"{name} = {_toml_value(value)}" for name, value in header.items()]
    for section, config in sections.items():
        lines += ["", f"[{section}]"]
        for name, setting in settings_of(typing.cast(Hashable, type(config))).items():
            value = getattr(config, name)
            lines += [f"# {line}" for line in textwrap.wrap(setting.sentence, 110)]
            lines.append(f"# {name} is not set" if value is None else f"{name} = {_toml_value(value)}")
    return "\n".join(lines) + "\n"


def _parse_toml(text: str) -> dict[str, Any]:
    if DEEP_KEY.search(text):  # a.a.a and so on: Python's reader takes minutes, and all memory, for a long one
        raise ValueError(TOO_DEEP)
    try:
        return _shallow(tomllib.loads(text))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def parse_json(text: str | bytes) -> Any:
    """JSON as a file holds it; nesting too deep to be read is a ValueError like any other damage."""
    try:
        return _shallow(json.loads(text))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def _shallow(value: Any) -> Any:
    """The value itself, unless it is nested more deeply than anything we write: then no message could quote it."""
    layer, depth = [value], 0
    while layer:
        inside = [item.values() if isinstance(item, dict) else item for item in layer if isinstance(item, dict | list)]
        layer, depth = [item for items in inside for item in items if isinstance(item, dict | list)], depth + 1
        if depth > MAX_DEPTH:
            raise ValueError(TOO_DEEP)
    return value


def to_json(value: Any) -> str:
    """JSON that every program reads: numbers without end, and those that are none, become null; always UTF-8."""
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode()  # names of files that are no UTF-8: \\udcff


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    return repr(value)
