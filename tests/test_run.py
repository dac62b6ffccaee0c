"""The run folder: whole or not there at all, whatever happens while it is written."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import schemas
import torch
from safetensors.torch import load_file

from seqwise.data.batch import Batch, Labels, Tokens, Values
from seqwise.data.schema import NEXT_TOKEN, Schema, text_schema
from seqwise.errors import CheckpointError, ConfigError, SeqwiseError
from seqwise.models.gpt import GPTConfig
from seqwise.models.recurrent import LSTMConfig
from seqwise.run import RUN_FORMAT, Checkpoint, Run, RunConfig, write_tensors
from seqwise.settings import DataConfig, TokenizerConfig, TrainingConfig
from seqwise.text import train_tokenizer

FULL = OSError(errno.ENOSPC, "No space left on device")


def small_config(**training: Any) -> RunConfig:
    return RunConfig(
        "lstm",
        DataConfig(source=["poems.txt"], description='a "quoted" text\nin two lines, with é and \x7f'),
        TokenizerConfig(kind="char"),
        LSTMConfig(model_dim=4),
        TrainingConfig(steps=3, **training),
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", small_config(), text_schema(train_tokenizer("char", ["abc\n"])))


def checkpoint_at(step: int) -> Checkpoint:
    generator = torch.Generator().manual_seed(step)
    tensors = [torch.randn(4, 3, generator=generator) for _ in range(2)]
    return Checkpoint({"w": tensors[0]}, {"m": tensors[1], "random.cpu": torch.get_rng_state()}, {"step": step})


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def same(found: Checkpoint | None, expected: Checkpoint) -> None:
    assert found is not None
    assert found.progress == expected.progress
    for ours, theirs in ((found.weights, expected.weights), (found.optimizer, expected.optimizer)):
        assert set(ours) == set(theirs)
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


# -- the folder ------------------------------------------------------------------------------------------------------


def test_a_run_is_read_back_as_it_was_written(run: Run) -> None:
    found = Run.open(run.path)
    assert found.config == run.config
    assert found.tokenizer.encode("cab\n").tolist() == run.tokenizer.encode("cab\n").tolist()


def test_every_kind_of_setting_survives_the_file(tmp_path: Path) -> None:
    config = RunConfig(
        "gpt",
        DataConfig(source=["a b.txt", 'c"\\d.txt'], valid="v.txt", split=None),
        TokenizerConfig(kind="bpe", vocab_size=300, min_count=2, lower_case=True),
        GPTConfig(context=8, model_dim=8, feed_forward_dim=20, positions="learned", dropout=0.1),
        TrainingConfig(minutes=0.5, learning_rate=1e-5, patience=3, seed=7, checkpoint_seconds=1e-9),
    )
    (tmp_path / "config.toml").write_text(config.to_toml(), encoding="utf-8")
    assert RunConfig.read(tmp_path / "config.toml") == config


def test_a_run_folder_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        assert not (tmp_path / "runs" / "new").exists()
        raise FULL

    monkeypatch.setattr(Schema, "save", full)
    with pytest.raises(CheckpointError, match="new: cannot write: No space left on device"):
        Run.create(tmp_path / "runs" / "new", small_config(), text_schema(train_tokenizer("char", ["abc\n"])))
    assert not list(tmp_path.rglob("*new*"))


def test_a_folder_that_cannot_be_written_to_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match=r"run: cannot write: Not a directory\."):
        Run.create(tmp_path / "file" / "run", small_config(), text_schema(train_tokenizer("char", ["abc\n"])))


def test_a_folder_in_use_is_left_alone(run: Run) -> None:
    before = content_of(run.path)
    with pytest.raises(ConfigError, match=r"run exists already\. Go on with --resume, or choose another --out\."):
        Run.create(run.path, small_config(seed=9), run.schema)
    assert content_of(run.path) == before


def test_settings_are_replaced_whole(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.save_config(run.with_training(steps=99))
    assert Run.open(run.path).config.training.steps == 99
    before = content_of(run.path)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(FULL))
    with pytest.raises(CheckpointError, match="No space left on device"):
        run.save_config(run.with_training(steps=100))
    assert content_of(run.path) == before


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (
            lambda t: t.replace(f"format = {RUN_FORMAT}", "format = 99"),
            "format 99 is not one this version of seqwise",
        ),
        (lambda t: t.replace(f"format = {RUN_FORMAT}\n", ""), "format None is not one this version"),
        (lambda t: "\x00\x01 nonsense", "not valid TOML"),
        (lambda t: "", "format None is not one this version"),
        (lambda t: t.replace('family = "lstm"', 'family = "lstm'), "not valid TOML"),
        (lambda t: t.replace('family = "lstm"', 'family = "lstn"'), 'unknown model "lstn". Did you mean "lstm"?'),
        (lambda t: t.replace('family = "lstm"\n', ""), "family"),
        (lambda t: t.replace('family = "lstm"', "family = 7"), "family"),
        (lambda t: t.replace("model_dim = 4", "model_dims = 4"), 'unknown setting "model.model_dims". Did you mean'),
        (lambda t: t.replace("model_dim = 4", 'model_dim = "four"'), "model.model_dim = 'four' should be a whole"),
        (lambda t: t.replace("model_dim = 4", "model_dim = -4"), "model.model_dim = -4 should be at least 1."),
        (lambda t: t.replace("[training]", "[trainings]"), "trainings"),
        (lambda t: "model = 3\n" + t.replace("[model]", "[other]"), "model"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_settings_edited_to_nonsense_are_told_with_the_name_of_the_file(
    run: Run, edit: Callable[[str], str], sentence: str
) -> None:
    path = run.path / "config.toml"
    path.write_text(edit(path.read_text()))
    with pytest.raises(SeqwiseError) as caught:
        Run.open(run.path)
    assert str(path) in str(caught.value)
    assert sentence in str(caught.value)


def test_settings_that_are_no_text_are_told(run: Run) -> None:
    (run.path / "config.toml").write_bytes(b"format = 1\n\xff\xfe")
    with pytest.raises(SeqwiseError, match=r"config\.toml: not UTF-8 text \(byte 11\)"):
        Run.open(run.path)


@pytest.mark.parametrize("name", ["schema.json", "tokens.json"])
@pytest.mark.parametrize(
    "content", [None, "", "{}", "[1, 2]", '{"kind": "char"}', '{"kind": "chars", "characters": []}']
)
def test_a_damaged_file_of_the_vocabulary_is_named(run: Run, name: str, content: str | None) -> None:
    path = run.path / "vocab" / name
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(CheckpointError) as caught:
        Run.open(run.path)
    assert str(path) in str(caught.value)


def test_a_schema_with_a_head_that_nobody_knows_is_told_as_damage(run: Run) -> None:
    path = run.path / "vocab" / "schema.json"
    path.write_text(path.read_text().replace(NEXT_TOKEN, "next_colour"))
    with pytest.raises(CheckpointError) as caught:
        Run.open(run.path)
    assert str(caught.value) == f"{path}: damaged: not what seqwise wrote. Restore it or train again."


def test_what_is_no_run_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nothing: no such run folder\. Train one with"):
        Run.open(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match=r"is not a run folder: it has no config\.toml"):
        Run.open(tmp_path)


@pytest.mark.parametrize(("family", "task"), [("seq2seq", "pairs"), ("kalman", "numbers")])
def test_what_was_not_trained_on_text_has_no_tokenizer_to_go_on_with(family: str, task: str) -> None:
    run = Run.open(Path(__file__).parent / "fixtures" / "format-2" / family)
    with pytest.raises(ConfigError, match=f"{family} was trained on {task}, not on text: it does not go on from a"):
        _ = run.tokenizer


# -- the model -------------------------------------------------------------------------------------------------------


def test_a_model_is_loaded_as_it_was_saved_and_ready_to_use(run: Run) -> None:
    model = run.build_model()
    run.save_model(model)
    loaded = Run.open(run.path).load_model()
    assert not loaded.training
    assert all(torch.equal(t, loaded.state_dict()[n]) for n, t in model.state_dict().items())


def test_a_run_without_a_model_says_what_to_do(run: Run) -> None:
    with pytest.raises(
        CheckpointError, match=r"no trained model yet \(model\.safetensors is missing\)\. Go on with --re"
    ):
        run.load_model()


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_model_cut_short_is_named(run: Run, keep: int) -> None:
    run.save_model(run.build_model())
    path = run.path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError) as caught:
        Run.open(run.path).load_model()
    assert str(caught.value).startswith(f"{path}: damaged or cut short")
    assert "--resume, or train again" in str(caught.value)


def test_a_model_of_other_sizes_is_named(run: Run) -> None:
    run.save_model(replace_model_dim(run, 6).build_model())
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors: the weights do not fit the settings in config\.toml"
    ):
        run.load_model()


def test_a_weight_of_another_size_is_named(run: Run) -> None:
    weights = {name: tensor.clone() for name, tensor in run.build_model().state_dict().items()}
    weights["head.tokens.output.bias"] = torch.zeros(99)
    write_tensors(run.path / "model.safetensors", weights)
    with pytest.raises(CheckpointError, match=r"do not fit the settings in config\.toml \(.*head\.tokens\.output\.b"):
        run.load_model()


def test_a_run_that_starts_from_the_weights_of_another_has_them_and_says_so(run: Run, tmp_path: Path) -> None:
    weights = changed(run.build_model(), 1.0).state_dict()
    tuned = Run.create(tmp_path / "tuned", small_config(), run.schema, initial_weights=weights)
    model = Run.open(tuned.path).build_model()
    assert tuned.load_initial_weights(model)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert not run.load_initial_weights(model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("are_tokens", [True, False])
def test_a_run_on_labels_builds_a_model_that_reads_what_sequences_are_made_of(tmp_path: Path, are_tokens: bool) -> None:
    """Three tokens, or three columns; two answers."""
    schema = schemas.of_answers(2, **{"vocab_size" if are_tokens else "num_columns": 3})
    run = Run.create(tmp_path / "run", replace(small_config(), task="label"), schema)
    inputs = Tokens(torch.tensor([[0, 2, 1, 2]])) if are_tokens else Values(torch.randn(1, 4, 3))
    batch = Batch({"tokens" if are_tokens else "values": inputs}, {"label": Labels(torch.tensor([1]))})
    model = Run.open(run.path).build_model()
    assert model.predict(batch).log_probs.shape == (1, 2)


def replace_model_dim(run: Run, model_dim: int) -> Run:
    return Run(run.path, replace(run.config, model=replace(run.config.model, model_dim=model_dim)), run.schema)


def test_tied_weights_are_saved_and_loaded(tmp_path: Path) -> None:
    config = replace(small_config(), model=LSTMConfig(model_dim=4, tied_embeddings=True))
    run = Run.create(tmp_path / "run", config, text_schema(train_tokenizer("char", ["abc\n"])))
    model = run.build_model()
    run.save_model(model)
    loaded = run.load_model()
    assert loaded.head.tokens.output.weight is loaded.body.embedding.weight
    assert torch.equal(loaded.head.tokens.output.weight, model.head.tokens.output.weight)


# -- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_loaded_as_it_was_saved(run: Run) -> None:
    assert run.latest_checkpoint() == (None, [])
    run.save_checkpoint(checkpoint_at(7))
    found, notes = Run.open(run.path).latest_checkpoint()
    same(found, checkpoint_at(7))
    assert notes == []


def test_the_last_two_checkpoints_are_kept(run: Run) -> None:
    for step in (1, 2, 9, 10, 11):
        run.save_checkpoint(checkpoint_at(step))
    assert sorted(p.name for p in (run.path / "checkpoints").iterdir()) == ["10", "11"]
    same(run.latest_checkpoint()[0], checkpoint_at(11))


def test_a_step_saved_again_replaces_what_was_there(run: Run) -> None:
    run.save_checkpoint(checkpoint_at(1))
    run.save_checkpoint(replace(checkpoint_at(1), progress={"step": 1, "seconds": 5}))
    found, _ = run.latest_checkpoint()
    assert found is not None
    assert found.progress["seconds"] == 5


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def edit_manifest(change: Callable[[dict[str, str]], Any]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps(change(manifest)))

    return edit


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "no manifest": lambda f: (f / "manifest.json").unlink(),
    "an empty manifest": lambda f: (f / "manifest.json").write_text(""),
    "a manifest cut short": lambda f: cut_short(f / "manifest.json"),
    "a manifest that is no text": lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe"),
    "a manifest that is a list": edit_manifest(lambda m: list(m)),
    "a manifest of nothing": edit_manifest(lambda m: {}),
    "a manifest that leaves out a file": edit_manifest(lambda m: {k: v for k, v in m.items() if "weights" not in k}),
    "a manifest with another sum": edit_manifest(lambda m: {**m, "weights.safetensors": "0" * 64}),
    "a manifest that names more": edit_manifest(lambda m: {**m, "gone.safetensors": "0" * 64}),
    "weights cut short": lambda f: cut_short(f / "weights.safetensors"),
    "no weights": lambda f: (f / "weights.safetensors").unlink(),
    "weights with an edited byte": lambda f: flip_a_byte(f / "weights.safetensors"),
    "an optimiser with an edited byte": lambda f: flip_a_byte(f / "optimizer.safetensors"),
    "progress with an edited byte": lambda f: flip_a_byte(f / "progress.json"),
    "an empty folder": lambda f: [p.unlink() for p in f.iterdir()],
    "a file instead of a folder": lambda f: (shutil.rmtree(f), f.write_text("")),
}


@pytest.mark.parametrize("what", list(DAMAGE))
def test_a_damaged_checkpoint_is_passed_over_with_a_note_and_the_one_before_is_used(run: Run, what: str) -> None:
    for step in (4, 8):
        run.save_checkpoint(checkpoint_at(step))
    folder = run.path / "checkpoints" / "8"
    DAMAGE[what](folder)
    found, notes = Run.open(run.path).latest_checkpoint()
    same(found, checkpoint_at(4))
    assert len(notes) == 1
    assert str(folder) in notes[0]
    assert "damaged" in notes[0]
    assert notes[0].endswith("Passed over.")


def test_where_all_checkpoints_are_damaged_each_is_named(run: Run) -> None:
    for step in (4, 8):
        run.save_checkpoint(checkpoint_at(step))
        cut_short(run.path / "checkpoints" / str(step) / "weights.safetensors")
    found, notes = run.latest_checkpoint()
    assert found is None
    assert ["/8/" in notes[0], "/4/" in notes[1]] == [True, True]


def test_a_checkpoint_that_was_being_written_does_not_exist(run: Run) -> None:
    run.save_checkpoint(checkpoint_at(4))
    shutil.copytree(run.path / "checkpoints" / "4", run.path / "checkpoints" / ".8")
    found, notes = run.latest_checkpoint()
    same(found, checkpoint_at(4))
    assert notes == []
    run.save_checkpoint(checkpoint_at(8))  # and does not stand in the way
    same(run.latest_checkpoint()[0], checkpoint_at(8))
    assert not list((run.path / "checkpoints").glob(".*"))


def test_what_a_kill_left_unfinished_is_cleared_away_by_the_next_checkpoint(run: Run) -> None:
    run.save_checkpoint(checkpoint_at(4))
    shutil.copytree(run.path / "checkpoints" / "4", run.path / "checkpoints" / ".6")
    run.save_checkpoint(checkpoint_at(8))  # the clock fell elsewhere this time: step 6 is not saved again
    assert sorted(p.name for p in (run.path / "checkpoints").iterdir()) == ["4", "8"]


@pytest.mark.parametrize("name", [".DS_Store", "1"])
def test_a_file_that_does_not_belong_there_stands_in_no_checkpoints_way(run: Run, name: str) -> None:
    (run.path / "checkpoints").mkdir()
    (run.path / "checkpoints" / name).write_text("not ours")
    for step in (4, 8, 12):
        run.save_checkpoint(checkpoint_at(step))
        same(run.latest_checkpoint()[0], checkpoint_at(step))


def test_a_damaged_checkpoint_pushes_no_whole_one_out(run: Run) -> None:
    """After a resume from 4, with 8 damaged: two whole ones are still kept."""
    for step in (4, 8):
        run.save_checkpoint(checkpoint_at(step))
    cut_short(run.path / "checkpoints" / "8" / "weights.safetensors")
    run.save_checkpoint(checkpoint_at(6))
    run.save_checkpoint(checkpoint_at(7))
    cut_short(run.path / "checkpoints" / "7" / "weights.safetensors")
    same(run.latest_checkpoint()[0], checkpoint_at(6))


# -- a full disk -----------------------------------------------------------------------------------------------------


@pytest.fixture
def full_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Tells the disk to be full at the n-th file from now: what was written of it stays, cut short."""

    def set_full(number: int) -> None:
        calls = 0

        def fsync(file: int) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", fsync)

    return set_full


