"""Questions on passages, from files: what is read, what is mended, what is said of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.check_spans import check_spans
from seqwise.data.kinds import task_for
from seqwise.data.public import PUBLIC, find_file, verify
from seqwise.data.questions import Question, Reference
from seqwise.data.span_files import joined_articles, open_spans, open_whole_spans, place_of, read_span_files
from seqwise.data.span_toys import room_questions
from seqwise.errors import ConfigError, DataError

PASSAGE = "The key is in the box. The lamp is on the box."


def question(text: str, *answers: tuple[str, int], id: str = "1", **more: Any) -> dict[str, Any]:
    return {"id": id, "question": text, "answers": [{"text": t, "answer_start": n} for t, n in answers], **more}


def squad(*articles: dict[str, list[dict[str, Any]]]) -> str:
    """Passages with their questions, article by article."""
    return json.dumps(
        {
            "version": "1.1",
            "data": [
                {"title": f"t{n}", "paragraphs": [{"context": c, "qas": qas} for c, qas in article.items()]}
                for n, article in enumerate(articles)
            ],
        }
    )


def written(folder: Path, text: str, name: str = "q.json") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def whole(folder: Path, *asked: dict[str, Any], passage: str = PASSAGE) -> Any:
    return open_whole_spans([written(folder, squad({passage: list(asked)}))])


def test_both_layouts_are_read_alike(tmp_path: Path) -> None:
    rows = [
        {
            "id": "a",
            "title": "t0",
            "context": PASSAGE,
            "question": "Where?",
            "answers": {"text": ["in the box"], "answer_start": [11]},
        },
        {"id": "b", "title": "t0", "context": PASSAGE, "question": "Who?", "answers": {"text": [], "answer_start": []}},
    ]
    lines = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "q.jsonl")
    nested = squad(
        {PASSAGE: [question("Where?", ("in the box", 11), id="a"), question("Who?", id="b", is_impossible=True)]}
    )
    found = [open_whole_spans([path]).parts["whole"] for path in (lines, written(tmp_path, nested))]
    assert (
        found[0]
        == found[1]
        == [
            Question("a", "Where?", PASSAGE, (Reference("in the box", 11),), "t0"),
            Question("b", "Who?", PASSAGE, (), "t0"),
        ]
    )
    assert [task_for(None, [str(path)]) for path in (lines, tmp_path / "q.json")] == ["span", "span"]


@pytest.mark.parametrize(
    ("text", "start", "place"),
    [
        ("key", 4, 4),
        ("key", 5, 4),  # the only one
        ("key", 40, 4),  # the only one, wherever
        ("box", 18, 18),
        ("box", 900, None),  # two, and neither is near
        ("box", 20, None),  # two are near
        ("coin", 3, None),
        (" ", 3, None),
        ("key", -1, 4),
    ],
)
def test_an_answer_is_looked_for_where_it_is_said_to_stand_and_nearby(text: str, start: int, place: int | None) -> None:
    assert place_of(Reference(text, start), PASSAGE) == place


def test_of_two_places_the_one_nearby_is_meant() -> None:
    passage = f"box {'x' * 100} box"
    assert place_of(Reference("box", 3), passage) == 0
    assert place_of(Reference("box", 100), passage) == 105


def test_answers_elsewhere_are_counted_and_said(tmp_path: Path) -> None:
    """What is learned from leaves out what stands nowhere; what is scored is compared by its words."""
    asked = [
        question("Where is it?", ("in the box", 11), id="good"),
        question("What is there?", ("key", 9), id="moved"),
        question("Which?", ("coin", 0), id="lost"),
        question("Either?", ("coin", 0), ("lamp", 27), id="one left"),
    ]
    path = written(tmp_path, squad({PASSAGE: asked}))
    found = read_span_files({"train": [path]})
    assert [one.id for one in found.parts["train"]] == ["good", "moved", "one left"]
    assert found.parts["train"][1].references == (Reference("key", 4),)
    assert found.parts["train"][2].texts == ("lamp",)
    odd = "q.json: 3 of 5 answers are not at the place that is given (1 stands nearby and is mended, 2 are "
    assert found.notes == [
        f'{odd}left out; first in question "moved")',
        "q.json: 1 question is left out, no answer being left",
    ]
    scored = open_whole_spans([path])
    assert [one.texts for one in scored.parts["whole"]] == [("in the box",), ("key",), ("coin",), ("coin", "lamp")]
    assert scored.parts["whole"][2].references == (Reference("coin", -1),)
    assert scored.notes == [f'{odd}compared with, wherever they stand; first in question "moved")']
    answered = open_whole_spans([path], answered=False)
    assert [one.references for one in answered.parts["whole"]] == [()] * 4
    assert answered.notes == []


def test_blank_and_repeated_questions_are_said(tmp_path: Path) -> None:
    same = question("What?", ("key", 4), id="x")
    data = whole(tmp_path, same, same, question("Else?", ("lamp", 27), id="x"), question("  ", ("key", 4), id="y"))
    assert [one.id for one in data.parts["whole"]] == ["x", "x#2"]
    assert data.notes == [
        "q.json: 1 question without a text or a passage is left out",
        "q.json: 1 question stands there twice",
        "q.json: 1 id belongs to several questions, which now have a number behind it",
    ]


def test_what_says_that_it_has_no_answer_has_none(tmp_path: Path) -> None:
    asked = question("Who?", ("key", 4), is_impossible=True, plausible_answers=[{"text": "key", "answer_start": 4}])
    data = whole(tmp_path, asked)
    assert data.parts["whole"][0].references == ()
    assert data.may_lack


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "q.json: is not JSON"),
        ("[]", 'has no list "data"; expected'),
        ('{"data": [{"title": "t"}]}', 'article 1: has no list "paragraphs"'),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', 'article 1 .*, paragraph 1: has no text "context"'),
        ('{"data": [{"paragraphs": [{"context": "c"}]}]}', 'paragraph 1: has no list "qas"'),
        ('{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": 1}]}]}]}', 'has no text "question"'),
        ('{"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "q"}]}]}]}', 'has no "answers"'),
        (
            '{"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "q", "answers": [1]}]}]}]}',
            "not as expected",
        ),
        ('{"data": [{"paragraphs": [{"context": "\\ud800", "qas": []}]}]}', "half a character"),
        ('{"data": []}', "there are no questions"),
    ],
)
def test_what_is_wrong_is_told_by_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        open_whole_spans([written(tmp_path, text)])


def test_lines_are_told_by_their_number(tmp_path: Path) -> None:
    good = json.dumps({"context": "c d", "question": "q", "answers": {"text": ["c"], "answer_start": [0]}})
    bad = [
        json.dumps({"question": "q"}),
        json.dumps({"context": "c", "question": "q", "answers": {"text": ["c"], "answer_start": []}}),
    ]
    for line, message in zip(bad, ('line 3: has no text "context"', "line 3: the answers"), strict=True):
        with pytest.raises(DataError, match=message):
            open_whole_spans([written(tmp_path, f"{good}\n\n{line}\n", "q.jsonl")])


def test_questions_without_answers_can_be_asked(tmp_path: Path) -> None:
    path = written(tmp_path, squad({PASSAGE: [{"id": "1", "question": "Where?"}]}))
    assert open_whole_spans([path], answered=False).parts["whole"][0].references == ()


def test_no_article_stands_in_two_parts(tmp_path: Path) -> None:
    """Articles that share a passage are one."""
    articles = [
        {f"key {n} {p}": [question("What?", ("key", 0), id=f"{n}-{p}-{q}") for q in "ab"] for p in range(3)}
        for n in range(40)
    ]
    articles[1] |= {"key 0 0": [question("Which?", ("key", 0), id="shared")]}
    data = open_spans([written(tmp_path, squad(*articles))])
    assert "by article" in data.split
    groups = joined_articles([one for rows in data.parts.values() for one in rows])
    assert groups["key 0 0"] == groups["key 1 1"] != groups["key 2 1"]
    seen = [{groups[one.passage] for one in rows} for rows in data.parts.values()]
    assert not seen[0] & seen[1]
    assert not (seen[0] | seen[1]) & seen[2]
    assert sum(len(rows) for rows in data.parts.values()) == 40 * 6 + 1


def test_one_article_is_split_by_passage(tmp_path: Path) -> None:
    article = {f"key {p}": [question("What?", ("key", 0), id=f"{p}-{q}") for q in "ab"] for p in range(30)}
    data = open_spans([written(tmp_path, squad(article))], split="80/10/10")
    assert data.split == "split 80/10/10 by passage"
    passages = [{one.passage for one in rows} for rows in data.parts.values()]
    assert sum(map(len, passages)) == 30


def test_files_for_parts_and_several_files_to_train_on(tmp_path: Path) -> None:
    files = []
    for name in "abt":
        articles = [{f"key {name} {n}": [question("What?", ("key", 0), id=f"{name}{n}")]} for n in range(30)]
        files.append(written(tmp_path, squad(*articles), f"{name}.json"))
    data = open_spans(files[:2], test=files[2])
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 54, "valid": 6, "test": 30}
    with pytest.raises(ConfigError, match="drop one"):
        open_spans(files[:2], test=files[2], split="90/10")
    folder = tmp_path / "folder"
    folder.mkdir()
    for part, file in (("train", files[0]), ("dev", files[1])):
        (folder / f"{part}-v1.1.json").write_text(file.read_text())
    assert list(open_spans([folder]).parts) == ["train", "valid"]
    assert task_for(None, [str(folder)]) == "span"


def test_too_little_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 question with a passage; 3 are the fewest"):
        open_spans([written(tmp_path, squad({PASSAGE: [question("What?", ("key", 4))]}))])
    none = {f"p {n}": [question("What?", id=str(n), is_impossible=True)] for n in range(9)}
    with pytest.raises(DataError, match="there is nothing to learn"):
        open_spans([written(tmp_path, squad(none))])


def test_rooms_have_their_answers_where_they_say() -> None:
    rows = room_questions()
    assert len({one.id for one in rows}) == len(rows) == 3000
    for one in rows:
        thing = one.text.split()[-1].rstrip("?")
        assert bool(one.references) == (f"The {thing} is" in one.passage)
        for text, start in one.references:
            assert one.passage[start : start + len(text)] == text
            assert one.passage[:start].endswith(f"The {thing} is ")
    assert sum(not one.references for one in rows) == 1000
    assert task_for(None, ["rooms"]) == "span"


def test_data_is_checked_before_training(tmp_path: Path) -> None:
    found = check_spans(open_spans(["rooms"]))
    assert found.parts["train"].questions == 2700
    assert found.parts["train"].without_answer == 900
    assert found.parts["test"].known_passages == 0
    assert any("words of an answer 4" in line for line in found.sentences())
    articles = [{f"key {n} {'w ' * 400}": [question("What?", ("key", 0), id=f"{n}")]} for n in range(30)]
    small = check_spans(open_spans([written(tmp_path, squad(*articles))]))
    assert any("read in several windows" in warning for warning in small.warnings)
    assert any("--from RUN" in warning for warning in small.warnings)


@pytest.mark.parametrize("name", [name for name, row in PUBLIC.items() if row.holds == "spans"])
def test_public_sets_hold_what_their_titles_say(name: str, shared_data: Path) -> None:
    row = PUBLIC[name]
    found = [find_file(file) for file in row.files.values()]
    if None in found:
        pytest.skip(f"{name} is not on this machine")
    for file, path in zip(row.files.values(), found, strict=True):
        assert path is not None
        verify(file, path)
    data = open_spans([name])
    sizes = {part: len(rows) for part, rows in data.parts.items()}
    assert {
        "squad": sizes.get("test") == 10_570 and sizes["train"] + sizes["valid"] == 4_285,
        "squad-v2": sum(sizes.values()) == 11_873,
        "squad-small": sizes.get("test") == 10_570 and sizes["train"] + sizes["valid"] == 22_108,
        "squadshifts": sum(sizes.values()) == 17_823,
        "xquad": sum(sizes.values()) == 1_190,
    }[name]
    passages = [{one.passage for one in rows} for rows in data.parts.values()]
    assert not passages[0] & passages[1]
    assert not passages[0] & passages[2]
