"""An erasing that is decided: what has to be done to finish it, in ids and numbers, so that a crash cannot stop it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memoranda.errors import HomeDamaged
from memoranda.home.durable import sync_path, write_durably
from memoranda.home.erasing.erasures import Map, Moved, write_map
from memoranda.home.erasing.needles import Needles

PLAN = "plan.json"
OBJECTS = "objects.map"
TESTIMONY = "testimony"  # in the header: lines that the ledger gets with the erasing


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that have to go: `first` to `last` (from 1, both included) of the blob `blob`, in every version."""

    blob: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`heads` are the old and the new commit of `branch`, `tips` (old, new) of refs that go further than their objects.

    `gone` are the blobs that go whole and `lines` those of which lines go, `rare` and `common` say which words and
    lines of them stand elsewhere, by their place in the sorted list. `position` is the committer's, `packs` are those
    with the new objects, `header` is what the durable record begins with.
    """

    header: dict[str, Any]
    branch: str
    heads: tuple[str, str]
    ledger: tuple[str | None, str]
    tips: dict[str, tuple[str, str]]
    gone: tuple[str, ...]
    named: tuple[str, ...]
    lines: tuple[Lines, ...]
    rare: tuple[int, ...]
    common: tuple[int, ...]
    packs: tuple[str, ...]
    moved: dict[bytes, bytes | None] = field(default_factory=dict, compare=False)
    silent: set[bytes] = field(default_factory=set, compare=False)
    kinds: dict[bytes, str] = field(default_factory=dict, compare=False)
    hints: dict[bytes, bytes] = field(default_factory=dict, compare=False)  # not kept: only Git's packing is helped

    @property
    def day(self) -> str:
        return str(self.header["day"])

    def records(self, kinds: str = "bcgts") -> Iterable[Moved]:
        """What becomes of the objects of these kinds."""
        for old, new in self.moved.items():
            kind = self.kinds[old]
            if kind in kinds:
                yield Moved(kind.upper() if old in self.silent else kind, old, new)

    def mark_rare(self, needles: Needles) -> None:
        """Tells needles, which were made of the same texts again, what stands elsewhere."""
        words, phrases = needles.words_in_order(), needles.phrases_in_order()
        needles.rare = {words[at] for at in self.rare if at < len(words)}
        needles.common = {phrases[at] for at in self.common if at < len(phrases)}


def save(folder: Path, plan: Plan) -> None:
    """Decides: from the moment when this returns the erasing will be finished, whatever happens."""
    write_map(folder / OBJECTS, {}, plan.records())
    fields = {
        "header": plan.header, "branch": plan.branch, "heads": plan.heads, "ledger": plan.ledger, "tips": plan.tips,
        "gone": plan.gone, "named": plan.named, "lines": [asdict(item) for item in plan.lines], "rare": plan.rare,
        "common": plan.common, "packs": plan.packs,
    }  # fmt: skip
    write_durably(folder / PLAN, json.dumps(fields).encode("ascii"))
    sync_path(folder.parent)


def decided(folder: Path) -> bool:
    """Whether an erasing was decided and is not finished."""
    return (folder / PLAN).exists()


def load(folder: Path) -> Plan | None:
    """The plan that was decided, None when there is none."""
    try:
        raw: Mapping[str, Any] = json.loads((folder / PLAN).read_bytes())
    except FileNotFoundError:
        return None
    try:
        plan = Plan(
            raw["header"], raw["branch"], tuple(raw["heads"]), tuple(raw["ledger"]),
            {name: (old, new) for name, (old, new) in raw["tips"].items()},
            tuple(raw["gone"]), tuple(raw["named"]), tuple(Lines(**item) for item in raw["lines"]),
            tuple(raw["rare"]), tuple(raw["common"]), tuple(raw["packs"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise HomeDamaged(
            "The plan of an erasing that was cut short cannot be read.",
            why=str(error),
            remedy="Restore the Home's Git directory from a backup, or clone the Home again.",
        ) from error
    for item in Map.read(folder / OBJECTS):
        plan.moved[item.old] = item.new
        plan.kinds[item.old] = item.kind.lower()
        if item.kind.isupper():
            plan.silent.add(item.old)
    return plan
