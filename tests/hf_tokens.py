"""Small tokenizers in the layout of Hugging Face, by the library `tokenizers` alone."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = "Shall I compare thee to a summer's day? Thou art more lovely, and more temperate: a day, 12 days!\n" * 5
LINES = ["Thou art more lovely", "a", "Shall I compare thee to a summer's day? Thou art"]
END = "<|endoftext|>"
BERT = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
ROBERTA = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}
ROLES = {"bert": BERT, "roberta": ROBERTA, "albert": BERT, "gpt2": {"bos_token": END, "eos_token": END}}


def _bert() -> Tokenizer:
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=90, special_tokens=list(BERT.values()), show_progress=False)
    backend.train_from_iterator(TEXT.splitlines(), trainer)
    backend.post_processor = _around(backend)
    return backend


def _albert() -> Tokenizer:
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=80, special_tokens=list(BERT.values()), unk_token="[UNK]", show_progress=False
    )
    backend.train_from_iterator(TEXT.splitlines(), trainer)
    backend.post_processor = _around(backend)
    return backend


def _around(backend: Tokenizer) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )


def _byte_pairs(special: list[str]) -> Tokenizer:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=special,
        show_progress=False,
    )
    backend.train_from_iterator(TEXT.splitlines(), trainer)
    return backend


def _roberta() -> Tokenizer:
    backend = _byte_pairs(list(ROBERTA.values()))
    backend.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return backend


def _gpt2() -> Tokenizer:
    return _byte_pairs([END])


@functools.cache
def tokens(name: str) -> Tokenizer:
    return {"bert": _bert, "roberta": _roberta, "albert": _albert, "gpt2": _gpt2}[name]()


TOKENS = {name: tokens(name).get_vocab_size() for name in ROLES}
"""How many each has."""


def write_tokens(name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokens(name).save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **ROLES[name]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
