"""Tokenizers of Hugging Face folders, in and out: the same ids as `transformers` gives, and the special tokens by role.

    tokenizer.json                  all of a tokenizer: WordPiece (BERT), byte pairs (GPT-2, RoBERTa), unigram (ALBERT)
    vocab.txt                       the pieces of a WordPiece; how it reads is told by tokenizer_config.json. Or the
                                    symbols of molecules as SMILES writes them (Weininger 1988), cut by its grammar
    vocab.json, merges.txt          byte pairs
    tokenizer_config.json,          names of special tokens: cls_token, sep_token, bos_token, eos_token, mask_token, …
    special_tokens_map.json

Where tokenizer.json says what it puts around texts, the roles follow from that: [CLS] a [SEP] b [SEP] is a begin and a
separator, <s> a </s></s> b </s> (RoBERTa) has one more between. Where nothing is put around them (GPT-2), the tokens
that begin and end a document have these roles. Whether there are as many tokens as rows of an embedding is the caller's
to check. A line is read as `transformers` reads it; newlines are our boundary where a vocabulary drops them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from ..config import parse_json
from ..data.files import lines_of, read_text, writing
from ..data.schema import TokenSpec
from ..errors import ConfigError, DataError
from ..text import IN_WORDS, Tokenizer
from ..text.bpe import BPETokenizer
from ..text.pieces import NEWLINES, PieceTokenizer
from ..text.wordpiece import GOES_ON, WordPieceTokenizer

ROLE_NAMES = {
    "begin": ("cls_token", "bos_token"),
    "separator": ("sep_token", "eos_token"),
    "mask": ("mask_token",),
    "padding": ("pad_token",),
    "unknown": ("unk_token",),
}
"""What the files call each role."""
USUAL = {
    "begin": ("[CLS]", "<s>", "<|endoftext|>"),
    "separator": ("[SEP]", "</s>", "<|endoftext|>"),
    "mask": ("[MASK]", "<mask>"),
    "padding": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
}
"""How it is mostly written, where no file tells."""
PROBES = 1000  # pieces that are tried as a text, to see what is put around one
CONFIG, SPECIAL_MAP = "tokenizer_config.json", "special_tokens_map.json"
WORDPIECE_CLASSES = ("Bert", "DistilBert", "Electra", "MobileBert", "ConvBert", "Lxmert", "Funnel", "RetriBert", "DPR")
SMILES = "|".join(  # what a molecule is written with, each a token: longer ones first
    (
        r"\[[^\]]+\]",  # an atom with its charge, hydrogens, isotope
        *("Br", "Cl", "[BCNOPSFI]", "[bcnops]"),  # atoms that need no brackets; in a ring of shared electrons
        *("%[0-9]{2}", "[0-9]"),  # where rings are closed
        *(">>", r"[-=#$:~./\\()+@?>*]"),  # from what to what; bonds, branches and the rest
    )
)
MOLECULES = {"C", "c", "(", ")", "=", "[nH]"}
"""Symbols by which a list of them is known."""
ONE_BETWEEN = ("GPT2", "CLIP", "Codegen", "CodeGen")  # of classes with vocab.json: they do not double separators


# -- reading -------------------------------------------------------------------------------------------------------


def read_hf_tokenizer(folder: str | Path) -> tuple[Tokenizer, dict[str, int]]:
    """The tokenizer of a folder, and its special tokens by role, as `TokenSpec.special` wants them."""
    folder = Path(folder)
    told = {**_read_object(folder / SPECIAL_MAP), **_read_object(folder / CONFIG)}
    told = {name: value for name, value in told.items() if value is not None}
    if (path := folder / "tokenizer.json").is_file():
        return _read_whole(path, told)
    if (path := folder / "vocab.txt").is_file():
        return _read_wordpiece(path, told)
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return _read_byte_pairs(folder, told)
    binary = next((path for name in ("*.model", "*.spm") for path in folder.glob(name)), None)
    if binary is not None:
        raise DataError(
            f"{binary}: a SentencePiece file, which is not read here. Save the tokenizer with transformers, "
            "save_pretrained, which writes tokenizer.json."
        )
    raise DataError(
        f"{folder}: no tokenizer in it; expected tokenizer.json, or vocab.txt, or vocab.json and merges.txt."
    )


def _read_whole(path: Path, told: Mapping[str, Any]) -> tuple[Tokenizer, dict[str, int]]:
    saved = _read_object(path)
    try:
        saved |= {"truncation": None, "padding": None}  # a sentence encoder's: how it was called, not what it is
        with_ends = Backend.from_str(json.dumps(saved))
        backend = Backend.from_str(json.dumps({**saved, "post_processor": None}))
    except Exception as error:  # the library has no family of its own
        raise DataError(f"{path}: the library tokenizers cannot read it: {error}") from None
    _read_as_told(backend, told)
    roles = {**_roles_told(backend, told), **_roles_around(with_ends, path)}
    unknown = _unknown_of(backend, saved["model"])
    if unknown is not None:
        roles["unknown"] = unknown
    return _held(backend, roles, path)


def _held(backend: Backend, roles: dict[str, int], path: Path) -> tuple[Tokenizer, dict[str, int]]:
    """In a tokenizer of ours."""
    vocab = backend.get_vocab()
    try:
        if isinstance(backend.model, models.WordPiece):
            if "separator" not in roles:
                raise ValueError("no file says what its separator is")
            return WordPieceTokenizer(backend, separator=_name_of(backend, roles["separator"])), roles
        if isinstance(backend.model, models.BPE) and set(pre_tokenizers.ByteLevel.alphabet()) <= set(vocab):
            return BPETokenizer(backend), _without_idle_unknown(roles)
        newline = next((vocab[piece] for piece in NEWLINES if piece in vocab), roles.get("separator"))
        if newline is None:
            raise ValueError("it has no token for the newline, nor one that ends a text")
        return PieceTokenizer(backend, boundary=newline, unknown=roles.get("unknown")), roles
    except ValueError as error:
        raise DataError(f"{path}: {error}.") from None


def _without_idle_unknown(roles: dict[str, int]) -> dict[str, int]:
    """Byte pairs can write everything; GPT-2 calls its end of a document unknown too."""
    others = {token for role, token in roles.items() if role != "unknown"}
    return {role: token for role, token in roles.items() if role != "unknown" or token not in others}


def _read_as_told(backend: Backend, told: Mapping[str, Any]) -> None:
    """tokenizer_config.json has the last word, as in transformers."""
    normalizer, cutter = backend.normalizer, backend.pre_tokenizer
    if isinstance(normalizer, normalizers.BertNormalizer):
        for name, ours in {"do_lower_case": "lowercase", "tokenize_chinese_chars": "handle_chinese_chars"}.items():
            if name in told:
                setattr(normalizer, ours, bool(told[name]))
        if "strip_accents" in told:
            normalizer.strip_accents = bool(told["strip_accents"])
        backend.normalizer = normalizer
    if isinstance(cutter, pre_tokenizers.ByteLevel) and "add_prefix_space" in told:
        cutter.add_prefix_space = bool(told["add_prefix_space"])
        backend.pre_tokenizer = cutter


def _read_wordpiece(path: Path, told: Mapping[str, Any]) -> tuple[Tokenizer, dict[str, int]]:
    kind = str(told.get("tokenizer_class", WORDPIECE_CLASSES[0]))
    pieces = list(lines_of(read_text(path)))
    if not kind.startswith(WORDPIECE_CLASSES):
        raise DataError(f'{path}: a vocabulary of "{kind}", which is not known here; WordPiece of BERT is.')
    if MOLECULES.issubset(pieces):
        return _read_smiles(path, pieces, told)
    if not any(piece.startswith(GOES_ON) for piece in pieces):
        raise DataError(f'{path}: no piece begins with "{GOES_ON}", so this is not a WordPiece vocabulary.')
    names = _names(told, pieces)
    if missing := {"unknown", "separator"} - names.keys():
        raise DataError(f"{path}: it has no token for {' and '.join(sorted(missing))}.")
    special = set(names.values())
    has_capitals = any(piece != piece.lower() for piece in pieces if piece not in special)
    try:
        tokenizer = WordPieceTokenizer.of_pieces(
            pieces,
            lower_case=bool(told.get("do_lower_case", not has_capitals)),
            strip_accents=told.get("strip_accents"),
            split_chinese=bool(told.get("tokenize_chinese_chars", True)),
            special=names.values(),
            unknown=names["unknown"],
            separator=names["separator"],
        )
    except ValueError as error:
        raise DataError(f"{path}: {error}.") from None
    return tokenizer, {role: pieces.index(name) for role, name in names.items()}


def _read_smiles(path: Path, pieces: list[str], told: Mapping[str, Any]) -> tuple[Tokenizer, dict[str, int]]:
    """Each symbol is a token, and one that the list does not have is unknown; what is no symbol is left out."""
    names = _names(told, pieces)
    if missing := {"unknown", "separator"} - names.keys():
        raise DataError(f"{path}: it has no token for {' and '.join(sorted(missing))}.")
    if len(set(pieces)) < len(pieces):
        raise DataError(f"{path}: a symbol is there twice.")
    backend = Backend(models.WordLevel({piece: number for number, piece in enumerate(pieces)}, names["unknown"]))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(SMILES), behavior="removed", invert=True)
    backend.decoder = decoders.Fuse()
    backend.add_special_tokens(list(names.values()))
    return _held(backend, {role: pieces.index(name) for role, name in names.items()}, path)


def _read_byte_pairs(folder: Path, told: Mapping[str, Any]) -> tuple[Tokenizer, dict[str, int]]:
    vocab = _read_ids(folder / "vocab.json")
    backend = Backend(models.BPE(vocab, _read_merges(folder / "merges.txt", vocab)))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(told.get("add_prefix_space", False)))
    backend.decoder = decoders.ByteLevel()
    more = _read_ids(folder / "added_tokens.json")
    names = _names(told, [*vocab, *more])
    in_order = [*sorted(more, key=more.__getitem__), *(name for name in names.values() if name not in more)]
    backend.add_special_tokens([_added(name, names, told) for name in in_order])
    for name, token in more.items():
        if backend.token_to_id(name) != token:
            raise DataError(f"{folder / 'added_tokens.json'}: {name} has the id {token}, which is not free.")
    ids = backend.get_vocab()
    roles = {role: ids[name] for role, name in names.items()}
    is_doubled = {"<s>", "</s>"} <= vocab.keys() and not str(told.get("tokenizer_class", "")).startswith(ONE_BETWEEN)
    return _held(backend, {**roles, **({"between": roles["separator"]} if is_doubled else {})}, folder / "vocab.json")


def _read_ids(path: Path) -> dict[str, int]:
    """Pieces with their ids; none where there is no such file."""
    found = _read_object(path)
    for piece, token in found.items():
        if type(token) is not int or token < 0:
            raise DataError(f'{path}: "{piece}" has the id {token}; ids are whole numbers from 0.')
    return found


def _read_merges(path: Path, vocab: Mapping[str, int]) -> list[tuple[str, str]]:
    """Pairs that are joined, the first ones first. The library ends the process where one is not in the vocabulary."""
    merges = []
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if not line or line.startswith("#version"):
            continue
        first, _, second = line.partition(" ")
        if not second or " " in second:
            raise DataError(f'{path}: line {number}: "{line[:40]}", expected two pieces.')
        if lacking := next((piece for piece in (first, second, first + second) if piece not in vocab), ""):
            raise DataError(f'{path}: line {number}: "{lacking}" is not in vocab.json.')
        merges.append((first, second))
    return merges


def _added(name: str, names: Mapping[str, str], told: Mapping[str, Any]) -> AddedToken:
    """RoBERTa's mask takes the space before it, so that what is guessed begins with one."""
    how = next((value for value in told.values() if isinstance(value, dict) and value.get("content") == name), {})
    takes_space = bool(how.get("lstrip", name == names.get("mask") == "<mask>"))
    return AddedToken(name, lstrip=takes_space, rstrip=bool(how.get("rstrip")), normalized=False, special=True)


