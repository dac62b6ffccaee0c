"""CIDEr by hand on a tiny case, and beside the code that everybody reports."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seqwise.evaluation.cider import cider

REFERENCES = [
    ["a dog runs on grass", "a brown dog is running", "dog dog dog"],
    ["a cat sleeps", "the cat is asleep on a sofa"],
    ["two men play a game of chess", "men at a table"],
    ["a dog and a cat"],
]
HYPOTHESES = ["a dog runs on a sofa", "a cat is asleep on grass", "", "a dog and a cat"]


def test_by_hand() -> None:
    """Two pictures, one reference each. Of "b c" against "b d": b is in one of two pictures, as every word here is, so
    each word weighs log 2; one of two words is shared, no pair; the lengths are the same."""
    found = cider(["b c", "x y"], [["b d"], ["x y"]])
    weight = math.log(2)
    words = weight**2 / (weight * math.sqrt(2) * math.sqrt(1 + 1) * weight)  # c weighs log 2 - log max(1, 0)
    assert found[0] == pytest.approx(10 * words / 4)
    assert found[1] == pytest.approx(10 * 2 / 4)  # words and pairs as they should be; there are no longer grams


def test_a_word_of_all_pictures_says_nothing_and_length_is_punished() -> None:
    assert cider(["a", "a"], [["a b"], ["a c"]]).tolist() == [0.0, 0.0]
    longer = cider(["b c b c b c b", "x y"], [["b c"], ["x y"]])[0]
    assert 0 < longer < cider(["b c", "x y"], [["b c"], ["x y"]])[0] * math.exp(-(5**2) / 72) + 1e-9


def test_beside_the_published_code() -> None:
    scorer = pytest.importorskip("pycocoevalcap.cider.cider", reason="pycocoevalcap is not installed")
    pictures = range(len(REFERENCES))
    mean, each = scorer.Cider().compute_score(
        {number: REFERENCES[number] for number in pictures}, {number: [HYPOTHESES[number]] for number in pictures}
    )
    found = cider(HYPOTHESES, REFERENCES)
    np.testing.assert_allclose(found, each, atol=1e-9)
    assert found.mean() == pytest.approx(mean)
    assert len(set(np.round(found, 6))) == len(found)
