"""Public data sets of questions on passages: rows of PUBLIC.

The 87,599 questions of SQuAD 1.1 to train on are not here: a sample of 4,285 is, and squadshifts, whose passages are
others (Miller et al. 2020).
"""

from __future__ import annotations

from .public_annotated import Source
from .public_rows import PublicData, PublicFile

SQUAD = "take train-v1.1.json and dev-v1.1.json of rajpurkar.github.io/SQuAD-explorer, and give these files instead"
SOURCES = [
    Source(
        "squad",
        "",
        {
            "dev-v1.1.rebuilt.json": ("6c5b4b0c2e7f0b28e3020f347b57c862d39b9d9871617efb96060557a9e9baf2", 4_842_744),
            "dev-v2.0.rebuilt.json": ("c90317f40f44a8e4ae39b65137ffae220e53e49348a85e062bddeca29f29fffd", 3_884_765),
            "train_sample.context": ("3083765503c795dd56cb5976b3d3f45adc0351619f197d3598aaa5e853f98be4", 3_479_237),
            "train_sample.question": ("2d503307d5dcc06ff313a89e3c3e1363513998b26f464a5326fe10dc8de44f66", 255_822),
            "train_sample.answer": ("b084416a6cb196d04e3cb16f6627e4902757a792081ea932df59daeb598ce8c9", 83_900),
            "train_sample.span": ("58dde149681d22856fccf85cc89b4c8c2e364e7f181fda8a468673e500888108", 26_406),
        },
    ),
    Source(
        "squadshifts",
        "modestyachts/squadshifts-website/b7cc4d50af791c36c49417fb94dd739d6a9e7bef/datasets",
        {
            "amazon_reviews_v1.0.json": (
                "9db7bdee84a91f0fb80b9e74f365042fbbb217cb8e0a7e73bb071245472589b6",
                4_177_842,
            ),
            "new_wiki_v1.0.json": ("1d50a0ca4cdab88d038b52ea8a2d0510af6038d7f41a0a256b9659237769d0ee", 3_607_393),
        },
    ),
    Source(
        "xquad",
        "deepmind/xquad/60cac411649156efb6aab9dd4c9cde787a2c0345",
        {
            "xquad.en.json": ("e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29", 609_383),
            "xquad.de.json": ("990b5d746746ed65ed4702ea5f35f99ffa4e2f1c390c07d003642acd937916f9", 669_810),
            "xquad.es.json": ("dcbae93ec3a9f4b9e78fd834a171d6f96c1a875e10e15b7530b7e4ef4971e37e", 684_322),
            "xquad.zh.json": ("691d0b3359bc6b8faa8de931dfdfe21d50a65861ae348e32a0d1a0190b0c8835", 808_652),
        },
    ),
]
FILES = {file.path: file for source in SOURCES for file in source.public_files()}
SAMPLE = {kind: f"squad/train_sample.{kind}" for kind in ("context", "question", "answer", "span")}
SHIFTS = {"new_wiki": "squadshifts/new_wiki_v1.0.json", "amazon": "squadshifts/amazon_reviews_v1.0.json"}
DEV = "squad/dev-v1.1.rebuilt.json"


def _files(paths: dict[str, str]) -> dict[str, PublicFile]:
    return {name: FILES[path] for name, path in paths.items()}


def _row(title: str, licence: str, how_to_get: str = "", **paths: str) -> PublicData:
    return PublicData(f"Questions: {title}", licence, _files(paths), holds="spans", how_to_get=how_to_get)


QUESTIONS = {
    "squad": _row(
        "SQuAD 1.1, of whose training part 4,285 are there; its dev part, 10,570, tests",
        "CC BY-SA 4.0",
        SQUAD,
        **SAMPLE,
        test=DEV,
    ),
    "squad-v2": _row(
        "the dev part of SQuAD 2.0, 11,873, half of them without an answer; split here by article",
        "CC BY-SA 4.0",
        SQUAD.replace("1.1", "2.0"),
        train="squad/dev-v2.0.rebuilt.json",
    ),
    "squad-small": _row(
        "SQuAD's sample and squadshifts, 22,108, to train on; the dev part of SQuAD 1.1 tests",
        "CC BY-SA 4.0; squadshifts: none stated",
        SQUAD,
        **SAMPLE,
        **SHIFTS,
        test=DEV,
    ),
    "squadshifts": _row("17,823 on new articles of Wikipedia and on Amazon reviews", "none stated", **SHIFTS),
    "xquad": _row(
        "1,190 of SQuAD's dev part in English; xquad:de, xquad:es, xquad:zh are translations",
        "CC BY-SA 4.0",
        **{language: f"xquad/xquad.{language}.json" for language in ("en", "de", "es", "zh")},
    ),
}
