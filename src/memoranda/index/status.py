"""What there is in `.memoranda/`, told without changing any of it."""

from __future__ import annotations

from pathlib import Path

from memoranda.errors import IndexDamaged
from memoranda.index.content import Part
from memoranda.index.indexes import REBUILDING, Indexes
from memoranda.index.journal_mode import named_errors
from memoranda.index.opening import MODELS
from memoranda.index.recipe import Manifest, Recipe, read_manifest
from memoranda.index.tables import RECIPE as CATALOG
from memoranda.values import dataclass

_Held = tuple[dict[str, str], dict[str, int]] | None


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One directory of `.memoranda/`: `state` is fresh, behind, missing, damaged or foreign.

    `serves` says whether recall answers from it; what stands beside it for another recipe is brought up when used.
    """

    name: str
    recipe: Recipe | None
    state: str
    inputs: dict[str, str]
    counts: dict[str, int]
    built_at: str | None
    took_ms: int | None
    bytes: int
    serves: bool


def index_states(indexes: Indexes) -> list[IndexStatus]:
    """Every index there is or should be, by name."""
    with indexes.lock:
        cache = indexes.repository.layout.cache
        record, recipes = indexes.kept()
        parts = {part.name: part for recipe in recipes for part in recipe.parts}
        kept = parts.keys() | {name for entry in record.kept.values() for name in entry.indexes}
        serving = {CATALOG.directory_name(), *(part.name for part in recipes[0].parts)}
        held = _held(indexes)
        found = {path.name for path in cache.iterdir() if path.is_dir()} if cache.is_dir() else set()
        return [
            _one(indexes, held, cache / name, parts.get(name), name in found, name in serving, name in kept)
            for name in sorted((found - {MODELS, REBUILDING}) | serving)
        ]


def _held(indexes: Indexes) -> tuple[dict[str, str], dict[str, int]] | None:
    """(inputs, counts) of the catalog, which the others are compared with; None when it cannot be read."""
    try:
        with named_errors("The catalog"):
            catalog = indexes.catalog
            inputs = {name: catalog.state(name) or "" for name in ("commit", "seq", "ledger")}
            return inputs, {"notes": catalog.count_notes(), "journal": catalog.count_entries()}
    except IndexDamaged:
        return None


def _one(
    indexes: Indexes, held: _Held, directory: Path, part: Part | None, exists: bool, serves: bool, kept: bool
) -> IndexStatus:
    name = directory.name
    recipe = CATALOG if name == CATALOG.directory_name() else part.recipe if part else None
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) if exists else 0
    if not exists:
        return IndexStatus(name, recipe, "missing", {}, {}, None, None, 0, serves)
    try:
        manifest = read_manifest(directory)
        if recipe is None:
            other = manifest.recipe if manifest else None
            return IndexStatus(name, other, "behind" if kept else "foreign", {}, {}, None, None, size, False)
        with named_errors(f"The index {name}"):
            inputs, counts, state = _inside(indexes, held, part, manifest)
    except IndexDamaged:
        return IndexStatus(name, recipe, "damaged", {}, {}, None, None, size, serves)
    built, took = (manifest.built_at, manifest.took_ms) if manifest else (None, None)
    return IndexStatus(name, recipe, state, inputs, counts, built, took, size, serves)


def _inside(
    indexes: Indexes, held: _Held, part: Part | None, manifest: Manifest | None
) -> tuple[dict[str, str], dict[str, int], str]:
    """(inputs, counts, state) of one of our own indexes as it stands; of the catalog `part` is None."""
    if part is None and held is None:
        raise IndexDamaged("The catalog cannot be read.", remedy="Run `memoranda index rebuild`.")
    snapshot = indexes.repository.snapshot()
    inputs, counts = held or ({}, {})
    fresh = inputs.get("commit") == (snapshot.commit or "") and int(inputs["seq"] or 0) >= snapshot.seq
    if part is None:
        return inputs, counts, "fresh" if fresh else "behind"
    index = indexes.opened(part)
    if index is None:
        return dict(manifest.inputs) if manifest else {}, dict(manifest.counts) if manifest else {}, "behind"
    counted = index.counts()
    level = held is not None and part.is_level(indexes.catalog, index)
    state = "fresh" if fresh and level else "behind"
    return inputs if level else {}, {"live": counted.live, "retired": counted.retired}, state
