"""Specs and schemas: what they encode comes back, what is saved is loaded the same, what is damaged is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import schemas

from seqwise.data.schema import (
    LABEL,
    NEXT_TOKEN,
    NUMBER,
    SEQUENCE,
    SPECS,
    ImageSpec,
    LabelSpec,
    NumberSpec,
    RegionSpec,
    Schema,
    SpanSpec,
    Spec,
    TagSpec,
    Target,
    TokenSpec,
    ValueSpec,
    answer_schema,
    caption_schema,
    pair_schema,
    pair_tokenizers,
    picture_schema,
    seen_schema,
    series_schema,
    tag_schema,
    text_schema,
)
from seqwise.errors import CheckpointError
from seqwise.models import MODELS
from seqwise.text import TOKENIZERS, special_of, train_tokenizer
from seqwise.text.symbols import SymbolTokenizer

TEXT = "the cat sat\non the mat, naïvely\n"
SCALED = ValueSpec(["wind", "höhe, m"], np.array([0.1, -1e9]), np.array([1 / 3, 1e-7]))
TOKENS = {kind: TokenSpec(train_tokenizer(kind, [TEXT * 20]), {"mask": 400}) for kind in TOKENIZERS}
EXAMPLES: dict[str, Spec] = {
    **{f"tokens {kind}": spec for kind, spec in TOKENS.items()},
    "tokens symbol": TokenSpec(SymbolTokenizer(5, 2), {"mask": 5, "separator": 6}),
    "values": SCALED,
    "values unscaled": ValueSpec.unscaled(["a"]),
    "tokens spelled": TokenSpec(TOKENS["word"].tokenizer, alphabet="abcé", num_texts=2),
    "label": LabelSpec(["even", "odd", "ungerade – ja"]),
    "label counted": LabelSpec(["even", "odd"], [3, 0]),
    "tags": TagSpec(["B-x", "I-x", "O"], [1, 2, 3], "IOB2"),
    "number": NumberSpec(),
    "number scaled": NumberSpec(3.5, 0.25),
    "span": SpanSpec(),
    "span or none": SpanSpec(may_lack=True),
    "pictures": ImageSpec(8, 9, (0.5,), (0.25,), "cover", 3),
    "regions": RegionSpec(7, ["dog", "cat"], False, 5),
}
TWO_TARGETS = Schema(
    {"tokens": TOKENS["char"], "values": SCALED, "label": LabelSpec(["b", "a"])},
    {"tokens": "tokens", "seen": "values"},
    {"class": Target("label", LABEL, weight=0.25), "tokens": Target("tokens", NEXT_TOKEN)},
)
SCHEMAS = {
    "text": text_schema(TOKENS["bpe"].tokenizer),
    "numbers": series_schema(SCALED),
    "pairs": pair_schema(TOKENS["char"].tokenizer, TOKENS["word"].tokenizer),
    "pairs joint": pair_schema(TOKENS["char"].tokenizer, TOKENS["char"].tokenizer),
    "labels of tokens": schemas.of_answers(3, vocab_size=4),
    "labels of numbers": schemas.of_answers(3, num_columns=2),
    "a number": schemas.of_answers(0, num_columns=2),
    "all labels that are right": answer_schema(TOKENS["word"], LabelSpec(["a", "b"], [1, 2]), several=True),
    "tags and a label": tag_schema(TOKENS["word"], TagSpec(["B-x", "O"], [1, 2], "IOB2"), LabelSpec(["y", "n"])),
    "two targets": TWO_TARGETS,
    "labels of pictures": seen_schema(ImageSpec(4, 4, (0.5,) * 3, (0.2,) * 3), LabelSpec(["a", "b"])),
    "questions about regions": seen_schema(RegionSpec(3), LabelSpec(["no", "yes"]), TOKENS["word"]),
    "captions": caption_schema(ImageSpec(4, 4, (0.5,), (0.2,)), TOKENS["word"]),
    "pictures to be painted": picture_schema(ImageSpec(4, 4, (0.0,), (1.0,))),
}
each_spec = pytest.mark.parametrize("spec", EXAMPLES.values(), ids=EXAMPLES)
each_schema = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)


def test_every_kind_of_spec_is_here() -> None:
    assert {spec.kind for spec in EXAMPLES.values()} == set(SPECS)
    assert all(SPECS[spec.kind] is type(spec) for spec in EXAMPLES.values())


# -- specs -----------------------------------------------------------------------------------------------------------


@each_spec
def test_a_spec_saved_and_loaded_comes_back_the_same(spec: Spec) -> None:
    again = SPECS[spec.kind].from_dict(json.loads(json.dumps(spec.to_dict())))
    assert type(again) is type(spec)
    assert again.to_dict() == spec.to_dict()  # of numbers to the bit
    assert (again.size, again.describe()) == (spec.size, spec.describe())


@pytest.mark.parametrize("kind", TOKENS)
def test_tokens_are_those_of_the_tokenizer(kind: str) -> None:
    spec = TOKENS[kind]
    again = TokenSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    for found in (spec, again):
        assert found.encode(TEXT).tolist() == spec.tokenizer.encode(TEXT).tolist()
        assert found.decode(found.encode(TEXT)) == spec.tokenizer.decode(spec.tokenizer.encode(TEXT))
        assert (found.boundary, found.tokenizer.kind) == (spec.tokenizer.boundary, kind)


def test_a_schema_tells_what_its_inputs_are_made_of() -> None:
    assert SCHEMAS["text"].reads == {"tokens"}
    assert SCHEMAS["labels of pictures"].reads == {"images"}
    assert SCHEMAS["questions about regions"].reads == {"regions", "tokens"}
    for name, row in MODELS.items():
        assert not (row.can_read(frozenset({"tokens"})) and row.fits(SCHEMAS["questions about regions"])), name


def test_special_tokens_behind_those_of_the_tokenizer_enlarge_its_size() -> None:
    tokenizer = SymbolTokenizer(5)
    assert TokenSpec(tokenizer).size == 5
    assert TokenSpec(tokenizer, {"mask": 5}).size == 6
    assert TokenSpec(tokenizer, {"separator": 7, "mask": 5}).size == 8
    assert TokenSpec(tokenizer, {"mask": 3}).size == 5  # one that it had
    assert TokenSpec(tokenizer, {"mask": 5}).describe() == "Tokenizer: symbol, 6 tokens"


def test_texts_and_words_stand_between_special_tokens_where_there_are_some() -> None:
    tokenizer = SymbolTokenizer(5, boundary=0)
    roles = {"begin": 5, "separator": 6}
    for special, first, second in (
        ({}, [0, 1, 2, 0], [3, 0]),
        ({"mask": 7}, [0, 1, 2, 0], [3, 0]),
        ({"begin": 5}, [5, 1, 2, 0], [3, 0]),
        (roles, [5, 1, 2, 6], [3, 6]),
        ({**roles, "between": 7}, [5, 1, 2, 6, 7], [3, 6]),  # as RoBERTa wants it
    ):
        spec = TokenSpec.from_dict(json.loads(json.dumps(TokenSpec(tokenizer, special).to_dict())))
        ids, segments = spec.encode_texts(["1 2", "3"])
        assert ids.tolist() == [*first, *second]
        assert segments.tolist() == [*[0] * len(first), *[1] * len(second)]
        ids, steps = spec.encode_words(["1 2", "3"])
        assert ids.tolist() == [spec.begin, 1, 2, 3, spec.separator]
        assert steps.tolist() == [1, 3]
        assert spec.encode_texts(["1 2"])[0].tolist() == [spec.begin, 1, 2, spec.separator]


def test_a_newline_and_an_unknown_word_are_decoded_though_they_are_special() -> None:
    tokenizer = train_tokenizer("wordpiece", ["a b\n" * 3])
    spec = TokenSpec(tokenizer, special_of(tokenizer))
    ids = [*spec.encode_texts(["a zz"])[0], *spec.encode("b"), spec.special["mask"], spec.special["padding"]]
    assert spec.decode(ids) == "a [UNK]\nb"


@pytest.mark.parametrize("kind", TOKENS)
def test_special_tokens_are_not_decoded(kind: str) -> None:
    spec, ids = TOKENS[kind], TOKENS[kind].encode(TEXT)
    for mixed in ([400, *ids.tolist(), 400], np.insert(ids, 3, 400), np.insert(ids, [0, 2, len(ids)], 400)):
        assert spec.decode(mixed) == spec.decode(ids)
    assert spec.decode([400]) == ""


def test_values_are_scaled_and_back() -> None:
    written = np.array([[1.0, 2.0], [-3.5, np.nan]])
    spec = ValueSpec(["a", "b"], np.array([1.0, -2.0]), np.array([0.5, 4.0]))
    encoded = spec.encode(written)
    np.testing.assert_array_equal(encoded, [[0.0, 1.0], [-9.0, np.nan]])
    np.testing.assert_array_equal(spec.decode(encoded), written)
    unscaled = ValueSpec.unscaled(["a", "b"])
    np.testing.assert_array_equal(unscaled.encode(written), written)
    assert (spec.size, unscaled.size) == (2, 2)


def test_columns_are_said_to_be_scaled_only_where_they_are() -> None:
    scaled = "each brought to mean zero and variance one"
    assert SCALED.describe() == f"Columns: wind, höhe, m, {scaled}"
    assert ValueSpec.unscaled(["a", "b"]).describe() == "Columns: a, b"
    for mean, scale in ((1.0, 1.0), (0.0, 2.0)):
        assert scaled in ValueSpec(["a"], np.array([mean]), np.array([scale])).describe()


@pytest.mark.parametrize(
    "change",
    [
        {"columns": ["a"]},
        {"mean": [0.0]},
        {"scale": [1.0, 1.0, 1.0]},
        {"mean": [0.0, float("nan")]},
        {"scale": [1.0, float("inf")]},
        {"scale": [1.0, 0.0]},
        {"scale": [1.0, -1.0]},
        {"mean": ["a", "b"]},
    ],
    ids=str,
)
def test_columns_with_numbers_that_do_not_fit_them_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"columns, mean and scale|could not convert"):
        ValueSpec.from_dict({**SCALED.to_dict(), **change})


def test_labels_are_numbered_in_their_order() -> None:
    spec = LabelSpec(["no", "yes"])
    assert spec.size == 2
    assert spec.encode(["yes", "no", "yes"]).tolist() == [1, 0, 1]
    assert [spec.decode(label) for label in spec.encode(["yes", "no"])] == ["yes", "no"]
    assert spec.describe() == "Labels: no, yes"
    assert spec.encode(["maybe", "no"]).tolist() == [-1, 0]  # one that is not known


def test_a_number_is_itself() -> None:
    spec = NumberSpec()
    assert spec.size == 1
    assert spec.encode([0.5, -2]).tolist() == [0.5, -2.0]
    assert spec.encode([0.5]).dtype == np.float32
    assert [spec.decode(number) for number in spec.encode([0.5, 1e-7, 1234567])] == ["0.5", "1e-07", "1.23457e+06"]


# -- schemas ---------------------------------------------------------------------------------------------------------


@each_schema
def test_a_schema_saved_and_loaded_comes_back_the_same(schema: Schema, tmp_path: Path) -> None:
    schema.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"schema.json", *(f"{name}.json" for name in schema.specs)}
    again = Schema.load(tmp_path)
    assert list(again.specs) == list(schema.specs)
    for name, spec in schema.specs.items():
        assert type(again.specs[name]) is type(spec)
        assert again.specs[name].to_dict() == spec.to_dict()
    assert list(again.inputs.items()) == list(schema.inputs.items())
    assert list(again.targets.items()) == list(schema.targets.items())  # in their order: the first is the main one
    assert (again.main, again.kind, again.kinds) == (schema.main, schema.kind, schema.kinds)


@each_schema
def test_what_is_saved_twice_is_the_same_file(schema: Schema, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    schema.save(first)
    Schema.load(first).save(second)
    assert {p.name: p.read_bytes() for p in first.iterdir()} == {p.name: p.read_bytes() for p in second.iterdir()}


@each_schema
@pytest.mark.parametrize("content", [None, "", "{", "[", "5", "[1, 2]", '{"kind": "chars"}', b"\xff\xfe"], ids=str)
def test_a_damaged_or_missing_file_is_named(schema: Schema, content: str | bytes | None, tmp_path: Path) -> None:
    for name in ("schema", *schema.specs):
        schema.save(tmp_path)
        path = tmp_path / f"{name}.json"
        if content is None:
            path.unlink()
            sentence = f"{path}: cannot be read: No such file or directory."
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            sentence = f"{path}: damaged: not what seqwise wrote. Restore it or train again."
        with pytest.raises(CheckpointError) as caught:
            Schema.load(tmp_path)
        assert str(caught.value) == sentence


def saved_in(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "schema.json").read_text())


@pytest.mark.parametrize(
    "change",
    [
        {"specs": {"tokens": "pixels"}},  # a kind that is not known
        {"specs": {"tokens": ["tokens"]}},
        {"specs": []},
        {"specs": {}},
        {"inputs": {"tokens": "source"}},  # a spec that is not there
        {"inputs": {}},
        {"inputs": ["tokens"]},
        {"targets": {}},
        {"targets": {"tokens": {"spec": "label", "head": "next_token"}}},
        {"targets": {"tokens": {"spec": "tokens"}}},
        {"targets": {"tokens": {"spec": "tokens", "head": "next_token", "colour": "red"}}},
        {"targets": {"tokens": {"spec": 5, "head": "next_token"}}},
        {"targets": {"tokens": {"spec": "tokens", "head": "next_token", "weight": "much"}}},
        {"targets": {"tokens": {"spec": "tokens", "head": ["next_token"]}}},
        {"targets": {"tokens": "tokens"}},
    ],
    ids=str,
)
def test_a_schema_edited_to_nonsense_is_named(change: dict[str, Any], tmp_path: Path) -> None:
    SCHEMAS["text"].save(tmp_path)
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({**saved_in(tmp_path), **change}))
    with pytest.raises(CheckpointError) as caught:
        Schema.load(tmp_path)
    assert str(caught.value) == f"{path}: damaged: not what seqwise wrote. Restore it or train again."


@pytest.mark.parametrize("part", ["specs", "inputs", "targets"])
def test_a_schema_without_one_of_its_parts_is_named(part: str, tmp_path: Path) -> None:
    SCHEMAS["text"].save(tmp_path)
    saved = saved_in(tmp_path)
    del saved[part]
    (tmp_path / "schema.json").write_text(json.dumps(saved))
    with pytest.raises(CheckpointError, match=r"schema\.json: damaged"):
        Schema.load(tmp_path)


def test_names_of_specs_that_are_not_there_are_refused() -> None:
    specs, target = {"tokens": TOKENS["char"]}, {"tokens": Target("tokens", NEXT_TOKEN)}
    with pytest.raises(ValueError, match="the schema has no spec source; it has tokens"):
        Schema(specs, {"tokens": "tokens", "source": "source"}, target)
    with pytest.raises(ValueError, match="the schema has no spec label, source; it has tokens"):
        Schema(specs, {"source": "source"}, {"label": Target("label", LABEL)})
    for inputs, targets in (({}, target), ({"tokens": "tokens"}, {})):
        with pytest.raises(ValueError, match="at least one input and one target"):
            Schema(specs, inputs, targets)


def test_a_field_is_asked_for_by_what_it_is_made_of() -> None:
    assert TWO_TARGETS.input("tokens", TokenSpec) is TOKENS["char"]
    assert TWO_TARGETS.input("seen", ValueSpec) is SCALED
    assert TWO_TARGETS.target("class", LabelSpec).names == ["b", "a"]
    with pytest.raises(TypeError, match="values is made of values, not of tokens"):
        TWO_TARGETS.input("seen", TokenSpec)
    with pytest.raises(TypeError, match="label is made of label, not of number"):
        TWO_TARGETS.target("class", NumberSpec)


def test_the_first_target_is_the_main_one() -> None:
    assert (TWO_TARGETS.main, TWO_TARGETS.kind, TWO_TARGETS.kinds) == ("class", LABEL, (LABEL, NEXT_TOKEN))
    same = Schema(TWO_TARGETS.specs, TWO_TARGETS.inputs, {name: Target("label", LABEL) for name in ("a", "b")})
    assert same.kinds == (LABEL,)


def test_a_model_of_one_input_reads_that() -> None:
    assert SCHEMAS["numbers"].only_input() is SCALED
    with pytest.raises(ValueError, match="too many values"):
        TWO_TARGETS.only_input()


def test_pairs_have_one_spec_where_they_have_one_tokenizer() -> None:
    char, word = TOKENS["char"].tokenizer, TOKENS["word"].tokenizer
    assert pair_tokenizers(pair_schema(char, word)) == (char, word)
    assert pair_tokenizers(pair_schema(char, char)) == (char, char)
    assert list(SCHEMAS["pairs"].specs) == ["source", "tokens"]
    assert list(SCHEMAS["pairs joint"].specs) == ["tokens"]
    assert SCHEMAS["pairs"].kind == SCHEMAS["pairs joint"].kind == SEQUENCE


def test_pairs_of_one_tokenizer_are_loaded_so(tmp_path: Path) -> None:
    """One object for both: by that a model knows that it may share its tables."""
    SCHEMAS["pairs joint"].save(tmp_path)
    loaded = Schema.load(tmp_path)
    assert loaded.input("source", TokenSpec) is loaded.target("tokens", TokenSpec)


def test_answers_are_labels_or_a_number_where_there_are_none() -> None:
    tokens = TokenSpec(SymbolTokenizer(4))
    labels, number = answer_schema(tokens, LabelSpec(["a", "b"])), answer_schema(SCALED, NumberSpec())
    assert (labels.main, labels.kind, labels.inputs) == ("label", LABEL, {"tokens": "tokens"})
    assert (number.main, number.kind, number.inputs) == ("number", NUMBER, {"values": "values"})
    assert labels.only_input() is tokens