@pytest.mark.parametrize("number", [1, 2, 3, 4], ids=["weights", "optimizer", "progress", "manifest"])
def test_a_full_disk_leaves_the_old_checkpoint_and_the_model_whole(
    run: Run, full_at: Callable[[int], None], number: int
) -> None:
    run.save_model(run.build_model())
    for step in (4, 8):
        run.save_checkpoint(checkpoint_at(step))
    before = content_of(run.path)
    full_at(number)
    with pytest.raises(CheckpointError) as caught:
        run.save_checkpoint(checkpoint_at(12))
    assert "No space left on device" in str(caught.value)
    assert "What was saved before is whole; free some space and go on with --resume." in str(caught.value)
    assert str(run.path) in str(caught.value)
    assert content_of(run.path) == before
    same(run.latest_checkpoint()[0], checkpoint_at(8))


def test_a_full_disk_leaves_the_old_model_whole(run: Run, full_at: Callable[[int], None]) -> None:
    model = run.build_model()
    run.save_model(model)
    before = content_of(run.path)
    full_at(1)
    with pytest.raises(CheckpointError, match="What was saved before is whole"):
        run.save_model(model)
    assert content_of(run.path) == before


def test_a_full_disk_under_the_log_is_told_in_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.append_log({"step": 1})
    before = content_of(run.path)
    monkeypatch.setattr(Path, "open", lambda *_, **__: (_ for _ in ()).throw(FULL))
    with pytest.raises(CheckpointError, match="No space left on device"):
        run.append_log({"step": 2})
    monkeypatch.undo()
    assert content_of(run.path) == before


