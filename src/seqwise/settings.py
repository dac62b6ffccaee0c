"""What a run is made of besides its model: data, tokenizer, training. Saved whole, defaults filled in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import ConfigError

RENAMED = {"training": {"most_parameters": "max_parameters"}, "model": {"most_dilation": "max_dilation"}}
"""By section, names that settings had in versions before, and have now."""


def renamed_settings(sections: dict[str, Any]) -> dict[str, Any]:
    """The sections of a settings file, whichever version wrote it, by the names of today."""
    found = dict(sections)
    for section, names in RENAMED.items():
        if isinstance(found.get(section), dict):
            found[section] = {names.get(name, name): value for name, value in found[section].items()}
    return found


@dataclass(frozen=True)
class DataConfig:
    source: list[str] = field(default_factory=list)
    """Files, a folder, or the name of a data set, as given."""
    valid: str | None = None
    """A file to validate on, where one was given."""
    test: str | None = None
    """A file to test on, where one was given."""
    split: str | None = None
    """Shares of a contiguous split in per cent, where the default was not wanted."""
    columns: list[str] = field(default_factory=list)
    """Numbers: the columns to read; none named are all that hold numbers."""
    season: int | list[int] | None = None
    """Numbers: steps after which the columns resemble themselves, one for all or one for each; 1 for none. Found in the
    training part where not set."""
    horizon: int | None = None
    """Numbers: how many steps ahead forecasts are scored; a season, or 24, where not set."""
    length_ratio: float | None = None
    """Pairs: tokens of a target for each of its source, at most; found in the training part where not set."""
    row_tokens: int | None = None
    """Rows to be written again: tokens of a row, at most; longer lines are cut into rows of so many. 100 where not set;
    Dai & Le (2015) used up to 400, which a state takes much longer to learn to hold."""
    fingerprint: str = ""
    """sha256 of the text of all parts."""
    description: str = ""
    """What the data was taken for."""
    next_sentence: bool | None = None
    """Hidden words: rows are two texts, half of which follow each other (BERT), or windows of the text (RoBERTa); two
    texts where not set."""
    stride: int | None = None
    """Spans: tokens from the beginning of a window to that of the next, where a passage does not fit into one; 128, or
    half of the window where that is shorter, where not set."""
    image_size: int | list[int] | None = None
    """Pictures: height and width that they are read in, one number for both; where not set, 128, or the size that all
    of them have where that is less."""
    image_fit: Literal["contain", "cover", "stretch"] = "contain"
    """Pictures of another shape: all of them between bars, their middle, or all of them out of proportion."""
    grey: bool | None = None
    """Pictures: read without colour; where not set, if none of the training part has any."""
    max_frames: int | None = None
    """Clips: frames that are read of each, evenly spaced; as many as the longest has, but 16 at most, where not set; of
    frames whose features are given, 80."""
    skip_damaged: bool = False
    """Pictures: leave out those that cannot be read, instead of stopping."""
    caption_tokens: int | None = None
    """Captions: tokens of one that is written, at most; found in the training part where not set."""

    def __post_init__(self) -> None:
        for name in ("season", "horizon", "row_tokens", "caption_tokens", "stride", "image_size", "max_frames"):
            value = getattr(self, name)
            if value is not None and min(value if isinstance(value, list) else [value], default=1) < 1:
                raise ConfigError(f"data.{name} = {value} should be at least 1.")
        if isinstance(self.image_size, list) and len(self.image_size) != 2:
            raise ConfigError(f"data.image_size = {self.image_size} should be one number, or height and width.")


@dataclass(frozen=True)
class TokenizerConfig:
    kind: Literal["auto", "char", "word", "bpe", "wordpiece", "sentencepiece", "pieces", "marian"] = "auto"
    """Characters, words, byte pairs or pieces of words as BERT has them; auto chooses by the data. Models that are
    imported may have SentencePiece, or pieces that somebody else has learned, or those of Marian."""
    source_kind: Literal["auto", "char", "word", "bpe", "wordpiece"] = "auto"
    """Pairs: what sources are made of; auto is as `kind` where that is set, else chosen by the data."""
    joint: bool | None = None
    """Pairs: one vocabulary for both sides; by the data where not set."""
    vocab_size: int | None = None
    """Largest size of the vocabulary (words, byte pairs, pieces of words)."""
    min_count: int | None = None
    """Characters or words seen fewer times become unknown; byte pairs and pieces of words are not joined."""
    lower_case: bool | None = None
    """Whether words are lower-cased; where not set, those of texts with a label are, and others are not."""
    split_contractions: bool = False
    """Words of prose: contractions are two words, "does n't" and "it 's", as in texts that are tokenised already."""

    def __post_init__(self) -> None:
        if self.vocab_size is not None and self.vocab_size < 2:
            raise ConfigError(f"tokenizer.vocab_size = {self.vocab_size} should be at least 2.")
        if self.kind == "bpe" and self.vocab_size is not None and self.vocab_size < 256:
            raise ConfigError(
                f"tokenizer.vocab_size = {self.vocab_size}: byte pairs begin with the 256 bytes; ask for more."
            )


NOT_NEGATIVE = (
    *("steps", "warmup_steps", "evaluate_every", "valid_tokens", "report_every", "num_samples", "batch_tokens"),
    "average_over",
    *(
        "seed",
        "unfreeze_epochs",
        "train_examples",
        "shift",
        "cutout",
        "threads",
        "clip_norm",
        "clip_value",
        "weight_decay",
        "train_tokens",
        "max_parameters",
        "final_rate",
        "checkpoint_seconds",
        "tolerance",
    ),
)


@dataclass(frozen=True)
class TrainingConfig:
    minutes: float | None = None
    """Budget in minutes; turned into steps by timing the first ones, once."""
    epochs: float | None = None
    """Budget in passes over the training part."""
    steps: int = 0
    """Number of updates; of a family that learns by EM, largest number of iterations; 0 until the budget is known."""
    batch_size: int = 32
    """Rows per step."""
    batch_tokens: int = 0
    """Pairs: places on either side per step; how many rows that are follows from their length. Rows to be written
    again: places that are read. 0 for other tasks."""
    context: int = 64
    """Tokens per row and step: the window of a GPT, the reach of backpropagation through time of an LSTM."""
    stride: int | None = None
    """Distance between windows; context where not set."""
    micro_batches: int = 1
    """Micro-batches that a batch is computed in: the same result with less memory."""
    optimizer: Literal["adamw", "adam", "sgd", "muon"] = "adamw"
    """Optimizer; muon orthogonalizes the updates of hidden matrices and leaves the rest to adamw."""
    learning_rate: float = 3e-3
    """Highest learning rate, which is reached after the warm-up."""
    matrix_learning_rate: float = 0.02
    """Highest learning rate of the matrices that muon updates."""
    weight_decay: float = 0.0
    """Weight decay of matrices."""
    momentum: float = 0.9
    """SGD and muon: decay of the mean of past gradients."""
    beta1: float = 0.9
    """Adam: decay of the mean of past gradients."""
    beta2: float = 0.95
    """Adam: decay of the mean of past squared gradients."""
    schedule: Literal["linear", "cosine", "constant", "plateau", "inverse_sqrt", "slanted_triangular"] = "linear"
    """How the learning rate falls after the warm-up; plateau lowers it when validation does not improve. Slanted
    triangular rises over a tenth of all steps and falls to a thirty-second (Howard & Ruder 2018)."""
    warmup_steps: int = 10
    """Steps of the warm-up, over which the learning rate rises from zero."""
    warmup_share: float = 0.0
    """Warm-up as a share of all steps, however many they become; 0 counts warmup_steps instead."""
    final_rate: float = 0.0
    """Learning rate at the end as a share of the highest (linear, cosine)."""
    plateau_factor: float = 0.25
    """Factor of the learning rate on a plateau."""
    clip_norm: float = 1.0
    """Largest norm of the gradient; 0 does not clip."""
    clip_value: float = 0.0
    """Largest entry of the gradient, clipped one by one before its norm is; 0 does not clip."""
    evaluate_every: int = 0
    """Steps between validations; 0 chooses about ten in all."""
    valid_tokens: int = 0
    """Tokens of the validation text to use while training; 0 for all, or as many as the budget allows."""
    max_parameters: int = 0
    """Largest number of parameters of a model whose sizes are chosen by rule; 0 sets no limit."""
    freeze: list[str] = field(default_factory=list)
    """Patterns of names of weights that stay as they are, such as "body.*"."""
    layer_rate_factor: float = 1.0
    """Learning rate of each layer as a share of that of the layer above it; below 1, low layers change less."""
    unfreeze_epochs: float = 0.0
    """Train the heads alone at first, and one more layer from the top after every so many epochs; 0 trains all."""
    start: str = ""
    """Run that training started from (--from); filled in."""
    start_fingerprint: str = ""
    """sha256 of its weights; filled in."""
    max_epochs: float = 60.0
    """Minutes become steps for so many passes over the training part at most: more would only be overfitting."""
    masked_share: float = 0.15
    """Hidden words: how many of them, as a share of all tokens."""
    masking: Literal["dynamic", "static"] = "dynamic"
    """Hidden words: hide others each time a row is read, or always the same."""
    mask_whole_words: bool = False
    """Hidden words: hide all pieces of a word together."""
    flip: bool = False
    """Pictures: mirror every other one that is learned from, drawn anew each time."""
    shift: int = 0
    """Pictures: move each that is learned from by up to so many pixels to each side, drawn anew each time."""
    cutout: int = 0
    """Pictures: cover a square of so many pixels of each that is learned from, drawn anew each time."""
    train_examples: int = 0
    """Labels and tags: learn from so many rows of the training part, drawn by the seed with each label's share; 0 for
    all."""
    train_tokens: int = 0
    """Counting and EM: number of tokens of the training part to learn from, from its beginning; 0 for all."""
    restarts: int = 1
    """EM: how many random starts to try; the best is kept."""
    tolerance: float = 1e-5
    """EM: stop when an iteration brings fewer nats per step than this."""
    average_over: int = 0
    """Validations that a running mean of the weights is taken over; it is kept where it is better; 0 for none."""
    keep: Literal["best", "last"] = "best"
    """Which weights are the model: those whose loss on the validation part was lowest, or those of the last validation.
    Of labels and tags the loss often rises while fewer answers are wrong."""
    patience: int | None = None
    """Validations in a row without improvement after which training stops."""
    checkpoint_seconds: float = 30.0
    """Seconds between checkpoints."""
    report_every: int = 0
    """Steps between reports; 0 chooses about two hundred in all."""
    num_samples: int = 4
    """Texts sampled into the log at log-spaced steps, to watch the model learn to write."""
    sample_tokens: int = 120
    """Tokens of each sampled text."""
    compile: Literal["auto", "always", "never"] = "auto"
    """Let torch compile the training step; auto tries it where ten minutes or more are planned, and keeps what pays."""
    seed: int = 0
    """Random seed of weights, order of the data and dropout."""
    device: str = "auto"
    """Device: cpu, cuda, mps or auto."""
    threads: int = 0
    """Threads torch used; 0 leaves the choice to torch. Resuming is exact for the same number."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "context", "micro_batches", "sample_tokens", "restarts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"training.{name} = {getattr(self, name)} should be at least 1.")
        for name in NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ConfigError(f"training.{name} = {getattr(self, name)} should not be negative.")
        for name in ("minutes", "epochs", "max_epochs"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"training.{name} = {value} should be above 0.")
        for name in ("learning_rate", "matrix_learning_rate"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"training.{name} = {getattr(self, name)} should be above 0.")
        if self.stride is not None and self.stride < 1:
            raise ConfigError(f"training.stride = {self.stride} should be at least 1.")
        if not 0 < self.layer_rate_factor <= 1:
            raise ConfigError(f"training.layer_rate_factor = {self.layer_rate_factor} should be above 0 and at most 1.")
        if not 0 <= self.warmup_share < 1:
            raise ConfigError(f"training.warmup_share = {self.warmup_share} should lie in [0, 1); 0.1 is usual.")
        if not 0 < self.masked_share < 1:
            raise ConfigError(f"training.masked_share = {self.masked_share} should lie between 0 and 1; 0.15 is usual.")
        for name in ("momentum", "beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"training.{name} = {getattr(self, name)} should lie in [0, 1).")

    @property
    def warmup(self) -> int:
        """Steps of the warm-up."""
        return round(self.warmup_share * self.steps) if self.warmup_share else self.warmup_steps
