"""Films become evenly spaced frames; what is no film, has no frames or is no local file is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pictures_by_hand import write_rows

from seqwise.data.films import FilmPictures, decode_moments, with_moments
from seqwise.data.seen import SeenRow
from seqwise.data.seen_files import open_seen
from seqwise.errors import DataError
from seqwise.settings import DataConfig

av = pytest.importorskip("av", reason="films are read by PyAV, which the extra video brings")


def a_film(path: Path, num: int = 20, side: int = 32, *, sound_only: bool = False) -> Path:
    """Frame n is of brightness 10 n."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as film:
        if sound_only:
            stream = film.add_stream("mp2", rate=44100)
            sound = av.AudioFrame.from_ndarray(np.zeros((1, 1152 * 2), np.int16), format="s16", layout="stereo")
            sound.sample_rate = 44100
            film.mux(stream.encode(sound))
            film.mux(stream.encode(None))
            return path
        stream = film.add_stream("mpeg4", rate=10)
        stream.width = stream.height = side
        stream.pix_fmt = "yuv420p"
        for n in range(num):
            frame = av.VideoFrame.from_ndarray(np.full((side, side, 3), 10 * n, np.uint8), format="rgb24")
            film.mux(stream.encode(frame))
        film.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(("num", "most"), [(20, 4), (20, 20), (3, 6), (25, 2)])
def test_moments_are_evenly_spaced_from_first_to_last(tmp_path: Path, num: int, most: int) -> None:
    found = decode_moments(a_film(tmp_path / "a.mp4", num), most)
    assert len(found) == most
    shown = [frame.mean() / 10 for frame in found]
    expected = np.linspace(0, num - 1, most)
    assert np.abs(np.array(shown) - expected).max() <= 0.5 + num / (4 * most) + 0.5  # compressed, and every few kept
    assert found[0].shape == (32, 32, 3)


def test_films_with_captions_are_clips(tmp_path: Path) -> None:
    for n in range(4):
        a_film(tmp_path / "films" / f"{n}.mp4", 6)
    write_rows(tmp_path / "captions.csv", [{"video": f"{n}.mp4", "caption": f"this is film {n}"} for n in range(4)])
    data = open_seen(DataConfig(source=[str(tmp_path)], max_frames=3), "caption")
    (row,) = [row for rows in data.parts.values() for row in rows if row.texts == ("this is film 2",)]
    assert row.frames == ("films/2.mp4#0/3", "films/2.mp4#1/3", "films/2.mp4#2/3")
    assert isinstance(data.pictures, FilmPictures)
    brightness = [data.pictures.read(name).mean() for name in row.frames]
    assert brightness == sorted(brightness)


def test_rows_of_pictures_are_left_alone() -> None:
    assert with_moments([SeenRow(("a.jpg",), ())], 4) == [SeenRow(("a.jpg",), ())]


def test_what_is_no_film_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("hello there\n" * 50)
    with pytest.raises(DataError, match=r"text.mp4: (a film that cannot be read|is no film)"):
        decode_moments(tmp_path / "text.mp4", 4)
    whole = a_film(tmp_path / "a.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 3])
    with pytest.raises(DataError, match=r"cut.mp4: a film that cannot be read"):
        decode_moments(tmp_path / "cut.mp4", 4)
    with pytest.raises(DataError, match=r"sound.avi: has no frames: there is nothing to be seen in it"):
        decode_moments(a_film(tmp_path / "sound.avi", sound_only=True), 4)


@pytest.mark.parametrize(
    "text",
    [
        "#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile /etc/passwd\n",
        "<?xml version='1.0'?><MPD><BaseURL>http://127.0.0.1:9/</BaseURL></MPD>",
    ],
)
def test_lists_of_other_files_are_not_followed(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.mp4").write_text(text)
    with pytest.raises(DataError, match=r"list.mp4: (a film that cannot be read|is no film that is read here)"):
        decode_moments(tmp_path / "list.mp4", 4)


def test_long_films_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqwise.data.films.MAX_DECODED", 10)
    with pytest.raises(DataError, match=r"a.mp4: more than 10 frames\. Cut it into clips\."):
        decode_moments(a_film(tmp_path / "a.mp4"), 4)