# -- the log ---------------------------------------------------------------------------------------------------------


def test_the_log_is_one_object_per_line_and_can_be_cut_back(run: Run) -> None:
    run.append_log({"step": 1, "sample": "two\nlines, é"})
    length = run.log_length()
    run.append_log({"step": 2})
    assert [line["step"] for line in run.read_log()] == [1, 2]
    run.cut_log(length)
    assert list(run.read_log()) == [{"step": 1, "sample": "two\nlines, é"}]
    assert (run.path / "log.jsonl").read_text(encoding="utf-8").count("\n") == 1
    run.cut_log(0)
    assert list(run.read_log()) == []


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (lambda log: log[:-1], [1, 2]),  # cut in the middle of the last line
        (lambda log: log[: log.index(b'{"step": 3')], [1, 2]),
        (lambda log: log[: log.index(b'{"step": 3')] + bytes(40), [1, 2]),  # what some disks leave
        (lambda log: log.replace(b'"step": 2', bytes(9)), [1]),
        (lambda log: b"", []),
    ],
)
def test_a_log_that_is_shorter_than_its_checkpoint_ends_at_its_last_whole_line(
    run: Run, damage: Callable[[bytes], bytes], left: list[int]
) -> None:
    for step in (1, 2, 3):
        run.append_log({"step": step})
    length, path = run.log_length(), run.path / "log.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    assert not run.cut_log(length)
    assert [line["step"] for line in run.read_log()] == left
    run.append_log({"step": 4})
    assert [line["step"] for line in run.read_log()] == [*left, 4]
    assert run.cut_log(run.log_length())


