"""From a text file to a run folder: what is written, what is chosen, and what is refused before anything is written."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from runs_by_hand import log_without_clock, prepare
from safetensors.torch import load_file

from seqwise.data.batches import Streams, Windows
from seqwise.data.schema import NEXT_TOKEN
from seqwise.errors import CheckpointError, ConfigError, DataError, SeqwiseError
from seqwise.goals.goal import Facts
from seqwise.models import MODELS
from seqwise.run import Run, RunConfig
from seqwise.settings import TrainingConfig
from seqwise.training.preparing import resume
from seqwise.training.report import CLOCK_FIELDS, Report
from seqwise.training.session import Session
from seqwise.training.sizing import fitting_heads, suggest

TEXT = "the cat sat on the mat.\nthe dog sat on the log.\na cat and a dog sat.\n" * 20
TINY: dict[str, list[str]] = {
    "ngram": ["model.order=3"],
    "hmm": ["model.num_states=3", "training.restarts=1"],
    "conv": ["model.model_dim=8", "model.num_layers=2", "training.context=16", "training.batch_size=4"],
    "lstm": ["model.model_dim=8", "model.dropout=0.2", "training.context=16", "training.batch_size=4"],
    "gpt": ["model.model_dim=8", "model.num_heads=2", "model.num_layers=1", "model.context=16", "model.dropout=0.2"],
}
SMALL = ["training.sample_tokens=5", "training.threads=1"]
each_family = pytest.mark.parametrize("name", list(TINY))
each_text_family = pytest.mark.parametrize("name", [name for name, row in MODELS.items() if NEXT_TOKEN in row.learns])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "cats.txt"
    path.write_text(TEXT)
    return path


def prepare_tiny(text: Path, name: str, out: Path, *overrides: str, **options: Any) -> Session:
    budget = {} if {"minutes", "epochs", "steps"} & set(options) else {"steps": 8}
    return prepare(text, model=name, out=out, overrides=[*SMALL, *TINY[name], *overrides], **budget, **options)


def train_tiny(text: Path, name: str, out: Path, *overrides: str, **options: Any) -> tuple[Session, list[Report]]:
    session, reports = prepare_tiny(text, name, out, *overrides, **options), list[Report]()
    session.train(reports.append)
    return session, reports


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@each_family
def test_a_run_folder_holds_all_that_is_needed(text: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "runs" / "cats"
    session, reports = train_tiny(text, name, out, "training.checkpoint_seconds=0", "training.report_every=1")
    assert {p.name for p in out.iterdir()} >= {"config.toml", "vocab", "model.safetensors", "log.jsonl", "card.md"}
    assert sorted(p.name for p in (out / "vocab").iterdir()) == ["schema.json", "tokens.json"]
    assert not [p for p in out.rglob(".*")]  # nothing unfinished
    assert RunConfig.read(out / "config.toml") == session.run.config
    assert Run.open(out).tokenizer.to_dict() == session.run.tokenizer.to_dict()
    assert log_without_clock(out) == [{n: v for n, v in r.to_dict().items() if n not in CLOCK_FIELDS} for r in reports]
    if name != "ngram":
        assert sorted(int(p.name) for p in (out / "checkpoints").iterdir()) == [7, 8]
    model = Run.open(out).load_model()
    assert session.score is not None
    assert session.score.tokens == session.stores["valid"].num_tokens
    card = (out / "card.md").read_text()
    assert session.score.signature in card
    assert session.data.fingerprint in card
    assert f"{session.score.bits_per_char:.4f}" in card
    assert set(model.state_dict()) == set(load_file(out / "model.safetensors"))


def test_the_log_shows_the_model_learn_to_write(text: Path, tmp_path: Path) -> None:
    train_tiny(text, "gpt", tmp_path / "run", steps=64)
    samples = {line["step"]: line["sample"] for line in log_without_clock(tmp_path / "run") if "sample" in line}
    assert sorted(samples) == [1, 4, 16, 64]
    assert all(isinstance(sample, str) for sample in samples.values())


def test_the_saved_settings_hold_every_default_with_its_sentence(text: Path, tmp_path: Path) -> None:
    train_tiny(text, "lstm", tmp_path / "run")
    saved = (tmp_path / "run" / "config.toml").read_text()
    values = tomllib.loads(saved)
    assert values["model"]["forget_bias"] == 1.0
    assert values["training"]["clip_norm"] == 1.0
    assert values["tokenizer"]["kind"] == "char"
    assert values["data"]["source"] == [str(text)]
    assert len(values["data"]["fingerprint"]) == 64
    assert "# patience is not set" in saved
    assert "# Share of values dropped in training, from embeddings, between layers and before the output." in saved


def test_the_kept_model_is_the_one_that_validated_best(text: Path, tmp_path: Path) -> None:
    """With a rate that ruins the model after a while, the best is not the last."""
    session, reports = train_tiny(
        text, "gpt", tmp_path / "run", "training.evaluate_every=1", "training.learning_rate=1.0",
        "training.schedule=constant", "training.warmup_steps=0", "training.optimizer=sgd", "training.clip_norm=0",
        steps=12,
    )  # fmt: skip
    best = min(r.valid for r in reports if r.valid is not None)
    assert session.score is not None
    assert session.score.nats_per_token == pytest.approx(best, abs=1e-5)
    assert [r.valid for r in reports if r.is_best][-1] == best


@pytest.mark.parametrize("name", ["ngram", "gpt"])
def test_a_validation_of_fewer_tokens_than_the_score_at_the_end_is_told(text: Path, tmp_path: Path, name: str) -> None:
    """Else its reader wonders why two numbers of one model on one part differ."""
    told: dict[str, list[str]] = {"some": [], "all": []}
    for out, overrides in (("some", ["training.valid_tokens=20"]), ("all", [])):
        session = prepare_tiny(text, name, tmp_path / out, *overrides)
        session.train(tell=told[out].append)
    whole = session.stores["valid"].num_tokens
    assert told["some"][-1] == (
        f"validation while training read the first 20 tokens of valid, the score at the end reads all {whole:,}: "
        "the two may differ"
    )
    assert not [sentence for sentence in told["all"] if "may differ" in sentence]


def test_minutes_become_steps_and_are_saved(text: Path, tmp_path: Path) -> None:
    told: list[str] = []
    session = prepare_tiny(text, "gpt", tmp_path / "run", minutes=0.005)
    assert session.run.config.training.steps == 0
    reports = list(session.reports(tell=told.append))
    saved = RunConfig.read(tmp_path / "run" / "config.toml").training
    assert saved.minutes == 0.005
    assert saved.steps == reports[-1].step >= 10
    assert any(f"{saved.steps:,} steps" in sentence for sentence in told)
    assert resume(tmp_path / "run").run.config.training.steps == saved.steps


@pytest.mark.parametrize("name", ["lstm", "gpt"])
@pytest.mark.parametrize("epochs", [0.5, 2.0])
def test_epochs_become_steps(text: Path, tmp_path: Path, name: str, epochs: float) -> None:
    session, reports = train_tiny(text, name, tmp_path / "run", epochs=epochs)
    training = session.run.config.training
    source = Streams if name == "lstm" else Windows
    per_epoch = source(session.stores["train"], context=training.context, batch_size=training.batch_size)
    assert training.steps == reports[-1].step == max(1, round(epochs * per_epoch.steps_per_epoch))


def test_an_epoch_reads_about_the_whole_text(text: Path, tmp_path: Path) -> None:
    session, reports = train_tiny(text, "gpt", tmp_path / "run", epochs=1.0)
    assert 0.8 * session.stores["train"].num_tokens < reports[-1].tokens <= session.stores["train"].num_tokens


def test_what_is_set_by_hand_wins_over_what_is_suggested(text: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[model]\nnum_layers = 3\nmodel_dim = 16\n[training]\noptimizer = "sgd"\nlearning_rate = 0.125\n')
    session = prepare(
        text, model="gpt", out=tmp_path / "run", steps=2, seed=5, config_file=file,
        overrides=["model.model_dim=8", "model.num_heads=2", "training.learning_rate=0.25"],
    )  # fmt: skip
    config = session.run.config
    assert (config.model.num_layers, config.model.model_dim, config.model.num_heads) == (3, 8, 2)
    assert (config.training.optimizer, config.training.learning_rate) == ("sgd", 0.25)  # --set before the file
    assert (config.training.steps, config.training.seed) == (2, 5)


def test_a_context_set_for_the_model_is_the_context_of_training(text: Path, tmp_path: Path) -> None:
    assert prepare_tiny(text, "gpt", tmp_path / "run").run.config.training.context == 16


def test_options_of_the_command_win_over_the_file_of_settings(text: Path, tmp_path: Path) -> None:
    """A run's own config.toml is a file of settings: it repeats the run, with what is asked to be different."""
    first = prepare_tiny(text, "lstm", tmp_path / "first", steps=8).run
    other_text = tmp_path / "dogs.txt"
    other_text.write_text(TEXT.replace("cat", "dog"))
    run = prepare(
        other_text, model="lstm", out=tmp_path / "second", steps=3, seed=9, config_file=first.path / "config.toml"
    ).run
    assert run.config.model == first.config.model
    assert (run.config.training.steps, run.config.training.seed) == (3, 9)
    assert run.config.data.source == [str(other_text)]
    list(resume(tmp_path / "second").reports())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": "gtp"}, 'unknown model "gtp". Did you mean "gpt"?'),
        ({"overrides": ["model.n_heads=2"]}, 'unknown setting "model.n_heads". Did you mean "model.num_heads"?'),
        ({"overrides": ["model.num_head=2"]}, 'unknown setting "model.num_head". Did you mean "model.num_heads"?'),
        ({"overrides": ["training.batchsize=2"]}, 'unknown setting "training.batchsize". Did you mean "training.batch'),
        ({"overrides": ["tokenizer.kin=char"]}, 'unknown setting "tokenizer.kin". Did you mean "tokenizer.kind"?'),
        ({"overrides": ["modle.num_heads=2"]}, 'unknown section "modle". Did you mean "model"?'),
        ({"overrides": ["num_heads=2"]}, '--set "num_heads=2" should look like --set model.num_layers=2.'),
        ({"overrides": ["model.num_heads"]}, '--set "model.num_heads" should look like'),
        ({"overrides": ["model.num_heads=two"]}, "model.num_heads = 'two' should be a whole number."),
        ({"overrides": ["model.num_heads=true"]}, "model.num_heads = True should be a whole number."),
        ({"overrides": ["model.model_dim=16", "model.num_heads=3"]}, "num_heads=3 does not divide model_dim=16"),
        ({"overrides": ["model.dropout=1.5"]}, "model.dropout = 1.5 should lie in [0, 1)."),
        ({"overrides": ["model.positions=none"]}, 'model.positions = "none" is not one of rotary, learned, sinusoidal'),
        ({"overrides": ["model.vocab_size=5"]}, "model.vocab_size"),
        ({"overrides": ["training.optimizer=adagrad"]}, 'training.optimizer = "adagrad" is not one of adamw'),
        ({"overrides": ["training.learning_rate=0"]}, "training.learning_rate = 0.0 should be above 0."),
        ({"overrides": ["training.learning_rate=nan"]}, "training.learning_rate"),
        ({"overrides": ["training.batch_size=0"]}, "training.batch_size = 0 should be at least 1."),
        ({"overrides": ["training.context=500"]}, "training.context = 500 is longer than model.context"),
        ({"overrides": ["training.sample_tokens=0"]}, "sample_tokens"),
        ({"overrides": ["training.clip_norm=-1"]}, "training.clip_norm"),
        ({"overrides": ["training.weight_decay=-1"]}, "training.weight_decay"),
        ({"overrides": ["training.stride=-2"]}, "training.stride"),
        ({"overrides": ["training.threads=-1"]}, "training.threads"),
        ({"overrides": ["training.device=toaster"]}, "device toaster cannot be used here"),
        ({"seed": -1}, "training.seed = -1"),
        ({"steps": -1}, "training.steps = -1 should not be negative."),
        ({"steps": 0}, "steps"),
        ({"steps": None, "minutes": 0.0}, "training.minutes = 0.0 should be above 0."),
        ({"steps": None, "epochs": -1.0}, "training.epochs = -1.0 should be above 0."),
        ({"steps": 2, "minutes": 1.0}, "give one budget: --minutes, --steps or --epochs."),
        (
            {"tokenizer": "chars"},
            'tokenizer.kind = "chars" is not one of auto, char, word, bpe, wordpiece, sentencepiece, pieces, marian.',
        ),
        ({"overrides": ["tokenizer.vocab_size=1"]}, "tokenizer.vocab_size = 1 should be at least 2."),
        ({"split": "50/50/50"}, '--split-at "50/50/50" should be two or three shares that add up to 100'),
        ({"valid": "nowhere.txt"}, "nowhere.txt: no such file or folder."),
        ({"config_file": Path("nowhere.toml")}, "nowhere.toml: cannot be read: No such file or directory."),
        ({"start_from": Path("nowhere")}, "nowhere: no such run folder."),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_mistake_is_told_in_a_sentence_and_nothing_is_written(
    text: Path, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    out = tmp_path / "runs" / "x"
    arguments: dict[str, Any] = {"model": "gpt", "steps": 2, **options}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    with pytest.raises(SeqwiseError) as caught:
        next(iter(prepare(text, out=out, **arguments).reports()))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not out.parent.exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[modell]\nnum_layers = 2\n", 'unknown section "modell". Did you mean "model"?'),
        ("[model]\nlayers = 2\n", 'unknown setting "model.layers". Did you mean "model.num_layers"?'),
        ("[model\n", "not valid TOML"),
        ("[model]\nnum_layers = 2.5\n", "model.num_layers = 2.5 should be a whole number."),
        ("model = 3\n", "model"),
        ("num_layers = 3\n", "num_layers"),
    ],
)
def test_a_mistake_in_a_file_of_settings_names_the_file(
    text: Path, tmp_path: Path, content: str, sentence: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        prepare(text, model="gpt", out=tmp_path / "run", steps=2, config_file=file)
    assert str(caught.value).startswith(str(file))
    assert sentence in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_exists_is_not_overwritten(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    prepare_tiny(text, "lstm", out)
    before = content_of(out)
    with pytest.raises(ConfigError, match=r"run exists already\. Go on with --resume, or choose another --out\."):
        prepare_tiny(text, "lstm", out)
    assert content_of(out) == before


def test_an_empty_folder_and_only_that_is_taken(text: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    prepare_tiny(text, "lstm", tmp_path / "run")
    assert (tmp_path / "run" / "config.toml").exists()
    with pytest.raises(ConfigError, match="exists already"):
        prepare_tiny(text, "lstm", text)  # a file


def test_a_split_that_leaves_nothing_to_validate_on_is_told(tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("abcdefghij" * 2)
    with pytest.raises(DataError, match=r"short\.txt: too little text: 20 characters in all leave 1 to valid"):
        prepare(short, model="gpt", out=tmp_path / "run", steps=1)
    assert not (tmp_path / "run").exists()


# -- resuming --------------------------------------------------------------------------------------------------------


def stop_after(number: int) -> tuple[Callable[[], bool], Callable[[Report], None]]:
    """wants_stop that turns true once so many reports have been seen, and what to tell each report to."""
    seen: list[Report] = []
    return lambda: len(seen) >= number, seen.append


@pytest.mark.parametrize("name", ["lstm", "gpt"])
def test_a_session_that_is_stopped_and_resumed_ends_as_the_one_never_stopped(
    text: Path, tmp_path: Path, name: str
) -> None:
    settings = ["training.report_every=1", "training.evaluate_every=2"]
    train_tiny(text, name, tmp_path / "whole", *settings)
    session = prepare_tiny(text, name, tmp_path / "stopped", *settings)
    for number in (2, 3):
        wants_stop, see = stop_after(number)
        assert session.train(see, wants_stop=wants_stop) is None
        assert session.is_interrupted
        assert session.score is None
        assert not (tmp_path / "stopped" / "card.md").exists()
        torch.manual_seed(123)
        session = resume(tmp_path / "stopped")
    session.train()
    assert not session.is_interrupted
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert log_without_clock(stopped) == log_without_clock(whole)
    assert (stopped / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    last = "checkpoints/8/weights.safetensors"
    assert (stopped / last).read_bytes() == (whole / last).read_bytes()
    assert (stopped / "card.md").read_text() == (whole / "card.md").read_text().replace("# whole", "# stopped").replace(
        "generate whole", "generate stopped"
    ).replace("evaluate whole", "evaluate stopped")


@each_family
def test_resuming_a_finished_run_changes_nothing_but_its_card(text: Path, tmp_path: Path, name: str) -> None:
    train_tiny(text, name, tmp_path / "run")
    before = content_of(tmp_path / "run")
    again = resume(tmp_path / "run")
    again.train()
    after = content_of(tmp_path / "run")
    assert again.score is not None
    if name == "ngram":  # counted anew, to the same numbers
        before, after = ({n: c for n, c in side.items() if n != "log.jsonl"} for side in (before, after))
    assert after == before


@pytest.mark.parametrize("num_reports", [0, 3])
def test_a_run_stopped_before_the_first_checkpoint_is_due_ends_as_the_one_never_stopped(
    text: Path, tmp_path: Path, num_reports: int
) -> None:
    train_tiny(text, "lstm", tmp_path / "whole", "training.report_every=1")
    killed = iter(prepare_tiny(text, "lstm", tmp_path / "killed", "training.report_every=1").reports())
    for _ in range(num_reports):
        next(killed)
    del killed
    list(resume(tmp_path / "killed").reports())
    assert log_without_clock(tmp_path / "killed") == log_without_clock(tmp_path / "whole")
    one, other = (tmp_path / run / "model.safetensors" for run in ("killed", "whole"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"training.seed": 5}, "was trained with training.seed = 0, not 5. Resume without it, or train a new run"),
        ({"model.model_dim": 16}, "was trained with model.model_dim = 8, not 16."),
        ({"model": "gpt"}, "was trained with model = lstm, not gpt."),
        ({"tokenizer.kind": "bpe"}, "was trained with tokenizer.kind = char, not bpe."),
        ({"training.steps": 9}, "was trained with training.steps = 8, not 9."),
        ({"data.source": ["other.txt"]}, "was trained with data.source = "),
        ({"model.model_dims": 8}, 'Did you mean "model.model_dim"?'),
        ({"tokenizer.min_count": 7}, "tokenizer.min_count"),
    ],
)
def test_resuming_with_other_settings_names_the_one_that_differs(
    text: Path, tmp_path: Path, asked: dict[str, Any], sentence: str
) -> None:
    prepare_tiny(text, "lstm", tmp_path / "run")
    before = content_of(tmp_path / "run")
    with pytest.raises(ConfigError) as caught:
        resume(tmp_path / "run", asked=asked)
    assert sentence in str(caught.value)
    assert content_of(tmp_path / "run") == before


def test_resuming_with_the_settings_of_the_run_goes_on(text: Path, tmp_path: Path) -> None:
    prepare_tiny(text, "lstm", tmp_path / "run")
    resume(
        tmp_path / "run", asked={"training.seed": 0, "model": "lstm", "data.source": [str(text)], "training.steps": 8}
    )


def test_resuming_with_other_data_is_refused(text: Path, tmp_path: Path) -> None:
    prepare_tiny(text, "lstm", tmp_path / "run")
    before = content_of(tmp_path / "run")
    text.write_text(TEXT + "!")
    with pytest.raises(CheckpointError, match=r"was trained on other data: .*cats\.txt has changed since"):
        resume(tmp_path / "run")
    assert content_of(tmp_path / "run") == before


def test_a_run_whose_data_moved_goes_on_from_its_new_place(text: Path, tmp_path: Path) -> None:
    train_tiny(text, "lstm", tmp_path / "whole")
    prepare_tiny(text, "lstm", tmp_path / "run")
    moved = tmp_path / "elsewhere" / "dogs.txt"
    moved.parent.mkdir()
    text.rename(moved)
    with pytest.raises(DataError) as caught:
        resume(tmp_path / "run")
    assert str(caught.value) == (
        f"{text}: no such file or folder, and {tmp_path / 'run'} was trained on it. If it was moved, name its "
        f"new place (- for standard input): seqwise train NEWPATH --resume --out {tmp_path / 'run'}"
    )
    told: list[str] = []
    for _ in resume(tmp_path / "run", asked={"data.source": [str(moved)]}, tell=told.append).reports():
        pass
    assert told[0] == f"{moved} holds the data of {tmp_path / 'run'}, and is read from now on"
    assert Run.open(tmp_path / "run").config.data.source == [str(moved)]
    assert log_without_clock(tmp_path / "run") == log_without_clock(tmp_path / "whole")


def test_other_data_is_not_taken_for_data_that_moved(text: Path, tmp_path: Path) -> None:
    prepare_tiny(text, "lstm", tmp_path / "run")
    before = content_of(tmp_path / "run")
    other = tmp_path / "other.txt"
    other.write_text(TEXT + "!")
    with pytest.raises(
        CheckpointError, match=r"was trained on other data: .*other\.txt does not hold the same \(sha256"
    ):
        resume(tmp_path / "run", asked={"data.source": [str(other)]})
    assert content_of(tmp_path / "run") == before


def test_the_files_of_parts_may_move_too(text: Path, tmp_path: Path) -> None:
    valid = tmp_path / "valid.txt"
    valid.write_text(TEXT[:300])
    prepare_tiny(text, "lstm", tmp_path / "run", valid=str(valid))
    moved = valid.rename(tmp_path / "moved.txt")
    with pytest.raises(DataError, match=r"valid\.txt: no such file or folder, and .* was trained on it"):
        resume(tmp_path / "run")
    resume(tmp_path / "run", asked={"data.valid": str(moved)})
    assert Run.open(tmp_path / "run").config.data.valid == str(moved)


def test_resuming_with_an_edited_config_is_told_in_a_sentence(text: Path, tmp_path: Path) -> None:
    train_tiny(text, "lstm", tmp_path / "run")
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("model_dim = 8", "model_dim = 12"))
    with pytest.raises(CheckpointError, match=r"config\.toml"):
        list(resume(tmp_path / "run").reports())


def test_resuming_what_is_no_run_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no such run folder\. Train one with: seqwise train DATA --out"):
        resume(tmp_path / "nothing")


# -- starting from another run ---------------------------------------------------------------------------------------


@pytest.fixture
def other_text(tmp_path: Path) -> Path:
    path = tmp_path / "birds.txt"
    path.write_text("two birds sang in a tree.\nthe birds flew away, far away.\n" * 25)
    return path


@pytest.mark.parametrize("name", ["lstm", "gpt"])
def test_a_run_that_starts_from_another_has_its_tokenizer_sizes_and_weights(
    text: Path, other_text: Path, tmp_path: Path, name: str
) -> None:
    base, _ = train_tiny(text, name, tmp_path / "base")
    tuned = prepare(
        other_text, model=name, out=tmp_path / "tuned", steps=1, start_from=tmp_path / "base",
        overrides=["training.learning_rate=1e-9", "training.matrix_learning_rate=1e-9"],
    )  # fmt: skip
    list(tuned.reports())
    assert tuned.run.tokenizer.to_dict() == base.run.tokenizer.to_dict()
    assert tuned.run.config.model == base.run.config.model
    before, after = (load_file(tmp_path / run / "model.safetensors") for run in ("base", "tuned"))
    for weight, tensor in before.items():
        torch.testing.assert_close(after[weight], tensor, atol=1e-6, rtol=0)


@pytest.mark.parametrize("num_reports", [0, 1])
def test_a_run_that_starts_from_another_stands_alone_and_resumes_from_the_same_weights(
    text: Path, other_text: Path, tmp_path: Path, num_reports: int
) -> None:
    """Killed as soon as its folder is there (while steps are timed, say), or before a checkpoint is due."""
    train_tiny(text, "lstm", tmp_path / "base", steps=30)
    options = {"start_from": tmp_path / "base"}
    train_tiny(other_text, "lstm", tmp_path / "whole", "training.report_every=1", **options)
    killed = iter(prepare_tiny(other_text, "lstm", tmp_path / "killed", "training.report_every=1", **options).reports())
    for _ in range(num_reports):
        next(killed)
    del killed
    shutil.rmtree(tmp_path / "base")
    list(resume(tmp_path / "killed").reports())
    assert log_without_clock(tmp_path / "killed") == log_without_clock(tmp_path / "whole")


@pytest.mark.parametrize(
    ("base", "name", "overrides", "sentence"),
    [
        ("lstm", "gpt", [], "is a lstm model; --model gpt cannot start from it"),
        ("lstm", "lstm", ["model.num_layers=3"], "has other weights than model.num_layers = 3 asks for; drop that"),
        ("lstm", "lstm", ["model.model_dim=12"], "has weights of other shapes than model.model_dim = 12: "),
        ("hmm", "hmm", ["model.num_states=5"], "has other tables than model.num_states = 5 asks for; drop that"),
        ("ngram", "ngram", ["model.order=2"], "has other tables than model.order = 2 asks for; drop that setting."),
    ],
)
def test_starting_from_a_run_that_does_not_fit_is_told_before_anything_is_written(
    text: Path, tmp_path: Path, base: str, name: str, overrides: list[str], sentence: str
) -> None:
    train_tiny(text, base, tmp_path / "base", steps=1)
    with pytest.raises(SeqwiseError) as caught:
        list(
            prepare(
                text, model=name, out=tmp_path / "x", steps=1, start_from=tmp_path / "base", overrides=overrides
            ).reports()
        )
    assert sentence in str(caught.value)
    assert not (tmp_path / "x").exists()


# -- sizes -----------------------------------------------------------------------------------------------------------


@each_text_family
@pytest.mark.parametrize("minutes", [None, 0.01, 0.5, 2.0, 3.99, 4.0, 30.0, 600.0])
def test_suggested_sizes_are_valid_for_any_text_and_budget(name: str, minutes: float | None) -> None:
    for train_tokens in (10, 100, 1000, 10**5, 10**7, 10**9):
        for kind, vocab_size in (("char", 17), ("char", 200), ("word", 10_000), ("bpe", 4096)):
            facts = Facts(train_tokens, vocab_size, kind, minutes)
            model, training = suggest(name, NEXT_TOKEN, facts)
            MODELS[name].config(**model)
            config = TrainingConfig(**training)
            assert config.context <= model.get("context", config.context)
            if MODELS[name].learns[NEXT_TOKEN] == "gradients":
                assert config.batch_size * config.context <= max(config.context, train_tokens)


def test_more_time_suggests_a_model_that_is_no_smaller() -> None:
    for name in ("lstm", "gpt"):
        models = [suggest(name, NEXT_TOKEN, Facts(10**6, 80, "char", minutes))[0] for minutes in (0.1, 2, 10, 60)]
        sizes = [model["model_dim"] * model["num_layers"] for model in models]
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1]


@each_family
def test_the_smallest_text_that_is_allowed_trains(tmp_path: Path, name: str) -> None:
    small = tmp_path / "small.txt"
    small.write_text("ab\n" * 14)  # 42 characters: 37, 2 and 3
    _, reports = train_tiny(small, name, tmp_path / "run", steps=2)
    assert reports[-1].step == reports[-1].steps
    assert Run.open(tmp_path / "run").load_model() is not None


@pytest.mark.parametrize(("width", "heads"), [(40, 4), (36, 3), (34, 1), (30, 3), (64, 4), (9, 3)])
def test_the_heads_that_are_suggested_divide_the_width_that_was_asked_for(width: int, heads: int) -> None:
    found = fitting_heads({"model_dim": 128, "num_heads": 4}, {"model_dim": width})
    assert found["num_heads"] == heads
    assert fitting_heads({"num_heads": 4}, {"model_dim": width, "num_heads": 7})["num_heads"] == 4  # theirs is used
    assert fitting_heads({"model_dim": 64}, {"model_dim": width}) == {"model_dim": 64}


def test_a_width_that_is_given_alone_can_be_trained(text: Path, tmp_path: Path) -> None:
    given = [*SMALL, "model.model_dim=10", "model.num_layers=1", "model.context=16"]
    run = prepare(text, model="gpt", out=tmp_path / "run", steps=1, overrides=given).run
    assert (run.config.model.model_dim, run.config.model.num_heads) == (10, 1)


@pytest.mark.parametrize(("own", "mean", "kept"), [(1.0, 2.0, "own"), (2.0, 1.0, "mean"), (1.0, 1.0, "own")])
def test_the_mean_of_the_weights_is_kept_only_where_it_validates_better(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: float, mean: float, kept: str
) -> None:
    seen: list[dict[str, torch.Tensor]] = []
    results = iter([9.0, 9.0, own, mean])

    def validate(_: Session, model: Any) -> float:
        seen.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return next(results)

    monkeypatch.setattr(Session, "validate", validate)
    _, reports = train_tiny(text, "lstm", tmp_path / "run", "training.average_over=3", "training.evaluate_every=4")
    assert [report.valid for report in reports if report.valid is not None] == [9.0, min(own, mean)]
    *_, of_own, of_mean = seen
    assert not all(torch.equal(of_own[name], of_mean[name]) for name in of_own)
    saved = load_file(tmp_path / "run" / "model.safetensors")
    expected = of_own if kept == "own" else of_mean
    assert all(torch.equal(saved[name], tensor) for name, tensor in expected.items())


def test_without_a_budget_networks_have_two_minutes_and_counting_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat on the mat.\n" * 60)
    made = {name: prepare(tmp_path / "a.txt", model=name, out=tmp_path / name) for name in ("ngram", "hmm", "rnn")}
    assert {name: session.run.config.training.minutes for name, session in made.items()} == {
        "ngram": None, "hmm": None, "rnn": 2.0,
    }  # fmt: skip


def test_a_number_of_states_of_zero_is_chosen_by_validation(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abab cdcd\n" * 120)
    settings = ["model.num_states=0", "training.steps=3"]
    session = prepare(tmp_path / "a.txt", model="hmm", out=tmp_path / "hmm", overrides=settings)
    told: list[str] = []
    list(session.reports(tell=told.append))
    assert session.run.config.model.num_states >= 4
    assert any("hidden states validate best" in sentence for sentence in told)


def test_going_on_with_a_run_that_is_over_says_so(text: Path, tmp_path: Path) -> None:
    train_tiny(text, "lstm", tmp_path / "run", steps=3)
    told: list[str] = []
    resume(tmp_path / "run", tell=told.append)
    assert any("trained to the end already" in sentence for sentence in told)
