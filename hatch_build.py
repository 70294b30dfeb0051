"""What the package index shows: the README with links that lead somewhere, and where the project lives.

The index shows the description alone, so a link to ``docs/x.md`` is dead there. Where the project lives is known to
the machine that releases it (``GITHUB_SERVER_URL`` and ``GITHUB_REPOSITORY``, set by the host of the workflow) and is
not written down a second time here; a build elsewhere keeps the README as it is and names no addresses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\])\((?![a-z]+:|#)([^)\s]+)\)")


class IndexPage(MetadataHookInterface):
    """Fills ``readme`` and ``urls`` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by the builder."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        home, ref = home_of(os.environ)
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, home, ref) if home else text}
        metadata["urls"] = urls(home, ref) if home else {}


def home_of(env: Mapping[str, str]) -> tuple[str, str]:
    """The address of the repository ("" where unknown) and the tag that is built, or HEAD."""
    server, name = env.get("GITHUB_SERVER_URL", ""), env.get("GITHUB_REPOSITORY", "")
    ref = env.get("GITHUB_REF_NAME", "") if env.get("GITHUB_REF_TYPE") == "tag" else ""
    return (f"{server}/{name}" if server and name else ""), ref or "HEAD"


def absolute(text: str, home: str, ref: str) -> str:
    """The text with every relative link and picture led to the repository, outside of code blocks."""

    def lead(found: re.Match[str]) -> str:
        bang, words, path = found.groups()
        return f"{bang}{words}({home}/{'raw' if bang else 'blob'}/{ref}/{path})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(lead, part) for part in parts)


def urls(home: str, ref: str) -> dict[str, str]:
    """What the index lists beside the description."""
    return {
        "Source": home,
        "Documentation": f"{home}/blob/{ref}/docs/index.md",
        "Changelog": f"{home}/blob/{ref}/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }
