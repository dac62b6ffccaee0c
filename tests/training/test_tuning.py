"""Fine-tuning by rule: what a body that has learned already is given, what the user's word is worth, what is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs_by_hand import log_without_clock, prepare

from seqwise.errors import ConfigError
from seqwise.run import Run
from seqwise.settings import TrainingConfig
from seqwise.training.optimizers import build_optimizers, rate_at
from seqwise.training.tuning import TUNING, rule_for

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "one", "rat", "ran", "to", "my", "hat"]
SMALL = ["model.model_dim=16", "training.batch_size=4", "training.num_samples=0", "training.context=12"]
TRANSFORMER = [*SMALL, "model.num_layers=2", "model.num_heads=2", "model.context=12"]
FAMILIES = {"lstm": SMALL, "gpt": TRANSFORMER, "bert": TRANSFORMER}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base of each family, and rows with labels, numbers and tags."""
    folder = tmp_path_factory.mktemp("world")
    lines = [" ".join(WORDS[(i * j) % len(WORDS)] for j in range(1, 4 + i % 4)) for i in range(1, 121)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    rows = {"label": [f"{line} {i},{'odd' if i % 2 else 'even'}" for i, line in enumerate(lines)]}
    rows["number"] = [f"{line} {i},{(i * 37) % 97 / 7:.3f}" for i, line in enumerate(lines)]
    for name, found in rows.items():
        (folder / f"{name}.csv").write_text(f"text,{name}\n" + "\n".join(found) + "\n")
    for name, words in (("short", 5), ("long", 14)):
        sentences = ("\n".join(f"{WORDS[(i + j) % 13]}\t{'XY'[j % 2]}" for j in range(words)) for i in range(40))
        (folder / f"{name}.conll").write_text("\n\n".join(sentences) + "\n")
    for family, settings in FAMILIES.items():
        tokenizer: Any = "word"
        task = "text" if family != "bert" else "masked"
        prepare(
            folder / "text.txt", model=family, out=folder / family, steps=2, tokenizer=tokenizer, task=task,
            overrides=settings,
        ).train()  # fmt: skip
    return folder


def tuned(world: Path, out: Path, data: str = "label.csv", family: str = "bert", **asked: Any) -> tuple[Any, list[str]]:
    told: list[str] = []
    session = prepare(world / data, model=family, out=out, start_from=world / family, tell=told.append, **asked)
    return session.run.config, told


def test_a_transformer_has_a_rate_by_its_width_and_few_rows_are_read_more_often(world: Path, tmp_path: Path) -> None:
    for family, pooling in (("bert", "first"), ("gpt", "last")):
        config, told = tuned(world, tmp_path / family, family=family)
        training = config.training
        assert (training.optimizer, training.schedule, training.learning_rate) == ("adamw", "linear", 5e-4)
        assert (training.weight_decay, training.beta2, training.minutes) == (0.01, 0.999, None)
        assert config.model.pooling == pooling  # as the base has it
        assert (training.keep, training.patience) == ("last", None)
        assert training.epochs == 20  # of some hundred rows three passes would be next to nothing
        (sentence,) = [line for line in told if line.startswith("fine-tuning")]
        assert sentence.startswith(f"fine-tuning {world / family}: 20 epochs, adamw with a rate of 0.0005 for a width")
        assert (training.start, len(training.start_fingerprint)) == (str(world / family), 64)


@pytest.mark.parametrize(("width", "rate"), [(768, 5e-5), (384, 1e-4), (1024, 3.8e-5), (128, 3e-4), (32, 5e-4)])
def test_the_rate_falls_with_the_width(world: Path, width: int, rate: float) -> None:
    base = Run.open(world / "bert")
    object.__setattr__(base.config.model, "model_dim", width)
    found = TUNING["bert"].rule(base, 100_000)
    assert found.training["learning_rate"] == pytest.approx(rate)
    assert (found.training["epochs"], found.training["batch_size"]) == (3, 32)
    assert TUNING["bert"].rule(base, 2_490).training["batch_size"] == 16


def test_what_is_set_by_hand_wins(world: Path, tmp_path: Path) -> None:
    overrides = ["training.learning_rate=0.001", "training.warmup_steps=7", "model.pooling=mean"]
    config, _ = tuned(world, tmp_path / "run", minutes=0.02, overrides=overrides)
    assert (config.training.minutes, config.training.epochs) == (0.02, None)
    assert (config.training.learning_rate, config.model.pooling) == (0.001, "mean")
    assert (config.training.warmup_share, config.training.warmup) == (0.0, 7)
    config, _ = tuned(world, tmp_path / "steps", steps=5)
    assert (config.training.steps, config.training.epochs) == (5, None)
    config, _ = tuned(world, tmp_path / "few", overrides=["training.train_examples=40"])
    assert config.training.batch_size == 5


def test_texts_are_read_up_to_the_places_of_the_base(world: Path, tmp_path: Path) -> None:
    config, _ = tuned(world, tmp_path / "run")
    assert config.model.context == 12
    assert config.model.max_steps == 12  # more than these rows have: a longer text is read whole
    rows = [f"{' '.join(WORDS)} {' '.join(WORDS)} {i},{'odd' if i % 2 else 'even'}" for i in range(60)]
    (tmp_path / "longer.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    session = prepare(tmp_path / "longer.csv", model="bert", out=tmp_path / "longer", start_from=world / "bert")
    assert (session.run.config.model.max_steps, session.run.config.training.context) == (12, 12)
    assert tuned(world, tmp_path / "tags", "short.conll")[0].model.max_steps == 0
    with pytest.raises(ConfigError, match=r"long\.conll, train: row 1 has 16 tokens, and .*bert has places for 12"):
        tuned(world, tmp_path / "long", "long.conll")
    assert not (tmp_path / "long").exists()


def test_how_alike_two_texts_are_is_told_by_the_vectors_of_an_encoder(tmp_path: Path) -> None:
    rows = [f"a {WORDS[i % 13]},the {WORDS[i % 7]},{{}}" for i in range(60)]
    base = Path(__file__).parents[1] / "fixtures" / "format-3" / "vectors-bert"

    def pairing(name: str, answers: list[str], *overrides: str) -> str:
        lines = [row.format(answer) for row, answer in zip(rows, answers, strict=True)]
        (tmp_path / f"{name}.csv").write_text("first,second,score\n" + "\n".join(lines) + "\n")
        data, out, told = tmp_path / f"{name}.csv", tmp_path / f"{name}-{len(overrides)}", list[str]()
        columns = ["text=first", "text2=second", f"{'number' if name == 'numbers' else 'label'}=score"]
        session = prepare(
            data,
            model="bert",
            task="label",
            out=out,
            start_from=base,
            columns=columns,
            overrides=list(overrides),
            tell=told.append,
        )
        found = session.run.config.model.pairing
        assert any(f"pairing {found}" in line for line in told) == (found != "joined")
        return found

    numbers = [f"{i % 11 / 2}" for i in range(60)]
    assert pairing("numbers", numbers) == "cosine"
    assert pairing("numbers", numbers, "model.pairing=joined") == "joined"
    assert pairing("labels", ["odd" if i % 2 else "even" for i in range(60)]) == "joined"


def test_another_answer_of_a_base_that_answers_is_tuned_too(world: Path, tmp_path: Path) -> None:
    tuned(world, tmp_path / "first", overrides=["model.pooling=mean"], steps=1)
    prepare(world / "label.csv", model="bert", out=tmp_path / "trained", start_from=world / "bert", steps=1).train()
    told: list[str] = []
    session = prepare(
        world / "label.csv", model="bert", out=tmp_path / "again", start_from=tmp_path / "trained", tell=told.append
    )
    assert session.run.config.training.learning_rate == 5e-4
    assert any(line.startswith("fine-tuning") for line in told)


def test_a_recurrent_language_model_is_unfrozen_from_the_top(world: Path, tmp_path: Path) -> None:
    config, told = tuned(world, tmp_path / "run", "number.csv", "lstm")
    training = config.training
    assert (training.schedule, training.layer_rate_factor, training.keep) == ("slanted_triangular", 0.6, "last")
    assert training.unfreeze_epochs == pytest.approx(training.epochs / 16, abs=1e-3)
    assert (config.model.pooling, config.model.dropout_kind) == ("mean", "variational")
    assert "each layer at 0.6 of the one above" in next(line for line in told if line.startswith("fine-tuning"))


def test_more_of_the_same_and_other_bodies_are_not_tuned(world: Path, tmp_path: Path) -> None:
    for family in FAMILIES:
        config, told = tuned(world, tmp_path / family, "text.txt", family)
        assert config.training.minutes == 2.0
        assert not any(line.startswith("fine-tuning") for line in told)
        assert rule_for(Run.open(world / family), Run.open(world / family).schema) is None
    assert rule_for(None, Run.open(world / "bert").schema) is None


def test_biases_and_norms_do_not_decay(world: Path, tmp_path: Path) -> None:
    tuned(world, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    model = run.build_model()
    (optimizer,) = build_optimizers(model, run.config.training)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed = {names[id(p)] for g in optimizer.param_groups if g["weight_decay"] for p in g["params"]}
    assert not any(name.endswith("bias") or "norm" in name for name in decayed)
    assert "body.blocks.0.attention.qkv.weight" in decayed


def test_a_warm_up_by_share_follows_the_number_of_steps() -> None:
    for steps in (50, 400):
        config = TrainingConfig(steps=steps, warmup_share=0.1, learning_rate=1.0)
        rates = [rate_at(step, config) for step in range(steps)]
        assert rates.index(max(rates)) == steps // 10
        assert rates[0] == pytest.approx(1 / (steps // 10 + 1))
    with pytest.raises(ConfigError, match=r"training\.warmup_share = 1\.0 should lie in \[0, 1\)"):
        TrainingConfig(warmup_share=1.0)


def test_the_card_says_what_was_started_from_and_a_copied_config_does_not_claim_it(world: Path, tmp_path: Path) -> None:
    overrides = ["training.epochs=0.2"]
    session = prepare(world / "label.csv", model="bert", out=tmp_path / "run", start_from=world / "bert",
                      overrides=overrides)  # fmt: skip
    session.train()
    card = (tmp_path / "run" / "card.md").read_text()
    assert f"- Started from: {world / 'bert'} (sha256 {Run.open(world / 'bert').fingerprint})" in card
    assert f"- Fine-tuning {world / 'bert'}: 0.2 epochs, adamw" in card
    assert log_without_clock(tmp_path / "run")
    copied = prepare(
        world / "label.csv", model="bert", out=tmp_path / "copied", config_file=tmp_path / "run" / "config.toml"
    )
    assert copied.run.config.training.start == ""
    with pytest.raises(ConfigError, match=r"training\.start is filled in by training; use --from RUN instead"):
        prepare(world / "label.csv", model="bert", out=tmp_path / "x", overrides=["training.start=runs/x"])