def test_a_line_of_the_log_that_cannot_be_read_is_named(run: Run) -> None:
    run.append_log({"step": 1})
    with (run.path / "log.jsonl").open("ab") as log:
        log.write(bytes(20) + b"\n")
    with pytest.raises(CheckpointError, match=r"log\.jsonl: damaged: line 2 is no report\. Go on with --resume"):
        list(run.read_log())


# -- the checksum of the weights -------------------------------------------------------------------------------------


def changed(model: Any, by: float) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += by
    return model


def test_weights_that_were_edited_are_refused_and_told(run: Run) -> None:
    run.save_model(run.build_model())
    path = run.path / "model.safetensors"
    weights = load_file(path)
    write_tensors(path, {name: tensor + 0.001 for name, tensor in weights.items()})
    with pytest.raises(CheckpointError) as caught:
        Run.open(run.path).load_model()
    assert str(caught.value).startswith(f"{path}: damaged: its content is not what training wrote.")
    assert f"if you changed it yourself, remove {run.path / 'model.sha256'}." in str(caught.value)
    (run.path / "model.sha256").unlink()
    Run.open(run.path).load_model()


def test_weights_that_hold_no_numbers_are_refused_in_runs_without_a_checksum(run: Run) -> None:
    model = run.build_model()
    with torch.no_grad():
        next(model.parameters()).view(-1)[3] = torch.nan
    write_tensors(run.path / "model.safetensors", model.state_dict())
    with pytest.raises(CheckpointError, match=r"model\.safetensors: damaged: .* holds what is not a number"):
        Run.open(run.path).load_model()


