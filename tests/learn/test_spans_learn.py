"""Where things are in made-up rooms is learned in seconds, and that the passage does not say too."""

from __future__ import annotations

from pathlib import Path

import seqwise

SMALL = ["model.model_dim=64", "model.embed_dim=32", "model.dropout=0", "training.learning_rate=0.02"]


def test_a_recurrent_network_learns_to_answer_from_passages(tmp_path: Path) -> None:
    told: list[str] = []
    run = seqwise.train("rooms", "gru", out=tmp_path / "run", steps=250, overrides=SMALL, tell=told.append)
    score = run.evaluate()
    assert score.exact_match > 0.9
    assert score.of_those(answerable=False)[0] > 0.9
    assert score.of_those(answerable=True)[0] > 0.9
    assert len(score.answers) == 150
    passage = "Room 7.\nThe lamp is on the red shelf.\nThe key is under the old bed."
    found = run.answer("Where is the key?", passage, num=2)
    assert found[0].text == "under the old bed"
    assert passage[found[0].start : found[0].end] == found[0].text
    assert found[0].probability > 0.5 > found[1].probability
    assert run.answer("Where is the cup?", passage)[0].is_none
