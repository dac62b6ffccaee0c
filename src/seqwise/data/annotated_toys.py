"""Labels and tags that every machine has: no download, and no file of ours.

    cldr-languages   a country, a language, a day or a month, and in which language it is named (CLDR, by Babel)
    python-roles     lines of Python's standard library, word by word, and what each word is (by its own tokenizer)

Both are the same wherever Babel and Python are; others differ a little, and a run records the fingerprint of its data.
"""

from __future__ import annotations

import builtins
import io
import keyword
import sysconfig
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..errors import DataError
from .annotated import LabelledRow
from .pair_split import place_in_shuffle
from .tag_layouts import Sentence

LANGUAGES = (
    *("cs", "da", "de", "en", "es", "et", "fi", "fr", "hr", "hu", "id", "it", "lv", "nl", "pl", "pt", "ro", "sv", "tr"),
    *("vi", "bg", "el", "mk", "ru", "uk"),  # the last five in other scripts, four of them in one
)
MAX_NAMES = 20_000
MAX_WORDS = 200_000
MAX_LINE_CHARACTERS = 60  # words; longer ones are texts in quotes by rule
BUILTIN_NAMES = frozenset(dir(builtins))
DEFINING = ("def", "class")
NO_WORDS = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)
ROLES = {tokenize.NUMBER: "number", tokenize.COMMENT: "comment", tokenize.OP: "operator"}


# -- names and their languages -------------------------------------------------------------------------------------


def language_rows() -> list[LabelledRow]:
    """Names that only one of the languages has, so that each has one answer."""
    try:
        import babel
    except ImportError:
        raise DataError("cldr-languages: Babel carries these names; install it with: pip install Babel") from None
    names = {language: set(_names_of(babel.Locale.parse(language))) for language in LANGUAGES}
    counts = Counter(name for found in names.values() for name in found)
    rows = [LabelledRow((name,), language) for language, found in names.items() for name in found if counts[name] == 1]
    return sorted(rows, key=lambda row: place_in_shuffle(row.texts[0]))[:MAX_NAMES]


def _names_of(locale: object) -> Iterator[str]:
    for kind in ("territories", "languages"):
        yield from getattr(locale, kind).values()
    for kind in ("days", "months"):
        yield from getattr(locale, kind)["format"]["wide"].values()


# -- words of Python and their roles -------------------------------------------------------------------------------


def role_sentences() -> list[Sentence]:
    """Logical lines of the library's modules, each once, until there are enough words."""
    folder = Path(sysconfig.get_path("stdlib"))
    found: dict[tuple[str, ...], Sentence] = {}
    num_words = 0
    for path in sorted(folder.glob("*.py"), key=lambda path: place_in_shuffle(path.name)):
        for line in roles_in(path.read_text(encoding="utf-8", errors="replace")):
            if line.words not in found and len(line.words) <= MAX_LINE_CHARACTERS:
                found[line.words] = line
                num_words += len(line.words)
        if num_words >= MAX_WORDS:
            break
    return list(found.values())


def roles_in(source: str) -> Iterator[Sentence]:
    """'return len(x)  # how many' -> return len ( x ) # how many, and keyword builtin operator name operator comment …

    What stands in quotes or behind # is cut at white space, each piece with the role of the whole.
    """
    words: list[str] = []
    roles: list[str] = []
    start, before = 0, ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NEWLINE or (token.type == tokenize.NL and set(roles) == {"comment"}):
                if words:
                    yield Sentence(start, tuple(words), tuple(roles))
                words, roles, before = [], [], ""
            elif token.type not in NO_WORDS:
                start = start if words else token.start[0]
                pieces = token.string.split()
                words += pieces
                roles += [_role(token, before)] * len(pieces)
                before = token.string
    except (tokenize.TokenError, SyntaxError):  # a file that is no Python ends there
        return


def _role(token: tokenize.TokenInfo, before: str) -> str:
    if token.type != tokenize.NAME:
        return ROLES.get(token.type, "string")  # strings with fields in them come in pieces
    if keyword.iskeyword(token.string):
        return "keyword"
    if before in DEFINING:
        return "definition"
    if before == ".":
        return "attribute"
    return "builtin" if token.string in BUILTIN_NAMES else "name"
