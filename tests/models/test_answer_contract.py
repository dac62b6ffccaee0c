"""The contract for what is answered: labels, sets of labels, numbers, tags, spans, choices; every family that answers
them.

A check that does not apply to a case is named in it, with the reason; the last test prints that list.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from safetensors.torch import load, save

from seqwise.data.annotated import LabelledRow, TaggedRow
from seqwise.data.batch import Batch, Tokens
from seqwise.data.choices import build_choice_store
from seqwise.data.questions import Question, Reference
from seqwise.data.schema import (
    CHOICE,
    LABEL,
    LABELS,
    NUMBER,
    SEQUENCES,
    SPAN,
    TAG,
    LabelSpec,
    NumberSpec,
    SpanSpec,
    TagSpec,
    TokenSpec,
    answer_schema,
    choice_schema,
    span_schema,
    tag_schema,
)
from seqwise.data.span_store import SpanWindows, build_span_store
from seqwise.data.text_examples import TextStore, build_label_store, build_tag_store
from seqwise.errors import ConfigError
from seqwise.models import MODELS
from seqwise.text.words import WordTokenizer

WORDS = WordTokenizer([f"w{number}" for number in range(12)])
TOLERANCE = 1e-5
NEURAL: dict[str, dict[str, Any]] = {
    "window": {"window": 3, "embed_dim": 10, "model_dim": 8},
    "conv": {"model_dim": 10, "num_layers": 2},
    "rnn": {"model_dim": 10, "bidirectional": True},
    "gru": {"model_dim": 10},
    "lstm": {"model_dim": 10, "bidirectional": True},
    "gpt": {"context": 40, "num_layers": 2, "model_dim": 16, "num_heads": 2},
    "bert": {"context": 40, "num_layers": 2, "model_dim": 16, "num_heads": 2},
}


@dataclass(frozen=True)
class Case:
    family: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    num_texts: int = 1
    with_label: bool = False
    """Tags: with a label for the row besides."""
    may_lack: bool = False
    """Spans: passages may lack the answer."""
    does_not_apply: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        shown = [f"{k}={v}" for k, v in self.settings.items() if isinstance(v, str | bool)]
        return "-".join(
            [
                self.family,
                self.kind,
                *shown,
                *(["pairs"] if self.num_texts > 1 else []),
                *(["lacking"] if self.may_lack else []),
            ]
        )


NO_SUM = {"sums": "each label is right or wrong by itself"}
NUMBERS = {"sums": "a number has a density, which has no sum"}
CASES = [
    *(
        Case(
            name,
            kind,
            {"pooling": pooling},
            does_not_apply=NO_SUM if kind == LABELS else {} if kind == LABEL else NUMBERS,
        )
        for name in NEURAL
        for kind, pooling in ((LABEL, "max"), (LABELS, "mean"), (NUMBER, "last"))
    ),
    *(Case(name, TAG, {"characters": "conv", "character_dim": 4}) for name in NEURAL if name != "bert"),
    Case("bert", TAG, {"crf": True}),
    *(Case(name, SPAN, {"max_answer": 3}) for name in NEURAL if name != "window"),
    Case("bert", SPAN, {"max_answer": 2}, may_lack=True),
    *(Case(name, CHOICE, {"pooling": "mean"}, num_texts=2) for name in NEURAL),
    Case("bert", CHOICE, {"pooling": "first"}, num_texts=2),
    Case("lstm", CHOICE, {"pooling": "max", "pairing": "siamese"}, num_texts=2),
    Case("bert", LABEL, {"pooling": "first"}, num_texts=2),
    Case("lstm", LABEL, {"pooling": "attention"}),
    Case("lstm", LABEL, {"pooling": "mean", "label_weights": "balanced"}),
    Case("lstm", LABEL, {"pooling": "max", "max_steps": 6}),
    Case("lstm", LABEL, {"pooling": "max"}, num_texts=2),
    *(Case(name, LABEL, {"pooling": "max", "pairing": "siamese"}, num_texts=2) for name in NEURAL),
    *(Case(name, LABEL, {"pooling": "mean", "pairing": "compared"}, num_texts=2) for name in NEURAL),
    Case("bert", NUMBER, {"pooling": "first", "pairing": "compared"}, num_texts=2, does_not_apply=NUMBERS),
    Case("gru", NUMBER, {"pooling": "last", "pairing": "siamese"}, num_texts=2, does_not_apply=NUMBERS),
    *(
        Case(name, NUMBER, {"pooling": "mean", "pairing": "cosine"}, num_texts=2, does_not_apply=NUMBERS)
        for name in ("lstm", "bert")
    ),
    Case("lstm", TAG, {"characters": "lstm", "character_dim": 4}, with_label=True),
    Case("lstm", TAG, {"crf": True}),
    Case("gpt", TAG, {"crf": True, "characters": "conv", "character_dim": 4}, with_label=True),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def schema_of(case: Case) -> Any:
    if case.kind == SPAN:
        return span_schema(TokenSpec(WORDS, num_texts=2), SpanSpec(case.may_lack))
    tokens = TokenSpec(WORDS, alphabet="w0123456789" if case.kind == TAG else "", num_texts=case.num_texts)
    if case.kind == TAG:
        tags = TagSpec(["B-a", "B-b", "I-a", "I-b", "O"], scheme="IOB2")
        return tag_schema(tokens, tags, LabelSpec(["x", "y"]) if case.with_label else None)
    if case.kind == CHOICE:
        return choice_schema(tokens, LabelSpec(["1", "2", "3", "4"]))
    answer = NumberSpec() if case.kind == NUMBER else LabelSpec(["a", "b", "c"], [5, 2, 9])
    return answer_schema(tokens, answer, several=case.kind == LABELS)


def windows_of(case: Case, random: np.random.Generator) -> SpanWindows:
    """Passages of different lengths, some of which take two windows."""
    rows = []
    for number, length in enumerate((3, 14, 6, 9)):
        words = [f"w{n}" for n in random.integers(14, size=length)]
        answer = () if case.may_lack and number % 2 else (Reference(words[0], 0),)
        rows.append(Question(str(number), f"w{number} w9", " ".join(words), answer))
    return build_span_store(rows, schema_of(case)).windows(14)


def store_of(case: Case, num: int = 5, seed: int = 0) -> TextStore | SpanWindows:
    random = np.random.default_rng(seed)
    if case.kind == SPAN:
        return windows_of(case, random)
    rows: list[Any] = []
    for _ in range(num):
        texts = [[f"w{n}" for n in random.integers(14, size=random.integers(1, 9))] for _ in range(case.num_texts)]
        if case.kind == TAG:
            rows.append(TaggedRow(tuple(texts[0]), tuple("O" if n else "B-a" for n in range(len(texts[0]))), "y"))
            continue
        if case.kind == CHOICE:
            choices = [f"w{n} w{n + 1}"[: 2 + 3 * (n % 2)] for n in random.integers(9, size=random.integers(2, 5))]
            rows.append(LabelledRow((" ".join(texts[0]), *choices), str(random.integers(len(choices)) + 1)))
            continue
        answers = {
            LABEL: "abc"[random.integers(3)],
            LABELS: tuple("abc"[: random.integers(4)]),
            NUMBER: random.random(),
        }
        rows.append(LabelledRow(tuple(" ".join(text) for text in texts), answers[case.kind]))
    builders: dict[str, Any] = {TAG: build_tag_store, CHOICE: build_choice_store}
    store: TextStore = builders.get(case.kind, build_label_store)(rows, schema_of(case))
    return store


def build(case: Case) -> Any:
    torch.manual_seed(0)
    row = MODELS[case.family]
    model = row.build(row.config(**NEURAL[case.family], **case.settings), schema_of(case))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def each_alone(store: TextStore | SpanWindows) -> list[Batch]:
    return [store.batch(np.array([row])) for row in range(5)]


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a.double(), b.double(), atol=TOLERANCE, rtol=0)


def needs(case: Case, check: str) -> None:
    if check in case.does_not_apply:
        pytest.skip(f"{check} does not apply: {case.does_not_apply[check]}")


def test_every_family_that_answers_is_covered() -> None:
    """Those that read pictures alone have their own suite (test_picture_contract.py)."""
    for kind in (LABEL, LABELS, NUMBER, TAG, SPAN, CHOICE):
        reading = {name: row for name, row in MODELS.items() if row.can_read(*SEQUENCES)}
        by_gradients = {name for name, row in reading.items() if row.learns.get(kind) == "gradients"}
        assert {case.family for case in CASES if case.kind == kind} >= by_gradients


@each_case
@torch.no_grad()
def test_padding_and_other_rows_change_nothing(case: Case) -> None:
    model, store = build(case), store_of(case)
    together, _ = model.score(store.batch(slice(0, 5)))
    predicted = model.predict(store.batch(slice(0, 5)))
    for row, alone in enumerate(each_alone(store)):
        score, _ = model.score(alone)
        same(together[row, : score.shape[1]], score[0])
        found = model.predict(alone)
        if found.answers.dim() == 2 and case.kind == TAG:
            assert torch.equal(predicted.answers[row, : found.answers.shape[1]], found.answers[0])
        else:
            same(predicted.answers[row], found.answers[0])


@each_case
@torch.no_grad()
def test_probabilities_sum_to_one(case: Case) -> None:
    needs(case, "sums")
    model, store = build(case), store_of(case)
    batch = store.batch(slice(0, 5))
    log_probs = model.predict(batch).log_probs
    total = log_probs.double().logsumexp(dim=-1)
    is_there = batch.targets[model.main].is_target
    same(
        total if is_there is None else total[is_there],
        torch.zeros(()).expand(total.shape if is_there is None else total[is_there].shape),
    )


def best_pair(case: Case, log_probs: torch.Tensor, passage: list[int]) -> list[int]:
    """Of all spans that are short enough, and of none where that may be."""
    every = {
        (a, b): float(log_probs[0, a] + log_probs[1, b])
        for a in range(passage[0], passage[1] + 1)
        for b in range(a, min(passage[1], a + case.settings["max_answer"] - 1) + 1)
    }
    every |= {(0, 0): float(log_probs[0, 0] + log_probs[1, 0])} if case.may_lack else {}
    return list(max(every, key=lambda pair: every[pair]))


@each_case
@torch.no_grad()
def test_what_is_answered_is_the_most_probable(case: Case) -> None:
    """Of a row of tags by a CRF that is the best row, not the best tag of each word: tests/layers/test_crf.py."""
    model, store = build(case), store_of(case)
    found = model.predict(store.batch(slice(0, 5)))
    if case.kind == NUMBER:
        assert found.log_probs is None
    elif case.kind == LABELS:
        assert torch.equal(found.answers, found.log_probs.exp() >= 0.5)
    elif case.kind == SPAN:
        windows = store.batch(slice(0, 5)).targets["span"].passages.tolist()
        rows = zip(found.log_probs, windows, strict=True)
        assert found.answers.tolist() == [best_pair(case, log_probs, passage) for log_probs, passage in rows]
    elif not case.settings.get("crf"):
        assert torch.equal(found.answers, found.log_probs.argmax(dim=-1))


@each_case
def test_micro_batches_give_the_gradient_of_the_whole_batch(case: Case) -> None:
    model, store = build(case).double(), store_of(case)
    batch = store.batch(slice(0, 5)).in_64_bits()

    def gradient(parts: list[Batch]) -> torch.Tensor:
        model.zero_grad()
        for part in parts:
            model.loss(part).over({**batch.counts(), **batch.sizes()}).backward()
        return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])

    whole = gradient([batch])
    assert whole.abs().max() > 0
    torch.testing.assert_close(gradient(batch.split(3)), whole, atol=1e-10, rtol=1e-8)


@each_case
def test_the_loss_is_the_score_of_what_counts(case: Case) -> None:
    model, store = build(case), store_of(case)
    batch = store.batch(slice(0, 5))
    score, _ = model.score(batch)
    wanted = batch.targets[model.main]
    if wanted.is_target is not None and wanted.is_target.shape == score.shape:
        score = score[wanted.is_target]
    if case.settings.get("label_weights"):
        weights = torch.tensor([16 / 15, 16 / 6, 16 / 27])
        score = score * weights[wanted.ids].unsqueeze(1)
    same(model.loss(batch).terms[model.main].total, -score.sum())


@each_case
@torch.no_grad()
def test_a_saved_and_loaded_model_gives_the_same_numbers(case: Case) -> None:
    model, batch = build(case), store_of(case).batch(slice(0, 5))
    other = MODELS[case.family].build(
        MODELS[case.family].config(**NEURAL[case.family], **case.settings), schema_of(case)
    )
    other.load_state_dict(load(save(dict(model.state_dict()))))
    same(other.eval().score(batch)[0], model.score(batch)[0])


@torch.no_grad()
def test_siamese_networks_do_not_mix_the_texts() -> None:
    """What is made of a text is the same whatever it is compared with."""
    case = Case("lstm", LABEL, {"pooling": "max", "pairing": "siamese"}, num_texts=2)
    model, schema = build(case), schema_of(case)
    rows = [
        LabelledRow(("w1 w2 w3", "w4"), "a"),
        LabelledRow(("w1 w2 w3", "w5 w6 w7 w8 w9"), "a"),
        LabelledRow(("w4", "w1 w2 w3"), "a"),
    ]
    inputs = build_label_store(rows, schema).batch(slice(0, 3)).inputs
    hidden = model.siamese.encode(model.body, inputs).stream.hidden[:, 0]
    width = hidden.shape[1] // 4
    same(hidden[0, :width], hidden[1, :width])
    assert not torch.allclose(hidden[0, width : 2 * width], hidden[1, width : 2 * width])
    same(hidden[0, 2 * width :], hidden[2, 2 * width :])  # |u - v| and u * v do not know which came first


@torch.no_grad()
def test_texts_that_are_read_as_one_row_are_compared_by_the_means_of_their_own_steps() -> None:
    case = Case("bert", LABEL, {"pooling": "mean", "pairing": "compared"}, num_texts=2)
    model, schema = build(case), schema_of(case)
    rows = [LabelledRow(("w1 w2 w3", "w4"), "a"), LabelledRow(("w4", "w1 w2 w3 w5 w6"), "a")]
    inputs = build_label_store(rows, schema).batch(slice(0, 2)).inputs
    hidden, found = model.body.encode(inputs).stream.hidden, model.compared.encode(model.body, inputs).stream.hidden
    tokens = inputs["tokens"]
    for row, length in enumerate(tokens.lengths.tolist()):
        segments = tokens.segments[row, :length]
        u, v = (hidden[row, :length][segments == text].mean(dim=0) for text in (0, 1))
        assert not torch.allclose(u, v)
        wanted = torch.cat([hidden[row, :length].mean(dim=0), u, v, (u - v).abs(), u * v])
        assert found[row].shape == (1, len(wanted))
        same(found[row, 0], wanted)


@torch.no_grad()
def test_a_number_by_the_cosine_of_two_vectors() -> None:
    """The vector of a text is that of the text alone, [CLS] before it; the number is linear in the cosine."""
    row, tokens = MODELS["bert"], TokenSpec(WORDS, {"begin": WORDS.vocab_size, "separator": WORDS.vocab_size + 1})
    config = row.config(**NEURAL["bert"], pooling="mean", pairing="cosine")
    pairs = answer_schema(replace(tokens, num_texts=2), NumberSpec())
    model = row.build(config, pairs).eval()
    for parameter in model.body.parameters():
        torch.nn.init.normal_(parameter, std=0.5)

    def vector(text: str) -> torch.Tensor:
        ids, _ = tokens.encode_texts([text])
        return model.body.encode({"tokens": Tokens(torch.from_numpy(ids)[None])}, None).stream.hidden.mean(dim=1)

    asked = [("w1 w2 w3", "w4"), ("w5", "w1 w2 w6 w7"), ("w3 w4", "w3 w4")]
    batch = build_label_store([LabelledRow(texts, 1.0) for texts in asked], pairs).batch(slice(0, 3))
    cosines = torch.cat([torch.cosine_similarity(vector(one), vector(other)) for one, other in asked])
    same(model.predict(batch).answers.flatten(), 4 * cosines - 2)
    assert cosines[2] == pytest.approx(1)
    labels = answer_schema(replace(tokens, num_texts=2), LabelSpec(["a", "b"]))
    with pytest.raises(ConfigError, match=r"model\.pairing = cosine .* for labels take siamese"):
        row.build(config, labels)


@torch.no_grad()
def test_segments_tell_two_texts_apart() -> None:
    case = Case("gru", LABEL, {"pooling": "mean"}, num_texts=2)
    model, schema = build(case), schema_of(case)
    batch = build_label_store([LabelledRow(("w1", "w2"), "a")], schema).batch(slice(0, 1))
    tokens = batch.inputs["tokens"]
    other = Batch({"tokens": replace(tokens, segments=torch.zeros_like(tokens.ids))}, batch.targets)
    assert not torch.allclose(model.score(batch)[0], model.score(other)[0])


@torch.no_grad()
def test_characters_tell_unknown_words_apart() -> None:
    case = Case("lstm", TAG, {"characters": "conv", "character_dim": 4})
    model = build(case)
    rows = [TaggedRow(("w1", "new12"), ("O", "O")), TaggedRow(("w1", "w777"), ("O", "O"))]
    batch = build_tag_store(rows, schema_of(case)).batch(slice(0, 2))
    assert torch.equal(batch.inputs["tokens"].ids[0], batch.inputs["tokens"].ids[1])
    score = model.score(batch)[0]
    assert not torch.allclose(score[0], score[1])


@torch.no_grad()
def test_only_the_ends_of_long_texts_are_read() -> None:
    case = Case("lstm", LABEL, {"pooling": "max", "max_steps": 6})
    model, schema = build(case), schema_of(case)
    long = [f"w{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8)]
    texts = [" ".join(long), " ".join([*long[:2], "w9", "w9", "w9", "w9", *long[6:]]), " ".join(["w9", *long[1:]])]
    store = build_label_store([LabelledRow((text,), "a") for text in texts], schema)
    score = model.score(store.batch(slice(0, 3)))[0]
    same(score[0], score[1])
    assert not torch.allclose(score[0], score[2])


@pytest.mark.parametrize("place", [2, 4])
@torch.no_grad()
def test_the_rarer_of_two_labels_is_the_answer_from_the_threshold_on(place: int) -> None:
    schema = answer_schema(TokenSpec(WORDS), LabelSpec(["rare", "usual"], [1, 9]))
    batch = build_label_store([LabelledRow((f"w{n} w{n + 1}",), "rare") for n in range(9)], schema).batch(slice(0, 9))

    def model(**settings: Any) -> Any:
        torch.manual_seed(0)
        made = MODELS["lstm"].build(MODELS["lstm"].config(**NEURAL["lstm"], pooling="max", **settings), schema)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        return made.eval()

    probable = model().predict(batch).log_probs[:, 0].exp()
    threshold = float(probable.sort().values[place : place + 2].mean())
    assert int((probable >= 0.5).sum()) != 9 - place - 1
    found = model(threshold=threshold).predict(batch)
    assert torch.equal(found.answers == 0, probable >= threshold)
    assert int((found.answers == 0).sum()) == 9 - place - 1


@pytest.mark.parametrize(
    ("family", "kind", "settings", "message"),
    [
        ("lstm", LABEL, {"characters": "conv"}, "goes with tags"),
        ("lstm", TAG, {"characters": "conv", "character_dim": 10}, "should lie below"),
        ("lstm", TAG, {"characters": "lstm", "character_dim": 3}, "should be even"),
        ("lstm", LABEL, {"pairing": "siamese"}, "model.pairing = siamese goes with pairs of texts"),
        ("lstm", LABEL, {"pairing": "compared"}, "model.pairing = compared goes with pairs of texts"),
        ("lstm", NUMBER, {"pairing": "cosine"}, "model.pairing = cosine goes with pairs of texts"),
        ("lstm", LABEL, {"threshold": 1.0}, "between 0 and 1"),
        ("lstm", TAG, {"max_steps": 5}, "goes with texts that have a label"),
        ("lstm", SPAN, {"pairing": "siamese"}, "pairs of texts that have a label"),
        ("lstm", SPAN, {"max_answer": 0}, "should be at least 1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(family: str, kind: str, settings: dict[str, Any], message: str) -> None:
    row = MODELS[family]
    with pytest.raises(ConfigError, match=message):
        row.build(row.config(**NEURAL[family], **settings), schema_of(Case(family, kind)))


def test_a_schema_of_text_has_no_use_for_labels() -> None:
    row = MODELS["lstm"]
    with pytest.raises(ConfigError, match="max_steps"):
        row.build(row.config(model_dim=8, max_steps=4), schemas.of_text(5))


def test_what_does_not_apply_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for case in CASES:
        for check, why in case.does_not_apply.items():
            sys.stdout.write(f"{case.name}: {check} does not apply: {why}\n")
    assert "each label is right or wrong by itself" in capsys.readouterr().out
