"""Comparisons as they come out of half an hour with a play, a year of temperatures, reviews, or questions."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

from seqwise.comparison.results import Comparison, Entry, Figure, Gap, Match, Metric, Point

PASSAGE = """The harbour was quiet before the ships came in. Old Marten, who had kept the light for thirty years, \
went down the stone steps with his lamp and counted the ropes, one after the other, as he did every morning.

MARTEN:
Who left the north gate open? The tide will be at the wall by noon, and nobody has brought the boats up.

ELIN:
I did, and I shall close it again when the cart is through. You said yourself that the salt had to be in the shed \
before the rain.

MARTEN:
The rain! Look at the sky, child. There is no rain in it, there is wind, and wind is worse for salt than rain is for \
bread.

She did not answer him. She had learned in her second winter on the island that an answer was only ever the beginning \
of another question, and that the old man had more questions than the sea had stones. So she took the rope from the \
hook, tied it twice around the post, and waited until the cart had passed. Then she closed the gate, and the iron bar \
fell into its place with a sound that could be heard as far as the chapel.

ELIN:
There. It is closed, the boats are up, and the salt is dry. What else have I forgotten?

MARTEN:
The light.

And indeed, above them, in the grey of the morning, the great lamp was still burning, and the first of the ships, \
deceived by it, was already turning its bow towards the rocks. For a moment neither of them moved. Then both began to \
run, the girl ahead, the old man behind her with his lamp, up the hundred and twelve steps that he had counted so often.
"""

#         bits, parameters, bytes, seconds, tokens/s, ms, memory, settings
LADDER = {
    "gpt": (1.661, 818_000, 3_290_000, 148, 21_400, 1.9, 610e6, "4 layers of 128, 4 heads, context 256; AdamW"),
    "lstm": (1.724, 587_264, 2_360_000, 149, 48_200, 0.42, 480e6, "2 layers of 256; AdamW"),
    "gru": (1.731, 441_300, 1_780_000, 149, 55_100, 0.38, 450e6, "2 layers of 256; AdamW"),
    "ngram": (1.782, 1_325_547, 9_800_000, 3.1, 310_000, 0.021, 220e6, "order 7, modified Kneser-Ney"),
    "conv": (1.893, 512_000, 2_050_000, 147, 38_000, 0.81, 520e6, "6 layers of 128, width 5; AdamW"),
    "window": (2.154, 301_000, 1_210_000, 148, 96_000, 0.11, 300e6, "16 tokens, 256 hidden; AdamW"),
    "hmm": (2.968, 9_300, 41_000, 120, 160_000, 0.049, 180e6, "64 hidden states, 22 rounds of EM"),
}
FINALS = {
    "gpt-final": (
        1.552,
        3_200_000,
        12_900_000,
        479,
        11_200,
        3.4,
        1.1e9,
        "6 layers of 192, 6 heads, context 256; AdamW",
    ),
    "lstm-final": (1.639, 2_310_000, 9_240_000, 478, 20_600, 0.9, 0.9e9, "2 layers of 512; AdamW"),
}
REASON = "the loss was not a number after 412 updates; try a smaller learning rate: --set training.learning_rate=0.001."

HOSTILE = (
    "</script></style></title></svg></table>--><script>alert(1)</script><img src=x onerror=alert(1)>\"'` style=x "
    "&lt;&amp;&#60; {0} {x} %s \u202eevil\u2066\u2028\u2029\x00\x1b[2J\x85\ud800\udfff\ufffe\u0301\u200b\ufeff\n\t"
)
CHOSEN = {"stage", "status", "task", "kind"}  # words that the code chooses from


def example_comparison(**changes: Any) -> Comparison:
    """Eight families on text; the RNN failed, GPT and LSTM were trained longer."""
    ladder = [_entry(name, *figures) for name, figures in LADDER.items()]
    ladder.append(Entry("rnn", "rnn", "char", "ladder", 2.5, "failed", REASON, settings="1 layer of 256; AdamW"))
    ladder[0] = replace(ladder[0], is_on_front=True)
    ladder[1] = replace(ladder[1], is_on_front=True, notes=["its last update was cut short by the clock"])
    ladder[3] = replace(ladder[3], is_on_front=True, notes=["order 7 instead of 9: by the memory of this machine"])
    final = [_entry(name, *figures, stage="final") for name, figures in FINALS.items()]
    final[0] = replace(final[0], is_on_front=True)
    made = Comparison(
        data={
            "name": "harbour.txt",
            "description": "text of 1,115,394 characters, 65 distinct, split 90/5/5",
            "fingerprint": "3f786850e387550fdab836ed7e6dc881de23001b",
            "parts": {"train": 1_003_854, "valid": 55_770, "test": 55_770},
        },
        task="text",
        metric=Metric("bits per character", "bits/char"),
        scored="test",
        minutes=36,
        seeds=2,
        workers=1,
        threads=2,
        command="seqwise compare harbour.txt --minutes 36 --seeds 2 --out runs/harbour",
        seconds={"preparing": 31.0, "training": 1902.0, "scoring": 164.0, "rest": 22.0},
        machine={"processor": "2 cores of x86_64", "memory": "8.3 GB", "python": "3.11.7", "torch": "2.6.0"},
        ladder=ladder,
        final=final,
        gaps=[
            Gap("gpt", "lstm", 0.063, 0.041, 0.085, True),
            Gap("lstm", "gru", 0.007, -0.009, 0.022, False),
            Gap("gru", "ngram", 0.051, 0.012, 0.089, True),
            Gap("ngram", "conv", 0.111, 0.074, 0.146, True),
            Gap("conv", "window", 0.261, 0.229, 0.292, True),
            Gap("window", "hmm", 0.814, 0.775, 0.853, True),
        ],
        winner="gpt-final",
        recommendation=[
            "Take gpt-final: 1.552 bits per character, surely better than everything else that was tried.",
            "If it must be fast, lstm is 4.5 times as fast at 1.724.",
            "The n-gram needs three seconds of training for 1.782, the least of all.",
        ],
        passage=PASSAGE,
        held_out_match=Match(31, "as he did every morning. The ti"),
        is_complete=True,
        seqwise="0.4.0",
    )
    return replace(made, **changes)


def example_of_numbers(**changes: Any) -> Comparison:
    """Four families on a series of temperatures."""
    random = Random(4)
    came = [12 + 6 * math.sin(step / 24 * math.tau) + random.gauss(0, 1.2) for step in range(96)]
    ladder = []
    figures = {"kalman": (1.52, 1.1), "lstm": (1.61, 1.4), "window": (1.83, 2.0), "hmm": (2.64, 4.1)}
    for number, (name, (value, spread)) in enumerate(figures.items()):
        middles = [12 + 6 * math.sin((step - number) / 24 * math.tau) for step in range(96)]
        ladder.append(
            replace(
                _entry(name, value, 4_000 * (number + 1), 40_000, 64.0, 0, 0.3 + number, 90e6, "by rule"),
                tokenizer="",
                samples=[],
                surprise=[],
                by_position=[],
                memorization=None,
                generation_tokens_per_second=None,
                more={"mae": spread, "coverage": 0.94 - 0.01 * number},
                forecast=[(middle, middle - 2 * spread, middle + 2 * spread) for middle in middles],
            )
        )
    made = Comparison(
        data={
            "name": "temperatures.csv",
            "description": "1 column of 8,760 rows",
            "parts": {"train": 7_884, "valid": 438, "test": 438},
        },
        task="numbers",
        metric=Metric("minus log-likelihood per step", "nats/step"),
        scored="test",
        minutes=4,
        seeds=1,
        workers=1,
        threads=2,
        command="seqwise compare temperatures.csv --minutes 4",
        seconds={"preparing": 4.0, "training": 190.0, "scoring": 30.0},
        ladder=ladder,
        gaps=[Gap("kalman", "lstm", 0.09, 0.02, 0.16, True)],
        winner="kalman",
        recommendation=["Take kalman: 1.520 nats per step."],
        passage_values=came,
        is_complete=True,
    )
    return replace(made, **changes)


REVIEWS = (
    ("a warm, funny film that earns its tears", "good"),
    ("two hours of my life that nobody gives back", "bad"),
    ("not bad at all, and often more than that", "good"),
    ("the plot is thin, the jokes are old", "bad"),
    ("it ends", "mixed"),
    ("fine actors, lost in a dull script", "mixed"),
)
#                said and how sure by: bag, lstm, window; of the reviews one after the other
SAID = {
    "ngram-bag": (("good", 0.93), ("bad", 0.81), ("bad", 0.97), ("bad", 0.9), ("good", 0.4), ("good", 0.77)),
    "lstm": (("good", 0.99), ("good", 0.6), ("good", 0.92), ("bad", 0.95), ("bad", 0.55), ("mixed", 0.66)),
    "window": (("good", 0.7), ("bad", 0.5), ("bad", 0.6), ("bad", 0.7), ("good", 0.6), ("bad", 0.5)),
}


def example_of_labels(**changes: Any) -> Comparison:
    """Three families on reviews; the window learned nothing."""
    values = {"ngram-bag": 0.1811, "lstm": 0.2054, "window": 0.4931}
    ladder = []
    for place, (name, value) in enumerate(values.items()):
        answers = [
            (3 * row, said, sure, sure if said == wanted else (1 - sure) / 2)
            for row, ((said, sure), (_, wanted)) in enumerate(zip(SAID[name], REVIEWS, strict=True))
        ]
        made = _entry(name, value, 40_000 * (place + 1), 300_000, 30.0, 0, 0.4, 200e6, "by rule")
        changed: dict[str, Any] = {"tokenizer": "", "samples": [], "surprise": [], "by_position": [], "curve": []}
        ladder.append(
            replace(
                made,
                **changed,
                family=name.partition("-")[0],
                memorization=None,
                generation_tokens_per_second=None,
                more={"accuracy": 1 - value, "macro_f1": 0.9 - value, "calibration_error": 0.02 * (place + 1)},
                by_label=[
                    ("good", 0.9, 0.8, 0.85 - value / 2, 400),
                    ("bad", 0.7, 0.8, 0.75, 300),
                    ("mixed", 0.3, 0.2, 0.24, 10),
                ],
                confusion={"labels": ["bad", "good", "mixed"], "counts": [[250, 45, 5], [70, 328, 2], [4, 6, 0]]},
                confused=[("good", "bad", 70), ("bad", "good", 45)],
                reliability=[(0.45, 0.5, 40), (0.65, 0.55 + 0.05 * place, 200), (0.95, 0.9, 460), (0.2, 0.0, 3)],
                answers=answers,
            )
        )
    ladder[2] = replace(ladder[2], not_trained="on validation it is not surely better than the most frequent label")
    made = Comparison(
        data={
            "name": "reviews.csv",
            "description": "7,100 texts",
            "parts": {"train": 5_000, "valid": 1_390, "test": 710},
        },
        task="label",
        kind="label",
        metric=Metric("share of wrong answers", "wrong", digits=4),
        scored="test",
        minutes=4,
        seeds=1,
        workers=1,
        threads=2,
        command="seqwise compare reviews.csv --minutes 4",
        ladder=ladder,
        gaps=[Gap("ngram-bag", "lstm", 0.0243, 0.004, 0.045, True)],
        baseline={
            "name": "the most frequent label",
            "value": 0.4905,
            "simple": {"name": "a bag of words", "value": 0.1925},
        },
        winner="ngram-bag",
        recommendation=["Use ngram-bag: 0.1811 share of wrong answers."],
        examples=[(3 * row, text, wanted) for row, (text, wanted) in enumerate(REVIEWS)],
        is_complete=True,
    )
    return replace(made, **changes)


FLIGHTS = (
    ("from boston to denver", "O B-from O B-to"),
    ("show me the first flight", "O O O B-order O"),
    ("what is a d 9 s", "O O O B-code I-code I-code"),
)


def example_of_tags(**changes: Any) -> Comparison:
    """Two families on questions about flights."""
    wrong = {
        "lstm": [(0, []), (5, []), (9, [(3, "O"), (4, "B-code"), (5, "B-code")])],
        "window": [(0, []), (5, [(3, "O")]), (9, [(3, "B-from"), (4, "O")])],
    }
    labels = example_of_labels()
    ladder = [
        replace(
            labels.ladder[place],
            name=name,
            family=name,
            not_trained="",
            confusion={},
            confused=[],
            reliability=[],
            answers=[],
            more={"accuracy": 0.97, "f1": 0.93, "label_accuracy": 0.94, "unseen_accuracy": 0.5},
            by_label=[("from", 0.98, 0.99, 0.985 - 0.2 * place, 700), ("code", 0.9, 0.5, 0.64, 33)],
            wrong_tags=found,
        )
        for place, (name, found) in enumerate(wrong.items())
    ]
    made = replace(
        labels,
        task="tags",
        kind="tag",
        metric=Metric("F1 over entities", "F1", digits=4, is_higher_better=True),
        ladder=ladder,
        gaps=[],
        winner="lstm",
        baseline={"name": "the most frequent tag of each word", "value": 0.8},
        examples=[],
        tagged=[(row, words.split(), tags.split()) for row, (words, tags) in zip((0, 5, 9), FLIGHTS, strict=True)],
    )
    return replace(made, **changes)


def nothing_finished() -> Comparison:
    """As the page is first written."""
    names = ["ngram", "hmm", "gpt"]
    waiting = [Entry(name, name, "char", "ladder", 2.5) for name in names]
    return example_comparison(
        ladder=[replace(waiting[0], status="running"), *waiting[1:]],
        final=[],
        gaps=[],
        winner=None,
        recommendation=[],
        seconds={},
        held_out_match=None,
        is_complete=False,
    )


def hostile(found: Any, name: str = "") -> Any:
    """The same with every string made hostile, and names still meeting."""
    if isinstance(found, str):
        return found if name in CHOSEN or not found else found + HOSTILE
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **{one.name: hostile(getattr(found, one.name), one.name) for one in fields(found)})
    if isinstance(found, dict):
        is_open = name in ("machine", "seconds", "limits")
        return {key + HOSTILE if is_open else key: hostile(value) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return type(found)(hostile(one) for one in found)
    return found


def _entry(
    name: str,
    value: float,
    parameters: int,
    num_bytes: int,
    seconds: float,
    speed: float,
    ms: float,
    memory: float,
    settings: str,
    stage: Any = "ladder",
) -> Entry:
    random, family = Random(name), name.removesuffix("-final")
    tokenizer = "bpe" if name == "gpt-final" else "char"
    half = 0.028 + 0.006 * value
    seeds = [value - 0.004, value + 0.004]
    return Entry(
        name,
        family,
        tokenizer,
        stage,
        2.5 if stage == "ladder" else 8,
        "done",
        runs=[f"runs/{name}-{seed}" for seed in range(2)],
        settings=settings,
        valid=value - 0.02,
        test=Figure(value, value - half, value + half),
        by_seed=seeds,
        more={"perplexity": 2**value},
        parameters=parameters,
        bytes_on_disk=num_bytes,
        training_seconds=seconds,
        training_tokens_per_second=parameters / 10,
        generation_tokens_per_second=speed,
        ms_per_token=ms,
        peak_bytes=int(memory),
        curve=_curve(random, value - 0.02, seconds),
        by_position=_by_position(random, family, value),
        samples=_samples(random),
        memorization=Match(28, "the old man behind her with "),
        surprise=_surprise(random, value, tokenizer),
    )


def _curve(random: Random, end: float, seconds: float) -> list[Point]:
    if seconds < 60:  # counted, in one go
        return [Point(seconds, 1_003_854, end)]
    shares = [0.02 * 1.16**number for number in range(27)]
    return [
        Point(share * seconds, int(share * seconds * 40_000), end + 0.35 * (share**-0.5 - 1) + random.gauss(0, 0.01))
        for share in [*(share for share in shares if share < 1), 1.0]
    ]


def _by_position(random: Random, family: str, value: float) -> list[tuple[int, float]]:
    reach = {"gpt": 256, "lstm": 128, "gru": 128, "conv": 24, "window": 16, "ngram": 6}.get(family, 3)
    places = [0, 1, 2, 4, 8, 16, 32, 64, 128, 255]
    return [(place, value + 1.6 / (1 + min(place, reach)) + random.gauss(0, 0.008)) for place in places]


def _samples(random: Random) -> list[str]:
    words = PASSAGE.split()
    starts = [random.randrange(len(words) - 20) for _ in range(8)]
    text = " ".join(" ".join(words[start : start + random.randint(3, 9)]) for start in starts)
    return [f"{text[:120]}\n\nELIN:\n{text[120:]} ", f"MARTEN:\nAnd the old man behind her with {text[:90]}"]


def _surprise(random: Random, value: float, tokenizer: str) -> list[tuple[str, float]]:
    """The first letters of words cost most; pieces of bpe are words here."""
    pieces = list(PASSAGE) if tokenizer == "char" else [f"{word} " for word in PASSAGE.split(" ")]
    found = []
    for before, piece in zip(["\n", *pieces], pieces, strict=False):
        weight = 2.4 if len(piece) > 1 else 2.0 if before in " \n" else 0.2 if piece in " ,." else 0.65
        found.append((piece, round(value * weight * random.lognormvariate(-0.1, 0.7), 3)))
    return found
