"""What there is in `.memoranda/`, told without changing any of it."""

from __future__ import annotations

from pathlib import Path

from memoranda.errors import IndexDamaged
from memoranda.index.content import Part
from memoranda.index.indexes import MODELS, Indexes
from memoranda.index.recipe import Manifest, Recipe, read_manifest
from memoranda.index.tables import RECIPE as CATALOG
from memoranda.values import dataclass


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
        found = {path.name for path in cache.iterdir() if path.is_dir()} if cache.is_dir() else set()
        return [
            _one(indexes, cache / name, parts.get(name), name in found, name in serving, name in kept)
            for name in sorted((found - {MODELS}) | serving)
        ]


def _one(indexes: Indexes, directory: Path, part: Part | None, exists: bool, serves: bool, kept: bool) -> IndexStatus:
    name = directory.name
    recipe = CATALOG if name == CATALOG.directory_name() else part.recipe if part else None
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) if exists else 0
    if not exists:
        return IndexStatus(name, recipe, "missing", {}, {}, None, None, 0, serves)
    try:
        manifest = read_manifest(directory)
    except IndexDamaged:
        return IndexStatus(name, recipe, "damaged", {}, {}, None, None, size, serves)
    if recipe is None:
        other = manifest.recipe if manifest else None
        return IndexStatus(name, other, "behind" if kept else "foreign", {}, {}, None, None, size, False)
    built, took = (manifest.built_at, manifest.took_ms) if manifest else (None, None)
    inputs, counts, state = _inside(indexes, recipe, part, manifest)
    return IndexStatus(name, recipe, state, inputs, counts, built, took, size, serves)


def _inside(
    indexes: Indexes, recipe: Recipe, part: Part | None, manifest: Manifest | None
) -> tuple[dict[str, str], dict[str, int], str]:
    """(inputs, counts, state) of one of our own indexes as it stands."""
    catalog, snapshot = indexes.catalog, indexes.repository.snapshot()
    inputs = {name: catalog.state(name) or "" for name in ("commit", "seq", "ledger")}
    fresh = inputs["commit"] == (snapshot.commit or "") and int(inputs["seq"] or 0) >= snapshot.seq
    if recipe == CATALOG:
        counts = {"notes": catalog.count_notes(), "journal": catalog.count_entries()}
        return inputs, counts, "fresh" if fresh else "behind"
    index = indexes.opened(part) if part else None
    if part is None or index is None:
        return dict(manifest.inputs) if manifest else {}, dict(manifest.counts) if manifest else {}, "behind"
    counted = index.counts()
    level = part.is_level(catalog, index)
    state = "fresh" if fresh and level else "behind"
    return inputs if level else {}, {"live": counted.live, "retired": counted.retired}, state
