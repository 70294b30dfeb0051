"""The gallery: every figure of the shipped results, with its caption and what the ledger says of it."""

from __future__ import annotations

import html
from pathlib import Path

from separatrix.sources.catalogue import documents

from .pictures import GalleryView, gallery_views, write_thumbnail

FOLDER = "figures"


def write_gallery(pages: Path) -> Path:
    """Write ``gallery.md`` and its pictures."""
    titles = {key: document.title for key, document in documents().items()} | {"separatrix": "Our own experiments"}
    cards: dict[str, list[str]] = {key: [] for key in titles}
    for view in gallery_views():
        cards.setdefault(view.document, []).append(card(view, write_thumbnail(view, pages / FOLDER)))
    n_figures = sum(map(len, cards.values()))
    lines = [
        "# Gallery",
        "",
        f"{n_figures} figures, drawn from the results that come with the package. Nothing need be",
    ]
    lines += ["run: `separatrix report --published` writes the same pictures with their tables and verdicts.", ""]
    for key, found in cards.items():
        if found:
            lines += [f"## {titles.get(key, key)}", "", f'<div class="gallery">{"".join(found)}</div>', ""]
    page = pages / "gallery.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    return page


def card(view: GalleryView, stem: str) -> str:
    """A figure on one card: picture, caption, verdicts."""
    caption, place = html.escape(view.figure.caption), html.escape(view.place)
    ledger = html.escape(view.figure.ledger)
    picture = f'<a href="{FOLDER}/{stem}.svg"><img src="{FOLDER}/{stem}.png" alt="{caption}" loading="lazy"></a>'
    head = f"<strong><code>{view.experiment}</code></strong> {place}, {view.scale} scale"
    return f"<figure>{picture}<figcaption>{head}<br>{caption}<br><em>{ledger}</em></figcaption></figure>"
