"""The map in docs/architecture.md, made of the sentence that each file of the package opens with: make map"""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path

DOCS = Path(__file__).parent
PACKAGE = DOCS.parent / "src" / "seqwise"
PAGE = DOCS / "architecture.md"
BEGIN, END = "<!-- the map begins -->\n", "<!-- the map ends -->\n"
ORDER = (
    *("", "pages", "text", "data", "layers", "kernels", "models", "decoding", "evaluation", "goals", "tasks"),
    *("training", "inspection", "interop", "comparison", "recipes", "serving", "cli"),
)
"""Of the folders: the order in which they use each other. "" has the files beside them."""
ASSETS = {".css": "Style sheet of a page.", ".js": "Script of a page."}


def first_sentence(path: Path) -> str:
    """The first paragraph of what a file says of itself, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|").replace("<", "&lt;")


def files() -> list[Path]:
    """Of the package, by folder; those of pages stand behind the code."""
    found = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.suffix in (".py", *ASSETS)]
    return sorted(found, key=lambda path: (ORDER.index(folder_of(path)), path.suffix != ".py", path.as_posix()))


def folder_of(path: Path) -> str:
    return path.parts[0] if len(path.parts) > 1 else ""


def write_map() -> str:
    lines = []
    for folder, group in groupby(files(), key=folder_of):
        paths = list(group)
        opening = first_sentence(PACKAGE / folder / "__init__.py") if folder else "Beside the stages."
        lines += [f"**`{folder or 'seqwise'}/`** {opening}", "", "| file | what it is |", "| --- | --- |"]
        for path in paths:
            if path != Path(folder) / "__init__.py":
                lines.append(f"| `{path.as_posix()}` | {ASSETS.get(path.suffix) or first_sentence(PACKAGE / path)} |")
        lines.append("")
    names = ", ".join(f"`{path.stem}`" for path in sorted((PACKAGE / "recipes").glob("*.toml")))
    return "\n".join([*lines, f"**`recipes/`** Settings that reach a published figure: {names}.", "", ""])


def with_map(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{write_map()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_map(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