def _names(told: Mapping[str, Any], known: Any) -> dict[str, str]:
    """The special tokens by role, as they are written: those that files tell, else the usual ones; if known."""
    known, found = set(known), {}
    for role, usual in USUAL.items():
        written = [_content(told[name]) for name in ROLE_NAMES[role] if name in told]
        if name := next((name for name in (*written, *usual) if name in known), ""):
            found[role] = name
    return found


def _content(written: Any) -> str:
    """A name, or an object that has it."""
    return str(written.get("content", "")) if isinstance(written, dict) else str(written)


def _name_of(backend: Backend, token: int) -> str:
    return str(backend.id_to_token(token))


def _roles_told(backend: Backend, told: Mapping[str, Any]) -> dict[str, int]:
    vocab = backend.get_vocab()
    return {role: vocab[name] for role, name in _names(told, vocab).items()}


def _roles_around(backend: Backend, path: Path) -> dict[str, int]:
    """What is put before, between and behind two texts."""
    written = next((text for text in ("a", *islice(backend.get_vocab(), PROBES)) if _is_read(backend, text)), "a")
    pair = backend.encode(written, written)
    texts = [place for place, number in enumerate(pair.sequence_ids) if number is not None]
    seconds = [place for place, number in enumerate(pair.sequence_ids) if number == 1]
    if not texts or not seconds:
        return {}
    ids, roles = pair.ids, dict[str, int]()
    before, behind = ids[: texts[0]], ids[texts[-1] + 1 :]
    between = [ids[place] for place in range(texts[0], seconds[0]) if pair.sequence_ids[place] is None]
    if len(before) > 1 or len(behind) > 1:
        around = " ".join(pair.tokens)
        raise DataError(f"{path}: it puts more than one token before or behind texts, {around}; one is known here.")
    if before:
        roles["begin"] = before[0]
    if behind:
        roles["separator"] = behind[0]
    if len(between) == 2 and between[:1] == behind:
        roles["between"] = between[1]
    return roles


def _is_read(backend: Backend, text: str) -> bool:
    """Whether it is a text to this tokenizer: not nothing, nor a special token."""
    found = backend.encode(text, add_special_tokens=False).ids
    return bool(found) and not set(found) & backend.get_added_tokens_decoder().keys()


def _unknown_of(backend: Backend, saved: Mapping[str, Any]) -> int | None:
    """The token in the place of what the model does not have, as the model itself says."""
    name, place = saved.get("unk_token"), saved.get("unk_id")
    return place if place is not None else backend.token_to_id(name) if name else None


def _read_object(path: Path) -> dict[str, Any]:
    """An object of JSON; an empty one where there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = parse_json("".join(read_text(path)))
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected an object of JSON.")
    return found


# -- writing -------------------------------------------------------------------------------------------------------


def write_hf_tokenizer(spec: TokenSpec, folder: str | Path, *, tells_texts: bool | None = None) -> None:
    """tokenizer.json and what tells the roles, so that transformers gives the ids of `spec`: those of its tokenizer for
    a line, and with special tokens those of `encode_texts`. `tells_texts`: whether the model wants to know which of two
    texts a token belongs to; where not told, models of byte pairs do not, as RoBERTa and GPT-2."""
    tokenizer, folder = spec.tokenizer, Path(folder)
    if not isinstance(tokenizer, BPETokenizer | WordPieceTokenizer | PieceTokenizer):
        raise ConfigError(
            f"a Hugging Face folder holds byte pairs or pieces of words, and these are tokens of "
            f"{IN_WORDS.get(tokenizer.kind, tokenizer.kind)}. Train with --tokenizer bpe or --tokenizer wordpiece."
        )
    backend = Backend.from_str(tokenizer.backend.to_str())
    _add_behind(backend, spec.special)
    if {"begin", "separator"} & spec.special.keys():
        backend.post_processor = _around(backend, spec)
    names = {
        name: _name_of(backend, token)
        for role, token in spec.special.items()
        for name in ROLE_NAMES.get(role, ())
        if name not in ("bos_token", "eos_token") or not isinstance(tokenizer, WordPieceTokenizer)
    }
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **names}
    if tells_texts if tells_texts is not None else not isinstance(tokenizer, BPETokenizer):
        config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "tokenizer.json", backend.to_str(pretty=True))
    _write(folder / CONFIG, json.dumps(config, indent=2, ensure_ascii=False))
    _write(folder / SPECIAL_MAP, json.dumps(names, indent=2, ensure_ascii=False))
    if isinstance(tokenizer, WordPieceTokenizer):
        vocab = backend.get_vocab()
        _write(folder / "vocab.txt", "".join(f"{piece}\n" for piece in sorted(vocab, key=vocab.__getitem__)))


def _add_behind(backend: Backend, special: Mapping[str, int]) -> None:
    """Special tokens that lie behind those of the tokenizer, under their usual names."""
    for role, token in sorted(special.items(), key=lambda item: item[1]):
        if backend.id_to_token(token) is None:
            name = next((name for name in USUAL.get(role, ()) if backend.token_to_id(name) is None), f"<{role}>")
            backend.add_special_tokens([name])
            if backend.token_to_id(name) != token:
                raise ConfigError(f"the special token {role} has the id {token}, with ids before it that nothing has.")


def _around(backend: Backend, spec: TokenSpec) -> processors.TemplateProcessing:
    """[CLS] a [SEP] b [SEP]"""
    begin, *between = (_name_of(backend, token) for token in (spec.begin, *spec.behind(is_last=False)))
    (end,) = (_name_of(backend, token) for token in spec.behind(is_last=True))
    first = [f"{begin}:0", "$A:0"]
    pair = [*first, *(f"{name}:0" for name in between), "$B:1", f"{end}:1"]
    used = {name: backend.token_to_id(name) for name in (begin, *between, end)}
    return processors.TemplateProcessing(single=[*first, f"{end}:0"], pair=pair, special_tokens=list(used.items()))


def _write(path: Path, text: str) -> None:
    with writing(path) as file:
        file.write(text.encode("utf-8"))
