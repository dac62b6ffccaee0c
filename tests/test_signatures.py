"""A function that takes settings is seen from outside as one with their names, and refuses others."""

from __future__ import annotations

import inspect
import pydoc
from dataclasses import dataclass, field
from typing import Any

import pytest

from seqwise.signatures import takes


@dataclass(frozen=True)
class Baking:
    flour: str
    minutes: int = 40
    spices: list[str] = field(default_factory=list)
    oven: str = "wood"


@takes(Baking)
def bake(name: str, *, oven: str = "gas", loudly: bool = False, **settings: Any) -> dict[str, Any]:
    """Makes bread."""
    return {"name": name, "oven": oven, "loudly": loudly, "settings": settings}


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def test_the_settings_stand_behind_the_functions_own_parameters_by_name() -> None:
    assert list(parameters(bake)) == ["name", "oven", "loudly", "flour", "minutes", "spices"]
    added = [parameters(bake)[name] for name in ("flour", "minutes", "spices")]
    assert {parameter.kind for parameter in added} == {inspect.Parameter.KEYWORD_ONLY}
    assert [parameter.default for parameter in added] == [inspect.Parameter.empty, 40, []]
    assert [parameter.annotation for parameter in added] == ["str", "int", "list[str]"]
    assert "minutes: 'int' = 40" in pydoc.render_doc(bake, renderer=pydoc.plaintext)


def test_a_parameter_of_the_functions_own_stays_as_it_is() -> None:
    assert parameters(bake)["oven"].default == "gas"
    assert bake("rye", flour="dark", oven="coal")["oven"] == "coal"
    assert (bake.__name__, bake.__doc__) == ("bake", "Makes bread.")


def test_the_function_is_given_what_was_said_and_no_defaults() -> None:
    assert bake("rye", flour="dark")["settings"] == {"flour": "dark"}
    assert bake("rye", flour="dark", spices=["salt"])["settings"] == {"flour": "dark", "spices": ["salt"]}
    assert bake("rye", flour="dark", minutes=None)["settings"] == {"flour": "dark", "minutes": None}
    assert bake(name="rye", flour="dark", loudly=True)["loudly"] is True


@pytest.mark.parametrize(
    ("args", "settings", "sentence"),
    [
        (("rye",), {"flour": "dark", "minute": 3}, "unexpected keyword argument 'minute'"),
        (("rye",), {}, "missing a required .*'flour'"),
        ((), {"flour": "dark"}, "missing a required argument: 'name'"),
        (("rye", "dark"), {}, "too many positional arguments"),
        (("rye",), {"name": "oat", "flour": "dark"}, "multiple values for argument 'name'"),
    ],
)
def test_what_is_not_known_or_lacking_is_refused_as_python_does(
    args: tuple[str, ...], settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TypeError, match=sentence):
        bake(*args, **settings)


def test_one_default_can_stand_for_all_and_some_fields_can_be_left_out() -> None:
    @takes(Baking, default=None, without=("flour",))
    def toast(**settings: Any) -> dict[str, Any]:
        return settings

    assert {name: parameter.default for name, parameter in parameters(toast).items()} == dict.fromkeys(
        ["minutes", "spices", "oven"]
    )
    assert toast(minutes=3) == {"minutes": 3}
    with pytest.raises(TypeError, match="unexpected keyword argument 'flour'"):
        toast(flour="dark")


def test_methods_can_take_settings_too() -> None:
    class Baker:
        @takes(Baking, default=None)
        def bake(self, **settings: Any) -> tuple[Baker, dict[str, Any]]:
            return self, settings

    baker = Baker()
    assert list(parameters(Baker.bake)) == ["self", "flour", "minutes", "spices", "oven"]
    assert baker.bake(oven="gas") == (baker, {"oven": "gas"})
