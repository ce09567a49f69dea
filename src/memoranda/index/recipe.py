"""What determines a derivative, and the manifest that says what an index directory holds.

A recipe is a name, a version and parameters; its digest names the directory of the index that it makes, so two
recipes never share one, and a changed parameter is a new index and not a silent mix. The manifest is for people
and for `index status`: what an index answers from is inside the index itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from memoranda.errors import IndexDamaged

MANIFEST = "manifest.json"
VECTORS = "vectors"  # the indexes of vectors, one a model
GRAPH, OUTLINE = "graph", "outline"  # the indexes of structure, see `structure`


class Recipe(NamedTuple):
    """`name` (one word), `version` (of the code that makes it), `params` (JSON values only)."""

    name: str
    version: int
    params: Mapping[str, object] = MappingProxyType({})

    def digest(self) -> str:
        """64 hex characters of SHA-256 over the canonical JSON of the three."""
        canonical = json.dumps([self.name, self.version, dict(self.params)], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def directory_name(self) -> str:
        """`lexical-0123456789ab`: the name and the first 12 characters of the digest."""
        return f"{self.name}-{self.digest()[:12]}"


class Manifest(NamedTuple):
    """What an index directory says of itself.

    `inputs` is what it reflects (commit, log position), `built_at` an instant in RFC 3339, `took_ms` how long the
    last full build took, `counts` documents by state.
    """

    recipe: Recipe
    inputs: Mapping[str, str]
    built_at: str
    took_ms: int
    counts: Mapping[str, int]

    def write(self, directory: Path) -> None:
        """Replaces `manifest.json` in one step; a reader sees the former one or this one."""
        document = {
            "recipe": {"name": self.recipe.name, "version": self.recipe.version, "params": dict(self.recipe.params)},
            "digest": self.recipe.digest(),
            "inputs": dict(self.inputs),
            "built_at": self.built_at,
            "took_ms": self.took_ms,
            "counts": dict(self.counts),
        }
        target = directory / MANIFEST
        draft = directory / f"{MANIFEST}.{os.getpid()}.tmp"
        draft.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(target)


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest of an index directory, or None where there is none.

    Raises:
        IndexDamaged: it cannot be read, or its digest is not that of its recipe.
    """
    try:
        text = (directory / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(directory) from error
    try:
        document = json.loads(text)
        recipe = Recipe(document["recipe"]["name"], document["recipe"]["version"], document["recipe"]["params"])
        manifest = Manifest(recipe, document["inputs"], document["built_at"], document["took_ms"], document["counts"])
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(directory) from error
    if recipe.digest() != document.get("digest"):
        raise _damaged(directory)
    return manifest


def _damaged(directory: Path) -> IndexDamaged:
    return IndexDamaged(
        f"The manifest of the index {directory.name} cannot be read.",
        remedy="Run `memoranda index rebuild`: an index is only a cache.",
    )
