"""What a model painted, as files and as a page: the pixels that it painted, and nothing from elsewhere."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from seqwise.data.schema import ImageSpec, picture_schema
from seqwise.decoding.painting import paint
from seqwise.errors import ConfigError
from seqwise.inspection.painted import GAP, GROUND, as_png, moving, side_by_side, strip, tiled, write_painted
from seqwise.models import MODELS


def steps_of(num: int, channels: int = 1) -> np.ndarray:
    """Pictures of 3 x 4, in two steps."""
    return np.random.default_rng(0).integers(256, size=(num, 2, 3, 4, channels), dtype=np.uint8)


def test_tiles_stand_in_rows_with_gaps_between_them() -> None:
    steps = steps_of(5)
    found = side_by_side(steps)
    assert found.shape == (2 * (3 + GAP) + GAP, 3 * (4 + GAP) + GAP, 1)
    for place in range(5):
        top, left = GAP + place // 3 * (3 + GAP), GAP + place % 3 * (4 + GAP)
        np.testing.assert_array_equal(found[top : top + 3, left : left + 4], steps[place, -1])
    assert (found[:GAP] == GROUND).all()
    assert (found[-3 - GAP :, -4 - GAP :] == GROUND).all()  # there is no sixth
    np.testing.assert_array_equal(strip(steps), tiled(steps.reshape(10, 3, 4, 1), 2))
    np.testing.assert_array_equal(moving(steps)[0], side_by_side(steps[:, :1]))


@pytest.mark.parametrize("channels", [1, 3])
def test_an_animation_has_the_canvas_of_each_step(channels: int) -> None:
    frames = moving(steps_of(4, channels))
    written = Image.open(io.BytesIO(as_png(frames, 2)))
    assert written.n_frames == 2
    for number, frame in enumerate(frames):
        written.seek(number)
        found = np.asarray(written.convert("L" if channels == 1 else "RGB"))[::2, ::2]
        np.testing.assert_array_equal(found.reshape(frame.shape), frame)


def test_the_page_holds_its_pictures_and_loads_nothing(tmp_path: Path) -> None:
    files = write_painted(
        tmp_path / "page", steps_of(3), title="<b>", command="seqwise generate", facts={"model": "draw"}
    )
    page = files[0].read_text()
    assert [file.name for file in files] == ["index.html", "samples.png", "steps.png", "animation.png"]
    shown = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert [b64decode(one) for one in shown] == [file.read_bytes() for file in files[1:]]
    assert "img-src data:" in page
    assert not re.search(r"(src|href)=[\"']?(https?:|//)", page)
    assert "<b>" not in page
    with pytest.raises(ConfigError, match=r"index\.html: is a file; name a folder\."):
        write_painted(files[0], steps_of(1), title="", command="", facts={})


def test_each_picture_has_chance_of_its_own() -> None:
    row = MODELS["draw"]
    torch.manual_seed(0)
    schema = picture_schema(ImageSpec(5, 4, (0.5,), (0.5,)))
    model = row.build(row.config(num_steps=3, latent_dim=2, model_dim=6), schema)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    found = paint(model, 5, seed=1)
    assert found.shape == (5, 3, 5, 4, 1)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(paint(model, 2, seed=1), found[:2])
    assert not np.array_equal(paint(model, 5, seed=2), found)
    assert not np.array_equal(found[0], found[1])
