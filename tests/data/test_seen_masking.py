"""What is hidden of pictures and sentences, and whose picture is exchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from seqwise.data.masking import Masking
from seqwise.data.pair_store import Rows
from seqwise.data.schema import TokenSpec, with_mask
from seqwise.data.seen import SeenRow
from seqwise.data.seen_masking import SeenMaskedBatches, SeenMaskedStore
from seqwise.data.seen_store import Pixels, SeenStore, Views
from seqwise.text.symbols import SymbolTokenizer

NUM, VOCAB = 200, 30
SPEC = with_mask(TokenSpec(SymbolTokenizer(VOCAB)))
ALL = ("tokens", "match", "image", "shown", "alignment")


def store(targets: tuple[str, ...] = ALL) -> SeenMaskedStore:
    random = np.random.default_rng(0)
    features = random.random((NUM, 4, 3), dtype=np.float32) + 1
    labels = random.integers(-1, 5, size=(NUM, 4))
    views = Views(features, np.zeros((4, 4), np.float32), random.integers(1, 5, size=NUM), labels)
    rows = Rows.of(np.concatenate([[0], random.integers(1, VOCAB, size=8), [0]]) for _ in range(NUM))
    seen = SeenStore(views, np.arange(NUM), {}, [SeenRow((str(n),), ("",)) for n in range(NUM)], rows)
    return SeenMaskedStore(seen, SPEC, targets)


def batch(seed: tuple[int, int] = (0, 0)):
    return store().batch(np.arange(NUM), Masking(share=0.3), seed)


def test_half_of_the_rows_have_another_picture():
    found, whole = batch(), store()
    matches = found.targets["match"].ids.bool()
    assert 0.35 < float(matches.float().mean()) < 0.65
    own = torch.from_numpy(np.asarray(whole.seen.pictures.features))
    is_own = (found.targets["image"].features == own[:, : found.targets["image"].shape[1]]).flatten(1).all(dim=1)
    assert torch.equal(is_own, matches)
    assert torch.equal(found.targets["alignment"].ids, found.targets["match"].ids)


def test_of_each_row_words_or_regions_are_hidden_whether_they_match_or_not():
    """Else what is hidden would tell whether they do."""
    found = batch()
    words = (found.inputs["tokens"].ids != found.targets["tokens"].ids).any(dim=1)
    is_there = found.inputs["image"].is_region
    regions = ((found.inputs["image"].features == 0).all(dim=-1) & is_there).any(dim=1)
    assert not (words & regions).any()
    matches = found.targets["match"].ids.bool()
    for hidden in (words, regions):
        shares = [float(hidden[matches == kind].float().mean()) for kind in (True, False)]
        assert min(shares) > 0.3
        assert abs(shares[0] - shares[1]) < 0.2


def test_only_what_is_hidden_of_matching_rows_is_asked():
    found = batch()
    matches = found.targets["match"].ids.bool().unsqueeze(1)
    words, image, shown = (found.targets[name] for name in ("tokens", "image", "shown"))
    changed = found.inputs["tokens"].ids != words.ids
    assert (words.is_scored | ~changed | ~matches).all()
    assert not (words.is_scored & ~matches).any()
    assert not (words.is_scored & (words.ids == 0)).any()  # the marks at the ends are not hidden
    hidden = (found.inputs["image"].features == 0).all(dim=-1) & image.is_region
    assert torch.equal(image.is_scored, hidden & matches)
    assert torch.equal(shown.is_scored, image.is_scored & (image.labels >= 0))
    assert found.inputs["image"].labels is None  # nobody is told what is asked
    assert found.counts()["image"] == int(image.is_scored.sum())


def test_what_is_drawn_follows_from_the_seed_and_the_row():
    one, again, other = batch(), batch(), batch(seed=(0, 1))
    assert torch.equal(one.inputs["tokens"].ids, again.inputs["tokens"].ids)
    assert not torch.equal(one.inputs["tokens"].ids, other.inputs["tokens"].ids)
    some = store().batch(np.array([7, 3]), Masking(share=0.3), (0, 0))
    hides = (some.inputs["tokens"].ids != some.targets["tokens"].ids).any(dim=1)
    whole = (one.inputs["tokens"].ids != one.targets["tokens"].ids).any(dim=1)
    assert torch.equal(hides, whole[[7, 3]])


def test_of_pixels_words_alone_are_hidden():
    pixels = np.zeros((NUM, 1, 3, 4, 4), np.uint8)
    found = store(("tokens", "match", "alignment"))
    found = replace(found, seen=replace(found.seen, pictures=Pixels(pixels))).batch(np.arange(9), Masking(0.9), (0,))
    assert set(found.targets) == {"tokens", "match", "alignment"}
    assert (found.inputs["tokens"].ids != found.targets["tokens"].ids).any(dim=1).all()


def test_every_row_is_read_once_an_epoch_and_any_step_by_itself():
    source = SeenMaskedBatches(store(), batch_size=50, masking=Masking(), seed=1)
    read = np.sort(np.concatenate([source.batch(step).targets["tokens"].ids.numpy() for step in range(4)]), axis=0)
    whole = np.sort(store().seen.tokens.padded(np.arange(NUM)).ids.numpy(), axis=0)
    assert np.array_equal(read, whole)
    again = SeenMaskedBatches(store(), batch_size=50, masking=Masking(), seed=1).batch(3)
    assert torch.equal(again.inputs["tokens"].ids, source.batch(3).inputs["tokens"].ids)
