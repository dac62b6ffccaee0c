"""ELMo: both directions against a plain reading of the rows, words by their characters, layers, and what it learns."""

from __future__ import annotations

from typing import Any

import schemas
import torch
from torch import nn

from seqwise.data.batch import Batch, Tokens, next_token_batch
from seqwise.data.schema import TokenSpec, text_schema
from seqwise.layers.bidirectional_lm import BidirectionalLM
from seqwise.layers.character_words import CharacterWords
from seqwise.models.elmo import ELMo, ELMoConfig, build_elmo
from seqwise.text.words import WordTokenizer

SMALL = ELMoConfig(model_dim=6, memory_dim=10, num_filters=2, dropout=0.0)
WORDS = WordTokenizer(["cat", "cats", "dog", "the"])


def model(config: ELMoConfig = SMALL, **vocab: Any) -> ELMo:
    torch.manual_seed(0)
    made = build_elmo(config, vocab.get("schema", text_schema(WORDS)))
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.3)
    return made.eval()


def rows(*texts: str) -> torch.Tensor:
    return torch.stack([torch.tensor([WORDS.boundary, *WORDS.encode(text)]) for text in texts])


@torch.no_grad()
def test_the_backward_direction_reads_each_row_from_its_end() -> None:
    """Word by word, by a stack that only reads forward: what comes before t from what stands from t on."""
    made, tokens = model(), rows("the cat dog the", "cats dog dog cat")
    terms = made.loss(next_token_batch(tokens)).terms
    total = torch.zeros(())
    for row in tokens:
        read = made.spelling[row[1:].flip(0)].unsqueeze(0)  # the last word first
        x = made.body.words(read)
        hidden, _ = made.body.backward_stack(x, made.body.backward_stack.initial_state(1))
        expected = row[:-1].flip(0)
        log_probs = made.head.tokens.expect(hidden[0])  # type: ignore[union-attr, operator]
        total = total - log_probs.gather(1, expected.unsqueeze(1)).sum()
    torch.testing.assert_close(terms["backward"].total, total)
    forward, _ = made.score(next_token_batch(tokens))
    torch.testing.assert_close(terms["forward"].total, -forward.sum())
    assert {name: (term.count, term.weight) for name, term in terms.items()} == {
        "forward": (8, 0.5),
        "backward": (8, 0.5),
    }


@torch.no_grad()
def test_padding_changes_neither_direction() -> None:
    made = model()
    short, long = rows("the cat")[0], rows("cats dog the cat dog")[0]
    padded = torch.zeros(2, 6, dtype=torch.long)
    padded[0, :3], padded[1] = short, long
    is_token = torch.arange(6) < torch.tensor([[3], [6]])
    together = made.loss(next_token_batch(padded, is_token)).terms
    alone = [made.loss(next_token_batch(row.unsqueeze(0))).terms for row in (short, long)]
    for name in ("forward", "backward"):
        torch.testing.assert_close(together[name].total, alone[0][name].total + alone[1][name].total, atol=1e-5, rtol=0)
    layers = made.layers(Batch({"tokens": Tokens(padded, is_token)}, {}))
    for whole, one in zip(layers, made.layers(Batch({"tokens": Tokens(short.unsqueeze(0))}, {})), strict=True):
        torch.testing.assert_close(whole[0, :3], one[0], atol=1e-5, rtol=0)


@torch.no_grad()
def test_layers_know_both_sides_and_the_lowest_knows_none() -> None:
    made = model()
    before = made.layers(Batch({"tokens": Tokens(rows("the cat dog the"))}, {}))
    after = made.layers(Batch({"tokens": Tokens(rows("the cat cats the"))}, {}))
    assert len(before) == SMALL.num_layers + 1
    assert all(layer.shape == (1, 5, 12) for layer in before)
    torch.testing.assert_close(before[0][0, 2], after[0][0, 2])
    for one, other in zip(before[1:], after[1:], strict=True):
        torch.testing.assert_close(one[0, 2, :6], other[0, 2, :6])  # what was read before is the same
        assert not torch.allclose(one[0, 2, 6:], other[0, 2, 6:])  # what comes behind is not


@torch.no_grad()
def test_words_that_are_not_in_the_vocabulary_are_read_by_their_characters() -> None:
    made = model()
    spec = TokenSpec(WORDS, alphabet=made.alphabet)
    unknown = torch.tensor([[WORDS.boundary, WORDS.unknown]])
    characters = torch.from_numpy(spec.spell(["", "tac"])).long().unsqueeze(0)
    other = torch.from_numpy(spec.spell(["", "god"])).long().unsqueeze(0)
    found = [made.layers(Batch({"tokens": Tokens(unknown, characters=given)}, {})) for given in (characters, other)]
    assert all(not torch.allclose(one[0, 1], two[0, 1]) for one, two in zip(*found, strict=True))
    known = made.layers(Batch({"tokens": Tokens(rows("cat"))}, {}))
    spelled = torch.from_numpy(spec.spell(["", "cat"])).long().unsqueeze(0)
    again = made.layers(Batch({"tokens": Tokens(unknown, characters=spelled)}, {}))
    for one, two in zip(known, again, strict=True):
        torch.testing.assert_close(one, two)


@torch.no_grad()
def test_a_word_is_its_characters_whatever_stands_beside_it() -> None:
    torch.manual_seed(0)
    words = CharacterWords(9, 5, character_dim=4, num_filters=2, num_highways=2)
    alone = words.of_words(torch.tensor([[3, 4, 0, 0, 0, 0]]))
    beside = words.of_words(torch.tensor([[3, 4, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 0]]))
    torch.testing.assert_close(alone[0], beside[0])
    turned = words.of_words(torch.tensor([[4, 3, 0, 0, 0, 0]]))
    assert not torch.allclose(alone, turned)
    again = words(torch.tensor([[[3, 4, 0], [1, 0, 0]], [[1, 0, 0], [3, 4, 0]]]))
    torch.testing.assert_close(again[0, 0], again[1, 1])
    torch.testing.assert_close(again[0, 0], alone[0])


def test_sizes_are_all_that_the_shapes_follow_from() -> None:
    made = model()
    again = BidirectionalLM(len(made.alphabet) + 2, **made.config.sizes)
    shapes = [{name: weight.shape for name, weight in body.named_parameters()} for body in (made.body, again)]
    assert shapes[0] == shapes[1]


def test_it_learns_what_follows_and_what_comes_before() -> None:
    """A cycle of four words: each is known from the one before it, and from the one behind it."""
    torch.manual_seed(0)
    made = build_elmo(ELMoConfig(model_dim=12, memory_dim=24, num_filters=2, dropout=0.0), schemas.of_text(5))
    optimizer = torch.optim.AdamW(made.parameters(), lr=0.02)
    cycle = torch.tensor([1, 2, 3, 4] * 4)
    batch = next_token_batch(torch.stack([cycle.roll(shift)[:9] for shift in range(4)]))
    for _ in range(150):
        optimizer.zero_grad()
        made.loss(batch).over(batch.counts()).backward()
        optimizer.step()
    terms = made.eval().loss(batch).terms
    assert all(float(term.total.detach()) / term.count < 0.1 for term in terms.values())
