"""What moved the answer: how much each word of a row speaks for it, and where in the row a phrase would.

An answer is judged by its log-odds against all others together, in nats; a number by itself:

    s_k = log p(k) - log sum over all others j of p(j)                                                     (1)

    gradient times input   sum over the tokens t of a word of  x_t . d s_k / d x_t                         (2)
    occlusion              s_k of the row, less s_k of the row with the word hidden, or left out           (3)
    n-grams                sum over labels j of  d s_k / d logit_j * weight(j, gram),
                           each gram's part shared evenly by its tokens                                    (4)

x_t is what stands for token t, its embedding: (2) are the exact parts of an s_k that is linear in x, and sum to it but
for its bias (Shrikumar et al. 2016); (4) is the same where grams are what is read. (3) needs answers alone (Zeiler &
Fergus 2014, Li et al. 2016), so that every model can be asked, but words that say the same hide each other.

All is computed in 64 bits, since (3) are differences; many changed rows at once.

Shapes: B rows, T tokens, A answers that are asked for, U words, G grams, N labels, W words with a tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens, rows_of
from ..data.schema import LABEL, LABELS, NUMBER
from ..layers.stream import Prediction
from ..models.contract import Answerer, AnswersSeveral, device_of, evaluating, in_64_bits
from ..models.headed import HeadedModel
from .trace import record

ROWS = 64  # that are scored at once
MOST = 700.0  # nats: log-odds of what is certain, since infinite ones have no difference
Span = tuple[int, int]
"""Where a word begins and ends among the tokens of a row."""


@runtime_checkable
class WeighsGrams(Protocol):
    """A linear model over n-grams, which can say what each of them adds."""

    def weights_of(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of a row of ids (T,): where each gram begins and ends (G, 2), and what it adds to each logit (G, N)."""
        ...


def log_odds(log_probs: Tensor, answers: Tensor) -> Tensor:
    """(1) of an answer each: (..., N), (...) -> (...)."""
    place = answers.unsqueeze(-1)
    others = log_probs.scatter(-1, place, float("-inf")).logsumexp(dim=-1)
    return (log_probs.gather(-1, place).squeeze(-1) - others).clamp(-MOST, MOST)


def _of_label(found: Prediction, answer: int) -> Tensor:
    assert found.log_probs is not None
    return log_odds(found.log_probs, torch.full_like(found.answers, answer))


def _of_label_set(found: Prediction, answer: int) -> Tensor:
    """Each label is right or wrong by itself."""
    assert found.log_probs is not None
    log_prob = found.log_probs[:, answer]
    return (log_prob - (-log_prob.expm1()).log()).clamp(-MOST, MOST)


def _of_number(found: Prediction, answer: int) -> Tensor:
    return found.answers


SCORES: dict[str, Callable[[Prediction, int], Tensor]] = {LABEL: _of_label, LABELS: _of_label_set, NUMBER: _of_number}
"""By the kind of target: what an answer of each row is judged by, (B,)."""


