"""What views are put together of: a text whose tokens can have the focus, and what a map is drawn on."""

from __future__ import annotations


def strip_text(
    part: str, inside: str = "", *, needs_script: bool = True, has_below: bool = False, label: str = ""
) -> str:
    """The text, whose tokens can have the focus; `has_below`: with something written below each."""
    kinds = ["strip-text", *(["needs-script"] if needs_script else []), *(["has-below"] if has_below else [])]
    label = label or ("The source" if part == "source" else "The text")
    return (
        f'<div class="{" ".join(kinds)}" data-part="{part}" role="group" aria-label="{label}" dir="auto">{inside}</div>'
    )


def map_box(about: str, caption: str, *, kind: str = "map") -> str:
    """What the script draws on, with names along its sides where there is room."""
    return (
        '<figure class="needs-script"><div class="map-box" data-part="map-box">'
        '<div class="over" data-part="over" aria-hidden="true"></div>'
        '<div class="beside" data-part="beside" aria-hidden="true"></div>'
        f'<canvas data-part="map" class="{kind}" role="img" aria-label="{about}"></canvas></div>'
        f"<figcaption>{caption}</figcaption></figure>"
    )
