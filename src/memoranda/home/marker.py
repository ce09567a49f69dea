"""The marker of a Home (`memory/home.yaml`) and the replica file of a clone.

The marker is committed and says what every clone shares: format, id, name, where notes lie. The replica file lies in
the Git directory and is therefore not cloned: it tells two clones apart that write at the same time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from memoranda.errors import HomeDamaged, HomeNotFound
from memoranda.home.layout import MARKER, Layout, is_endless
from memoranda.notes.ids import new_id
from memoranda.notes.lazyre import lazy
from memoranda.values import dataclass

FORMAT = 1
_NAME = lazy(r"[^a-z0-9._-]+")
_ID = lazy(r"home_[0-9a-z]{4,64}")  # it names keys and settings, outside of the Home: no path, and nobody else's owner
_REPLICA = lazy(r"rep_[0-9a-z]{4,64}")
_SUFFIX = lazy(r"[0-9a-z]{1,64}")


@dataclass(frozen=True, slots=True)
class Marker:
    """What `memory/home.yaml` says. `roots` are the folders, relative to the Home, whose `*.md` files are notes."""

    id: str
    name: str
    format: int = FORMAT
    roots: tuple[str, ...] = ("memory/notes",)

    def names(self) -> frozenset[str]:
        """What `nas://<home>/…` may call this Home."""
        return frozenset((self.id, self.name))


def home_name(text: str) -> str:
    """A name fit for a pointer: lower-case ASCII letters, digits, `.`, `_` and `-`."""
    return _NAME.sub("-", text.lower()).strip("-.")[:60] or "home"


def write_marker(marker: Marker) -> bytes:
    roots = "".join(f"  - {json.dumps(root, ensure_ascii=False)}\n" for root in marker.roots)
    return (
        "# This folder is a Memoranda Home: notes in Markdown, the truth; indexes beside them, a cache.\n"
        f"format: {marker.format}\nid: {marker.id}\nname: {marker.name}\nnotes:\n{roots}"
    ).encode()


def read_marker(root: Path) -> Marker:
    """The marker of the Home at `root`; HomeNotFound, HomeDamaged. Any format number is read (see `FORMAT`)."""
    if is_endless(root / MARKER):
        raise _damaged("It is a pipe or a device.")
    try:
        text = (root / MARKER).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise HomeNotFound(f"{root} is not a Home.", remedy=f"Make one with `memoranda init {root}`.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(str(error)) from error
    return parse_marker(text, root.name)


def parse_marker(text: str, name: str) -> Marker:
    """What a marker says; `name` is that of a Home that gives itself none. HomeDamaged."""
    fields = _simple_fields(text)
    if fields is None:
        import yaml

        try:
            fields = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise _damaged("It is not YAML.") from error
    if not isinstance(fields, dict):
        raise _damaged("It holds no fields.")
    home_id, named, number = fields.get("id"), fields.get("name"), fields.get("format")
    roots = fields.get("notes", ["memory/notes"])
    if not isinstance(home_id, str) or not isinstance(number, int) or not isinstance(roots, list):
        raise _damaged("It lacks `id`, `format` or a list of `notes`.")
    if _ID.fullmatch(home_id) is None:
        raise _damaged("Its `id` is not `home_` and 4 to 64 small letters and digits.")
    # Lists in lists by aliases would become texts without end.
    if not all(isinstance(item, str) for item in roots) or not isinstance(named, str | int | None):
        raise _damaged("`name` is no text, or `notes` no list of folders.")
    clean = tuple(item.strip("/") or "." for item in roots if ".." not in item.split("/"))
    return Marker(home_id, home_name(str(named or name)), number, clean)


def _simple_fields(text: str) -> dict[str, object] | None:
    """The fields of a marker as we write it, without the cost of a YAML parser; None for anything else."""
    fields: dict[str, object] = {}
    items: list[str] | None = None
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if items is not None and (item := re.fullmatch(r'  - "([^"\\]*)"', line)):
            items.append(item[1])
        elif line == "notes:":
            fields["notes"] = items = []
        elif found := re.fullmatch(r"(id|name): ([A-Za-z0-9._-]+)", line):
            fields[found[1]] = found[2]
        elif found := re.fullmatch(r"format: (\d{1,6})", line):
            fields["format"] = int(found[1])
        else:
            return None
    return fields


def _damaged(why: str) -> HomeDamaged:
    return HomeDamaged(f"{MARKER} cannot be read.", why=why, remedy=f"Restore it with `git checkout -- {MARKER}`.")


@dataclass(frozen=True, slots=True)
class Replica:
    """One clone of a Home: its id names its ledger segments, `suffix` its journal files (None for the first)."""

    id: str
    suffix: str | None


def replica_of(layout: Layout, random: Callable[[int], bytes], *, first: bool = False) -> Replica:
    """This clone's replica, made at the first opening; a copied folder counts as a new one."""
    path = layout.own / "replica.json"
    place = layout.git_dir.stat().st_ino
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        name, suffix = found["id"], found["suffix"]
        if found["inode"] == place and _REPLICA.fullmatch(name) and (suffix is None or _SUFFIX.fullmatch(suffix)):
            return Replica(name, suffix)
    except (FileNotFoundError, KeyError, ValueError, TypeError, RecursionError):
        pass  # none, or somebody's: both names stand in paths, and anybody can write the file
    name = new_id("rep", random)
    replica = Replica(name, None if first else name[-6:])
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps({"id": replica.id, "suffix": replica.suffix, "inode": place}), encoding="utf-8")
    fresh.replace(path)
    return replica
