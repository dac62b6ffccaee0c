"""What moved an answer: exact parts of linear models, slopes by finite differences, and every change scored anew."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from models.test_answer_contract import CASES, NEURAL, WORDS, Case, build, schema_of
from torch import nn

from seqwise.data.annotated import LabelledRow, TaggedRow
from seqwise.data.batch import Batch, Tokens
from seqwise.data.pair_store import Rows
from seqwise.data.schema import LABEL, LABELS, NUMBER, TAG, LabelSpec, TokenSpec, answer_schema
from seqwise.data.text_examples import build_label_store, build_tag_store
from seqwise.inspection.attribution import (
    ROWS,
    Asked,
    by_word,
    chosen_places,
    gradient_times_input,
    gram_parts,
    hidden,
    left_out,
    log_odds,
    occlusion,
    shared_evenly,
    tag_occlusion,
    with_phrase,
)
from seqwise.layers.embeddings import TokenEmbedding
from seqwise.layers.heads import LabelHead, Pooling
from seqwise.layers.stream import Prediction
from seqwise.models.bag_of_ngrams import BagConfig, BagOfNgrams
from seqwise.models.contract import Encoded
from seqwise.models.headed import HeadedModel
from seqwise.models.siamese import READ_APART

TEXT = "w1 w2 w3 w4 w5 w6"
PAIR = "w7 w8 w9"
LABELLED = [case for case in CASES if case.kind in (LABEL, LABELS, NUMBER)]
each_labelled = pytest.mark.parametrize("case", LABELLED, ids=lambda case: case.name)


def tokens_of(case: Case, *texts: str) -> Tokens:
    unanswered: Any = {LABEL: "a", LABELS: (), NUMBER: 0.0}[case.kind]
    row = LabelledRow(texts, unanswered)
    return build_label_store([row], schema_of(case)).batch(slice(0, 1)).inputs["tokens"]


def texts_of(case: Case) -> list[str]:
    return [TEXT, PAIR][: case.num_texts]


def answers_of(case: Case) -> list[int]:
    return [0] if case.kind == NUMBER else [0, 2]


def score(model: Any, case: Case, *texts: str) -> list[float]:
    """Of the answers, from probabilities as `predict` gives them, with the formula written out."""
    with torch.no_grad():
        found: Prediction = model.predict(Batch({"tokens": tokens_of(case, *texts)}, {}))
    if case.kind == NUMBER:
        return [float(found.answers[0])]
    p = found.log_probs[0].double().exp()
    return [float((p[k] / (1 - p[k])).log()) for k in answers_of(case)]


# --- scores -----------------------------------------------------------------------------------------------------------


def test_log_odds_are_of_one_answer_against_all_others() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2], [0.01, 0.98, 0.01]], dtype=torch.float64)
    found = log_odds(p.log(), torch.tensor([0, 2]))
    torch.testing.assert_close(found, torch.tensor([0.0, np.log(0.01 / 0.99)], dtype=torch.float64))
    certain = log_odds(torch.tensor([0.0, -torch.inf]), torch.tensor(0))
    assert torch.isfinite(certain)  # a difference of two such is nothing, not: no number
    near = torch.tensor([-1e-30, np.log(1e-30)], dtype=torch.float64)
    assert float(log_odds(near, torch.tensor(0))) == pytest.approx(-np.log(1e-30))


@each_labelled
def test_scores_are_those_of_the_probabilities(case: Case) -> None:
    model = build(case).double()
    asked = Asked(model, case.kind, answers_of(case))
    found = torch.cat(list(asked.each(tokens_of(case, *texts_of(case)))))
    assert found[0].tolist() == pytest.approx(score(model, case, *texts_of(case)), abs=1e-9)


# --- gradient times input ---------------------------------------------------------------------------------------------


class Mean(nn.Module):
    """Embeddings and nothing else: with a mean of them and two labels, log-odds are linear."""

    context = None
    carries_state = False

    def __init__(self, width: int):
        super().__init__()
        self.embedding, self.output_dim = TokenEmbedding(WORDS.vocab_size, width), width

    def encode(self, inputs: Any, state: Any = None, *, with_layers: bool = False) -> Encoded:
        field = inputs["tokens"]
        return Encoded.of(self.embedding(field), field.is_step, None)


def test_gradient_times_input_of_a_linear_model_is_what_each_token_adds() -> None:
    torch.manual_seed(0)
    head = LabelHead(Pooling("mean", 5), 2)
    nn.init.normal_(head.output.weight)
    nn.init.normal_(head.output.bias)
    model = HeadedModel(Mean(5), {"label": head}, {"label": 1.0}, 2)
    case = Case("lstm", LABEL)
    tokens = tokens_of(case, TEXT)
    found = gradient_times_input(Asked(model, LABEL, [1, 0]), tokens)
    assert found is not None
    weight, bias = (each.detach().double() for each in (head.output.weight, head.output.bias))
    x = model.body.embedding.weight[tokens.ids[0]].double()
    expected = (x.detach() @ (weight[1] - weight[0]) / tokens.shape[1]).numpy()
    np.testing.assert_allclose(found, [expected, -expected], rtol=1e-12)
    log_probs = model.double().predict(Batch({"tokens": tokens}, {})).log_probs[0].detach()
    assert found[0].sum() + float(bias[1] - bias[0]) == pytest.approx(float(log_probs[1] - log_probs[0]), rel=1e-9)


@pytest.mark.parametrize(
    "case",
    [case for case in LABELLED if case.num_texts == 1 or case.settings.get("pairing") in READ_APART],  # no segments
    ids=lambda case: case.name,
)
def test_gradient_times_input_is_the_slope_by_the_size_of_an_embedding(case: Case) -> None:
    """Each word comes once, so that its row of the table is scaled up and down a little; two texts that are read apart
    are put back in their place."""
    model, texts = build(case), texts_of(case)
    found = gradient_times_input(Asked(model, case.kind, answers_of(case)), tokens_of(case, *texts))
    assert found is not None
    ids, step = tokens_of(case, *texts).ids[0].tolist(), 1e-5
    for place in (1, 3, len(ids) - 2):
        moved = []
        for factor in (1 + step, 1 - step):
            changed = copy.deepcopy(model).double()
            changed.body.embedding.weight.data[ids[place]] *= factor
            moved.append(np.array(score(changed, case, *texts)))
        np.testing.assert_allclose(found[:, place], (moved[0] - moved[1]) / (2 * step), rtol=1e-4, atol=1e-7)


def test_models_without_gradients_have_none() -> None:
    model = fitted_bag(["a", "b"])
    assert gradient_times_input(Asked(model, LABEL, [0]), tokens_of(Case("lstm", LABEL), TEXT)) is None


# --- occlusion --------------------------------------------------------------------------------------------------------


@each_labelled
def test_occlusion_is_the_difference_of_texts_that_are_scored_one_by_one(case: Case) -> None:
    model = build(case)
    precise, texts = copy.deepcopy(model).double(), texts_of(case)
    tokens, asked = tokens_of(case, *texts), Asked(model, case.kind, answers_of(case))
    is_word = tokens.ids[0] != WORDS.boundary
    spans = [(place, place + 1) for place in is_word.nonzero().flatten().tolist()]
    whole = np.array(score(precise, case, *texts))
    by_hiding = occlusion(asked, tokens, hidden(tokens, spans, WORDS.unknown))
    by_leaving_out = occlusion(asked, tokens, left_out(tokens, spans))
    word = 0
    for number, text in enumerate(texts):
        words = text.split()
        for place in range(len(words)):
            hid, without = list(texts), list(texts)
            hid[number] = " ".join([*words[:place], "nobody", *words[place + 1 :]])
            without[number] = " ".join([*words[:place], *words[place + 1 :]])
            np.testing.assert_allclose(by_hiding[:, word], whole - score(precise, case, *hid), atol=1e-9)
            np.testing.assert_allclose(by_leaving_out[:, word], whole - score(precise, case, *without), atol=1e-9)
            word += 1
    assert word == len(spans)


def test_more_rows_than_are_scored_at_once_are_all_scored() -> None:
    case = Case("lstm", LABEL, {"pooling": "mean"})
    model, text = build(case), " ".join(f"w{place % 12}" for place in range(ROWS + 5))
    tokens = tokens_of(case, text)
    spans = [(place, place + 1) for place in range(1, ROWS + 6)]
    found = occlusion(Asked(model, LABEL, [0]), tokens, left_out(tokens, spans))
    assert found.shape == (1, ROWS + 5)
    words = text.split()
    alone = score(model.double(), case, text)[0] - score(model, case, " ".join(words[:-1]))[0]
    assert found[0, -1] == pytest.approx(alone, abs=1e-9)


def test_words_of_several_tokens_are_summed_left_out_and_hidden_together() -> None:
    tokens = Tokens(torch.tensor([[9, 1, 2, 3, 4, 9]]))
    spans = [(1, 3), (3, 4), (4, 5)]
    assert hidden(tokens, spans, 7).ids.tolist() == [[9, 7, 7, 3, 4, 9], [9, 1, 2, 7, 4, 9], [9, 1, 2, 3, 7, 9]]
    found = left_out(tokens, spans)
    assert [row[:n] for row, n in zip(found.ids.tolist(), found.lengths.tolist(), strict=True)] == [
        [9, 3, 4, 9],
        [9, 1, 2, 4, 9],
        [9, 1, 2, 3, 9],
    ]
    assert tokens.ids.tolist() == [[9, 1, 2, 3, 4, 9]]
    values = np.arange(12.0).reshape(2, 6)
    assert by_word(values, spans).tolist() == [[3, 3, 4], [15, 9, 10]]


def test_what_is_hidden_is_not_spelled() -> None:
    tokens = Tokens(torch.tensor([[9, 1, 9]]), characters=torch.ones(1, 3, 2, dtype=torch.long))
    assert hidden(tokens, [(1, 2)], 7).characters.tolist() == [[[1, 1], [0, 0], [1, 1]]]
    assert chosen_places(tokens, [[0, 2]]).characters.shape == (1, 2, 2)


@pytest.mark.parametrize("crf", [False, True], ids=["each by itself", "crf"])
def test_what_a_tag_rests_on_is_the_difference_of_rows_that_are_tagged_one_by_one(crf: bool) -> None:
    case = Case("lstm", TAG, {"characters": "conv", "character_dim": 4, "crf": crf}, with_label=True)
    model, schema = build(case), schema_of(case)
    words, tags = ("w1", "w2", "new", "w4"), np.array([0, 2, 4, 1])
    batch = build_tag_store([TaggedRow(words, ("O",) * 4, "y")], schema).batch(slice(0, 1))
    found = tag_occlusion(model, batch, [(n, n + 1) for n in range(1, 5)], WORDS.unknown, tags)
    precise = copy.deepcopy(model).double()

    def odds(hid: int | None) -> np.ndarray:
        tokens = batch.inputs["tokens"]
        ids, characters = tokens.ids.clone(), tokens.characters.clone()
        if hid is not None:
            ids[0, hid + 1], characters[0, hid + 1] = WORDS.unknown, 0
        with torch.no_grad():
            log_probs = precise.predict(Batch({"tokens": Tokens(ids, characters=characters)}, batch.targets)).log_probs
        p = log_probs[0].exp().numpy()[np.arange(4), tags]
        return np.log(p / (1 - p))

    whole = odds(None)
    assert found.shape == (4, 4)
    for hid in range(4):
        np.testing.assert_allclose(found[:, hid], whole - odds(hid), atol=1e-8)
    assert np.abs(found).max() > 0.01


# --- n-grams ----------------------------------------------------------------------------------------------------------


def fitted_bag(labels: list[str], *, num_texts: int = 1) -> BagOfNgrams:
    """Of rows in which w1 speaks for the first label, w2 for the second, and so on."""
    schema = answer_schema(TokenSpec(WORDS, num_texts=num_texts), LabelSpec(labels))
    random, rows, answers = np.random.default_rng(0), [], []
    for _ in range(80):
        answer = int(random.integers(len(labels)))
        words = [f"w{n}" for n in random.integers(4, 12, size=4)]
        words.insert(int(random.integers(5)), f"w{answer + 1}")
        texts = (" ".join(words), " ".join(words[:2]))[:num_texts]
        rows.append(LabelledRow(texts, labels[answer]))
        answers.append(answer)
    store = build_label_store(rows, schema)
    model = BagOfNgrams(BagConfig(order=2, strength=1.0), schema)
    model.fit(Rows(store.tokens.ids, store.tokens.edges), np.array(answers), num_texts=num_texts)
    return model


@pytest.mark.parametrize("num_texts", [1, 2])
def test_the_parts_of_all_grams_and_the_bias_are_the_log_odds(num_texts: int) -> None:
    model, case = fitted_bag(["a", "b"], num_texts=num_texts), Case("lstm", LABEL, num_texts=num_texts)
    tokens = tokens_of(case, *["w1 w5 w5 w6", "w5 w1"][:num_texts])
    log_probs = model.log_probs(tokens)[0]
    spans, parts = gram_parts(model, log_probs, tokens.ids[0].numpy(), [0, 1])
    bias = model.bias[0] - model.bias[1]
    assert parts[:, 0].sum() + bias == pytest.approx(float(log_probs[0] - log_probs[1]), abs=1e-6)
    np.testing.assert_allclose(parts[:, 0], -parts[:, 1], atol=1e-12)
    shared = shared_evenly(spans, parts, tokens.shape[1])
    np.testing.assert_allclose(shared.sum(axis=1), parts.sum(axis=0), atol=1e-12)
    strongest = spans[parts[:, 0].argmax()]
    assert WORDS.decode(tokens.ids[0, strongest[0] : strongest[1]].tolist()).find("w1") >= 0 or num_texts == 2


def test_of_three_labels_the_part_of_a_gram_is_its_slope() -> None:
    model = fitted_bag(["a", "b", "c"])
    tokens = tokens_of(Case("lstm", LABEL), "w1 w5 w2")
    log_probs = model.log_probs(tokens)[0]
    _, parts = gram_parts(model, log_probs, tokens.ids[0].numpy(), [0, 2])
    _, weights = model.weights_of(tokens.ids[0].numpy())
    logits = weights.sum(axis=0) + model.bias
    for gram in range(len(weights)):
        for column, answer in enumerate((0, 2)):
            odds = [
                float(log_odds(torch.from_numpy(logits + step * weights[gram]).log_softmax(0), torch.tensor(answer)))
                for step in (1e-5, -1e-5)
            ]
            assert parts[gram, column] == pytest.approx((odds[0] - odds[1]) / 2e-5, abs=1e-6)


# --- phrases ----------------------------------------------------------------------------------------------------------


def test_a_phrase_stands_before_the_place_it_is_put_at_and_belongs_to_that_text() -> None:
    tokens = Tokens(torch.tensor([[9, 1, 2, 9, 3, 9]]), segments=torch.tensor([[0, 0, 0, 0, 1, 1]]))
    phrase = Tokens(torch.tensor([[7, 8]]), segments=torch.zeros(1, 2, dtype=torch.long))
    found = with_phrase(tokens, phrase, [1, 3, 4, 5])
    assert found.ids.tolist() == [
        [9, 7, 8, 1, 2, 9, 3, 9],
        [9, 1, 2, 7, 8, 9, 3, 9],
        [9, 1, 2, 9, 7, 8, 3, 9],
        [9, 1, 2, 9, 3, 7, 8, 9],
    ]
    assert found.segments.tolist() == [
        [0, 0, 0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 1, 1, 1],
    ]


def test_every_family_that_labels_is_covered() -> None:
    assert {case.family for case in LABELLED} == set(NEURAL)