@dataclass(frozen=True)
class Asked:
    """A model, and which of its answers are asked for."""

    model: Answerer
    kind: str
    answers: Sequence[int]
    """Numbers of labels; [0] for a number."""
    target: str | None = None
    """Of which target; the main one where it is not said."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """Fields of one row that are read beside its tokens, such as a picture."""

    def precise(self) -> Asked:
        """The same in 64 bits."""
        weights = self.model.parameters() if isinstance(self.model, nn.Module) else ()
        is_precise = all(weight.dtype == torch.float64 for weight in weights)
        if is_precise:
            return self
        beside = Batch(dict(self.beside), {}).in_64_bits().inputs
        return replace(self, model=in_64_bits(self.model), beside=beside)

    def predict(self, tokens: Tokens) -> Prediction:
        beside = {name: rows_of(one, tokens.shape[0]) for name, one in self.beside.items()}
        batch = Batch({**beside, "tokens": tokens}, {}).to(device_of(self.model))
        if self.target is None:
            return self.model.predict(batch)
        return cast(AnswersSeveral, self.model).predict(batch, self.target)

    def scores(self, tokens: Tokens) -> Tensor:
        """(1), (B, A)."""
        found = self.predict(tokens)
        return torch.stack([SCORES[self.kind](found, answer) for answer in self.answers], dim=1)

    def each(self, tokens: Tokens) -> Iterator[Tensor]:
        """(1) of many rows, some at a time."""
        with torch.inference_mode(), evaluating(self.model):
            for first in range(0, tokens.shape[0], ROWS):
                yield self.scores(take_rows(tokens, slice(first, first + ROWS))).double().cpu()


# -- rows that are changed ---------------------------------------------------------------------------------------------


def take_rows(tokens: Tokens, chosen: slice) -> Tokens:
    """Some rows, without places that are padding in all of them."""
    found = tokens.map(lambda tensor: tensor[chosen])
    longest = int(found.lengths.max())
    return found.map(lambda tensor: tensor[:, :longest])


def hidden(tokens: Tokens, spans: Sequence[Span], unknown: int) -> Tokens:
    """One row -> a row for each word, in which the token `unknown` stands for it, spelled with no characters."""
    found = tokens.map(lambda tensor: tensor.repeat(len(spans), *[1] * (tensor.dim() - 1)))
    for row, (begin, end) in enumerate(spans):
        found.ids[row, begin:end] = unknown
        if found.characters is not None:
            found.characters[row, begin:end] = 0
    return found


def left_out(tokens: Tokens, spans: Sequence[Span]) -> Tokens:
    """One row -> a row for each word, which lacks it."""
    T = tokens.shape[1]
    return chosen_places(tokens, [[*range(begin), *range(end, T)] for begin, end in spans])


def with_phrase(tokens: Tokens, phrase: Tokens, places: Sequence[int]) -> Tokens:
    """One row -> a row for each place, before whose token the phrase stands, a part of the text that it is put in."""
    T, P = tokens.shape[1], phrase.shape[1]
    rows = [[*range(place), *range(T, T + P), *range(place, T)] for place in places]
    found = chosen_places(_behind(tokens, phrase), rows)
    if found.segments is not None and tokens.segments is not None:
        for row, place in enumerate(places):
            found.segments[row, place : place + P] = tokens.segments[0, place]
    return found


def chosen_places(tokens: Tokens, rows: Sequence[Sequence[int]]) -> Tokens:
    """One row -> rows that have its tokens at these places, padded to one length."""
    lengths = torch.tensor([len(row) for row in rows])
    steps = torch.arange(int(lengths.max()))
    is_token = steps < lengths.unsqueeze(1)
    places = torch.zeros(len(rows), len(steps), dtype=torch.long)
    for number, row in enumerate(rows):
        places[number, : len(row)] = torch.tensor(row)
    found = tokens.map(lambda tensor: tensor[0, places.to(tensor.device)])
    return replace(found, is_token=None if bool(is_token.all()) else is_token.to(found.ids.device))


def _behind(first: Tokens, second: Tokens) -> Tokens:
    """Two fields of one row each as one row."""
    columns = {part.name: (getattr(first, part.name), getattr(second, part.name)) for part in fields(Tokens)}
    joined = {
        name: None if pair[0] is None or pair[1] is None else torch.cat(pair, dim=1) for name, pair in columns.items()
    }
    return Tokens(**joined)  # type: ignore[arg-type]


# -- the parts of an answer --------------------------------------------------------------------------------------------


def gradient_times_input(asked: Asked, tokens: Tokens) -> np.ndarray | None:
    """(2) of each token of one row, (A, T); None where answers have no gradient: they are counted, or searched for."""
    precise = asked.precise()
    model = precise.model
    if not isinstance(model, nn.Module):
        return None
    with torch.enable_grad(), evaluating(model), record(model) as trace:
        scores = precise.scores(tokens)[0]  # (A,)
        read = [call for site, what in trace if what == "embedding" for call in trace.calls((site, what))]
        if not scores.requires_grad or not read:
            return None
        steps = steps_read(model, tokens)
        found = np.zeros((len(scores), tokens.shape[1]))
        for row, score in zip(found, scores, strict=True):
            gradients = torch.autograd.grad(score, read, retain_graph=True, allow_unused=True)
            for x, gradient in zip(read, gradients, strict=True):
                if gradient is not None:
                    np.add.at(row, steps[steps >= 0], (x * gradient).sum(dim=-1).detach().cpu().numpy()[steps >= 0])
    return found


def steps_read(model: object, tokens: Tokens) -> np.ndarray:
    """Where in one row each step stands that a network reads, (R, T'), -1 for padding: two texts may be read apart."""
    T = tokens.shape[1]
    if not isinstance(model, HeadedModel):
        return np.arange(T)[None]
    placed = model.as_read(replace(tokens, ids=torch.arange(T, device=tokens.ids.device)[None], characters=None))
    steps = placed.ids if placed.is_token is None else placed.ids.masked_fill(~placed.is_token, -1)
    return steps.cpu().numpy()


def occlusion(asked: Asked, tokens: Tokens, changed: Tokens) -> np.ndarray:
    """(3): the row against rows that each lack something, (A, U)."""
    precise = asked.precise()
    whole = torch.cat(list(precise.each(tokens)))  # (1, A)
    return (whole - torch.cat(list(precise.each(changed)))).T.numpy()


def gram_parts(
    model: WeighsGrams, log_probs: Tensor, ids: np.ndarray, answers: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """(4) before it is shared: where each gram stands (G, 2), and its part of each answer's score (G, A)."""
    spans, weights = model.weights_of(ids)
    slopes = []
    for answer in answers:
        others = log_probs.double().clone()
        others[answer] = -torch.inf
        slope = -others.softmax(dim=0)
        slope[answer] = 1.0
        slopes.append(slope.numpy())
    return spans, weights @ np.stack(slopes, axis=1)


def shared_evenly(spans: np.ndarray, parts: np.ndarray, T: int) -> np.ndarray:
    """What each token has of the parts (G, A) of the grams that it stands in, (A, T)."""
    found = np.zeros((parts.shape[1], T))
    for (begin, end), part in zip(spans, parts, strict=True):
        found[:, begin:end] += part[:, None] / (end - begin)
    return found


def by_word(values: np.ndarray, spans: Sequence[Span]) -> np.ndarray:
    """Of tokens, (A, T), summed over those of each word, (A, U)."""
    found = [values[:, begin:end].sum(axis=1) for begin, end in spans]
    return np.stack(found, axis=1) if found else np.zeros((len(values), 0))


def tag_occlusion(model: Answerer, batch: Batch, spans: Sequence[Span], unknown: int, tags: np.ndarray) -> np.ndarray:
    """(3) of the tag of each word of one row (rows of the result), each word being hidden (columns): (W, W)."""
    precise, target = in_64_bits(model), next(iter(batch.targets))
    tokens, words, chosen = batch.inputs["tokens"], batch.targets[target], torch.from_numpy(tags)

    def scores(rows: Tokens) -> Tensor:
        """Log-odds of each word's tag, (B, W)."""
        asked = Batch({"tokens": rows}, {target: rows_of(words, rows.shape[0])}).to(device_of(precise))
        log_probs = precise.predict(asked).log_probs
        assert log_probs is not None
        return log_odds(log_probs.double().cpu(), chosen.expand(rows.shape[0], -1))

    changed = hidden(tokens, spans, unknown)
    with torch.inference_mode(), evaluating(precise):
        found = [scores(take_rows(changed, slice(first, first + ROWS))) for first in range(0, len(spans), ROWS)]
        return (scores(tokens) - torch.cat(found)).T.numpy()