def test_the_checksum_is_as_sha256sum_writes_it(run: Run) -> None:
    run.save_model(run.build_model())
    run.save_model(changed(run.build_model(), 1.0))
    expected = hashlib.sha256((run.path / "model.safetensors").read_bytes()).hexdigest()
    assert (run.path / "model.sha256").read_text() == f"{expected}  model.safetensors\n"


@pytest.mark.parametrize("has_checksum", [True, False])
@pytest.mark.parametrize("killed_at", range(3))
def test_a_kill_between_weights_and_checksum_leaves_a_run_that_opens(
    run: Run, monkeypatch: pytest.MonkeyPatch, killed_at: int, has_checksum: bool
) -> None:
    """Three files are moved into place; a kill before any of them leaves the old weights or the new, and both open."""
    torch.manual_seed(0)
    old = run.build_model()
    run.save_model(old)
    if not has_checksum:
        (run.path / "model.sha256").unlink()
    new, moves, replace_file = changed(run.build_model(), 1.0), iter(range(9)), Path.replace

    def replace_or_die(self: Path, target: Path) -> Path:
        if next(moves) == killed_at:
            raise KeyboardInterrupt
        return replace_file(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace_or_die)
        with pytest.raises(KeyboardInterrupt):
            run.save_model(new)
    found = Run.open(run.path).load_model().state_dict()
    expected = (old if killed_at < 2 else new).state_dict()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    Run.open(run.path).save_model(new)  # and goes on from there
    Run.open(run.path).load_model()
    assert len((run.path / "model.sha256").read_text().splitlines()) == 1


# -- a folder that is there already ----------------------------------------------------------------------------------


def test_an_empty_folder_is_filled_even_where_one_stands_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    made = Run.create(Path("."), small_config(), text_schema(train_tokenizer("char", ["abc\n"])))
    made.append_log({"step": 1})
    assert {path.name for path in here.iterdir()} == {"config.toml", "vocab", "log.jsonl"}
    assert Run.open(here).config == small_config()
    with pytest.raises(ConfigError, match="exists already"):
        Run.create(Path("."), small_config(), text_schema(train_tokenizer("char", ["abc\n"])))


def test_a_kill_while_an_empty_folder_is_filled_leaves_no_run_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """config.toml comes last: what has none is no run."""
    here, rename, moved = tmp_path / "here", Path.rename, list[str]()
    here.mkdir()

    def rename_or_die(self: Path, target: Path) -> Path:
        moved.append(self.name)
        if len(moved) == 3:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_or_die)
    with pytest.raises(KeyboardInterrupt):
        Run.create(here, small_config(), text_schema(train_tokenizer("char", ["abc\n"])))
    assert set(moved) == {"config.toml", "vocab", "log.jsonl"}
    with pytest.raises(CheckpointError, match=r"it has no config\.toml"):
        Run.open(here)
