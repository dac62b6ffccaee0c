"""Settings: every mistake is named with its fix, and what is saved is what was meant."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from seqwise import settings
from seqwise.config import build, parse_json, parse_override, read_toml, settings_of, to_toml
from seqwise.decoding.settings import DecodingConfig
from seqwise.errors import ConfigError
from seqwise.models import MODELS, family
from seqwise.models.gpt import GPTConfig
from seqwise.settings import DataConfig, TokenizerConfig, TrainingConfig

EXAMPLES = how(max_examples=50, deadline=None, derandomize=True, database=None)
OWN_CONFIGS = [
    value
    for value in vars(settings).values()
    if dataclasses.is_dataclass(value) and value.__module__ == settings.__name__
]
MODEL_CONFIGS = [row.config for row in MODELS.values()]
each_config = pytest.mark.parametrize("config_class", [*OWN_CONFIGS, *MODEL_CONFIGS, DecodingConfig])


@dataclass(frozen=True)
class SampleConfig:
    size: int
    """How large."""
    rate: float = 0.5
    """How fast."""
    word: str = "a"
    """What it is called."""
    is_open: bool = False
    """Whether it is."""
    colour: Literal["red", "green"] = "red"
    """Which of two."""
    limit: int | None = None
    """At most so many, where set."""
    either: int | float = 1
    """A number of any kind."""
    names: list[str] = dataclasses.field(default_factory=list)
    """Several words."""

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ConfigError(f"size = {self.size} should not be negative.")


def build_sample(**values: Any) -> SampleConfig:
    return build(SampleConfig, {"size": 1, "names": [], **values}, section="model", where="a.toml")


def complaint(**values: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        build_sample(**values)
    return str(caught.value)


def test_an_unknown_setting_is_named_with_its_file_and_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        build(GPTConfig, {"n_head": 5}, section="model", where="gpt.toml")
    assert str(caught.value) == 'gpt.toml: unknown setting "model.n_head". Did you mean "model.num_heads"?'


@pytest.mark.parametrize(
    ("config_class", "section", "wrong", "right"),
    [
        (GPTConfig, "model", "layers", "num_layers"),
        (GPTConfig, "model", "n_layers", "num_layers"),
        (GPTConfig, "model", "num_layer", "num_layers"),
        (GPTConfig, "model", "drop_out", "dropout"),
        (TrainingConfig, "training", "learningrate", "learning_rate"),
        (TrainingConfig, "training", "batchsize", "batch_size"),
        (TrainingConfig, "training", "warmup", "warmup_steps"),
        (TokenizerConfig, "tokenizer", "lowercase", "lower_case"),
    ],
)
def test_the_setting_that_is_suggested_is_the_one_that_was_meant(
    config_class: type, section: str, wrong: str, right: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(config_class, {wrong: 1}, section=section)
    assert str(caught.value) == f'settings: unknown setting "{section}.{wrong}". Did you mean "{section}.{right}"?'


@pytest.mark.parametrize("wrong", ["zzz", "lr", "q"])
def test_a_setting_that_is_near_no_other_gets_the_whole_list(wrong: str) -> None:
    """What all names share, the section, must not count as likeness."""
    with pytest.raises(ConfigError) as caught:
        build(TrainingConfig, {wrong: 1}, section="training", where="a.toml")
    assert str(caught.value).startswith(f'a.toml: unknown setting "training.{wrong}". Known: ')
    assert "learning_rate" in str(caught.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"size": "big"}, "a.toml: model.size = 'big' should be a whole number."),
        ({"size": 1.5}, "a.toml: model.size = 1.5 should be a whole number."),
        ({"size": True}, "a.toml: model.size = True should be a whole number."),
        ({"rate": "fast"}, "a.toml: model.rate = 'fast' should be a number."),
        ({"rate": True}, "a.toml: model.rate = True should be a number."),
        ({"rate": float("nan")}, "a.toml: model.rate = nan should be a finite number."),
        ({"rate": float("inf")}, "a.toml: model.rate = inf should be a finite number."),
        ({"word": 5}, "a.toml: model.word = 5 should be a word."),
        ({"is_open": 1}, "a.toml: model.is_open = 1 should be true or false."),
        ({"is_open": "yes"}, "a.toml: model.is_open = 'yes' should be true or false."),
        ({"limit": 1.5}, "a.toml: model.limit = 1.5 should be a whole number."),
        ({"limit": False}, "a.toml: model.limit = False should be a whole number."),
        ({"size": None}, "a.toml: model.size = None should be a whole number."),
        ({"either": "x"}, "a.toml: model.either = 'x' should be a whole number or a number."),
        ({"names": "a"}, "a.toml: model.names = 'a' should be a list."),
        ({"colour": "blue"}, 'a.toml: model.colour = "blue" is not one of red, green.'),
        ({"colour": 1}, 'a.toml: model.colour = "1" is not one of red, green.'),
        ({"colour": ["red"]}, "a.toml: model.colour = \"['red']\" is not one of red, green."),
        ({"size": -1}, "a.toml: size = -1 should not be negative."),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(values: dict[str, Any], sentence: str) -> None:
    assert complaint(**values) == sentence


def test_a_list_of_the_wrong_things_is_named() -> None:
    assert complaint(names=["a", 5]).startswith("a.toml: model.names = ['a', 5] should be ")


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        build(SampleConfig, {}, section="model", where="a.toml")
    assert str(caught.value) == 'a.toml: setting "model.size" is missing.'


def test_values_of_the_right_kind_are_taken() -> None:
    config = build_sample(rate=2, limit=3, is_open=True, colour="green", either=2, names=["a"])
    assert config == SampleConfig(1, rate=2.0, limit=3, is_open=True, colour="green", either=2, names=["a"])
    assert isinstance(config.rate, float)
    assert isinstance(config.either, int)
    assert build_sample(limit=None).limit is None


@pytest.mark.parametrize("config_class", [*OWN_CONFIGS, DecodingConfig])
def test_a_config_whose_settings_all_have_a_default_needs_no_values(config_class: Any) -> None:
    assert build(config_class, {}, section="any") == config_class()


@each_config
def test_every_setting_has_its_sentence(config_class: Any) -> None:
    for name, setting in settings_of(config_class).items():
        assert setting.sentence.endswith("."), name
        assert len(setting.sentence) > 5, name


@each_config
def test_defaults_are_of_the_kind_they_ask_for(config_class: Any) -> None:
    config = config_class()
    values = {name: getattr(config, name) for name in settings_of(config_class)}
    assert build(config_class, values, section="any") == config


def saved_and_read(config: Any) -> Any:
    read = tomllib.loads(to_toml({"format": 1}, {"some": config}))
    assert read["format"] == 1
    return build(type(config), read["some"], section="some")


@pytest.mark.parametrize(
    "config",
    [
        *(config_class() for config_class in OWN_CONFIGS),
        *(config_class() for config_class in MODEL_CONFIGS),
        DecodingConfig(),
        DataConfig(
            ["a.txt", 'b"c\\d.txt'], "v.txt", "t.txt", "90/10", ["x"], 12, 3, 2.5, 40, "ff00", "a: 1,000 of\n“text”"
        ),
        TokenizerConfig("word", vocab_size=5000, min_count=2, lower_case=True),
        TrainingConfig(minutes=0.1, epochs=2.5, learning_rate=1e-5, weight_decay=1e22, beta1=0.1 + 0.2, patience=3),
        GPTConfig(feed_forward_dim=64, positions="learned", dropout=0.1, tied_embeddings=True),
        SampleConfig(2, names=[]),
    ],
    ids=lambda config: type(config).__name__,
)
def test_a_saved_config_is_read_as_it_was(config: Any) -> None:
    assert saved_and_read(config) == config


@EXAMPLES
@given(
    words=st.lists(
        st.text(st.characters(codec="utf-8")) | st.text("\"'\\\n\r\t\x00\x1f\x7f\x85\u2028#=[]"), max_size=4
    ),
    number=st.floats(allow_nan=False, allow_infinity=False),
    whole=st.integers(0, 2**63 - 1),
)
def test_any_text_and_any_number_is_read_as_it_was(words: list[str], number: float, whole: int) -> None:
    config = SampleConfig(whole, rate=number, word="".join(words), names=words)
    assert saved_and_read(config) == config
    header = {"name": "".join(words)}
    assert tomllib.loads(to_toml(header, {})) == header


def test_a_saved_config_explains_every_setting() -> None:
    text = to_toml({}, {"model": SampleConfig(3)})
    assert "# How large.\nsize = 3\n" in text
    assert "# At most so many, where set.\n# limit is not set\n" in text
    assert "is_open = false\n" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.num_layers=2", ("model", "num_layers", 2)),
        ("model.num_layers = 2", ("model", "num_layers", 2)),
        ("training.learning_rate=3e-4", ("training", "learning_rate", 3e-4)),
        ("model.tied_embeddings=true", ("model", "tied_embeddings", True)),
        ("model.positions=rotary", ("model", "positions", "rotary")),
        ('model.positions="rotary"', ("model", "positions", "rotary")),
        ("data.description=a = b", ("data", "description", "a = b")),
        ("data.source=['a.txt', 'b.txt']", ("data", "source", ["a.txt", "b.txt"])),
        ("training.device=", ("training", "device", "")),
        ("training.device=cuda:0", ("training", "device", "cuda:0")),
    ],
)
def test_an_override_is_section_setting_and_value(text: str, expected: tuple[str, str, Any]) -> None:
    found = parse_override(text)
    assert found == expected
    assert type(found[2]) is type(expected[2])


@pytest.mark.parametrize("text", ["", "=", "num_layers=2", "model.num_layers", "model.=2", ".x=2", "model=2"])
def test_an_override_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_override(text)
    assert str(caught.value) == f'--set "{text}" should look like --set model.num_layers=2.'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[model\nx = 1", "not valid TOML: .*line 1"),
        (b"x = 'caf\xe9'", r"not UTF-8 text \(byte 8\)"),
        (None, "cannot be read: No such file or directory"),
        (b"x = " + b"[" * 100_000, "not valid TOML: lists or tables are nested too deeply"),
        (b"x = " + b"{x = " * 100_000, "not valid TOML: lists or tables are nested too deeply"),
        (b"[model]\n" + b"x." * 100_000 + b"x = 1", "not valid TOML: lists or tables are nested too deeply"),
        (b"x = " + b"1" * 5000, "not valid TOML: .*limit"),
    ],
)
def test_a_settings_file_that_cannot_be_read_is_named(content: bytes | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "gpt.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"gpt\.toml: {sentence}"):
        read_toml(path)


def test_a_setting_that_is_nested_too_deeply_is_taken_as_a_word() -> None:
    deep = "[" * 100_000
    assert parse_override(f"model.num_layers={deep}") == ("model", "num_layers", deep)
    dotted = "{" + "x." * 5000 + "x = 1}"
    assert parse_override(f"model.num_layers={dotted}") == ("model", "num_layers", dotted)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"x": ' * 100_000, "[" * 500 + "]" * 500, "[", b"\xff"])
def test_json_that_cannot_be_read_is_one_kind_of_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"nested too deeply|Expecting value|can't decode"):
        parse_json(text)


def test_an_unknown_model_gets_the_nearest_name() -> None:
    with pytest.raises(ConfigError) as caught:
        family("ltsm")
    assert str(caught.value) == 'unknown model "ltsm". Did you mean "lstm"?'


@pytest.mark.parametrize(
    ("config_class", "values", "sentence"),
    [
        (TokenizerConfig, {"vocab_size": 1}, "settings: tokenizer.vocab_size = 1 should be at least 2."),
        (TokenizerConfig, {"kind": "bpe", "vocab_size": 100}, "begin with the 256 bytes; ask for more."),
        (TrainingConfig, {"batch_size": 0}, "settings: training.batch_size = 0 should be at least 1."),
        (TrainingConfig, {"steps": -1}, "settings: training.steps = -1 should not be negative."),
        (TrainingConfig, {"minutes": 0}, "settings: training.minutes = 0.0 should be above 0."),
        (TrainingConfig, {"beta2": 1.0}, "should lie in [0, 1)."),
        (GPTConfig, {"model_dim": 256, "num_heads": 5}, "num_heads=5 does not divide model_dim=256"),
    ],
)
def test_settings_that_make_no_sense_are_refused(config_class: Any, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(config_class, values, section="any")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("config_class", "values"),
    [
        (TrainingConfig, {"stride": -4}),
        (TrainingConfig, {"clip_norm": -1.0}),
        (TrainingConfig, {"weight_decay": -0.1}),
        (TrainingConfig, {"sample_tokens": -1}),
        (TrainingConfig, {"final_rate": -1.0}),
        (TrainingConfig, {"threads": -1}),
        (TrainingConfig, {"seed": -1}),
    ],
)
def test_numbers_out_of_their_range_are_refused(config_class: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        build(config_class, values, section="any")
