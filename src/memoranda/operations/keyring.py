"""The keys by which forgotten content is known again, as they travel from one installation to another."""

from __future__ import annotations

import json
from pathlib import Path

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, Conflict, InvalidInput, NotFound
from memoranda.home.keys import write_privately
from memoranda.index import withheld
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space
from memoranda.values import dataclass

_FORMAT = "memoranda keys 1"
_PURPOSE = "tombstone"
_SIZE = 32


@dataclass(frozen=True, slots=True)
class KeysMoved:
    """How many keys were written to a file, or taken from one (`fresh`: that were not here before)."""

    home: str
    file: str
    keys: int
    fresh: int

    def json(self) -> dict[str, object]:
        return {"home": self.home, "file": self.file, "keys": self.keys, "fresh": self.fresh}


def export_keys(context: Context, space: Space, file: Path) -> KeysMoved:
    """Writes the tombstone keys of the nearest Home to a file that only its owner can read.

    ConfirmationRequired: nobody is at a terminal. Conflict: there is such a file. InvalidInput: it would lie in a Home.
    """
    pass_guards(context, Call("export"))
    if not context.person:
        raise ConfirmationRequired(
            "Keys are given to a person at a terminal only.",
            why="Who has them can tell by trying what was forgotten.",
            remedy="Run the command in a terminal of your own.",
        )
    home = space.one()
    home.refresh(context)
    if file.resolve().is_relative_to(home.repository.root.resolve()):
        raise InvalidInput("The file would lie in the Home.", remedy="Choose a place outside every Home.")
    keys = home.repository.keys
    name = home.repository.marker.id
    rows = [
        {"owner": owner, "key": key.hex()}
        for owner in _owners(name, _forgotten_owners(home))
        for key in keys.versions(_PURPOSE, owner).values()
    ]
    data = json.dumps({"format": _FORMAT, "home": name, "purpose": _PURPOSE, "keys": rows}, indent=1)
    try:
        write_privately(file, data.encode("ascii") + b"\n")
    except FileExistsError:
        raise Conflict(f"{file} exists.", remedy="Name a file that does not.") from None
    except FileNotFoundError:
        raise NotFound(f"There is no folder {file.parent}.", remedy="Make it first.") from None
    return KeysMoved(home.name, str(file), len(rows), 0)


def import_keys(context: Context, space: Space, file: Path) -> KeysMoved:
    """Takes the tombstone keys of the nearest Home from a file of `export_keys`; the own keys stay beside them.

    NotFound: no such file. InvalidInput: it holds no keys, or those of another Home.
    """
    home = space.one()
    pass_guards(context, Call("import keys", writes=True, met=space.met(context, home)))
    try:
        told = json.loads(file.read_bytes())
        if told["format"] != _FORMAT or told["purpose"] != _PURPOSE:
            raise ValueError(told["format"])
        rows = [(str(row["owner"]), bytes.fromhex(row["key"])) for row in told["keys"]]
        owners = _owners(str(told["home"]), None)
        if any(len(key) != _SIZE or not owner.startswith(owners[0]) for owner, key in rows):
            raise ValueError("key")
    except OSError as error:
        raise NotFound(f"{file} cannot be read.", why=error.strerror or "", remedy="Name a file of keys.") from None
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(f"{file} holds no keys.", remedy="Write one with `memoranda key export`.") from None
    if told["home"] != home.repository.marker.id:
        raise InvalidInput(
            "These are the keys of another Home.",
            why=f"They belong to {told['home']}, and this is {home.repository.marker.id}.",
            remedy="Name that Home with --home.",
        )
    fresh = sum(home.repository.keys.take_in(_PURPOSE, owner, key) for owner, key in rows)
    home.tombs.renew()
    home.indexes.look_again_for_forgotten()
    home.refresh(context)
    return KeysMoved(home.name, str(file), len(rows), fresh)


@undisturbed
def _forgotten_owners(home: OpenHome) -> set[str | None]:
    return {tomb.owner for tomb in withheld.tombstones(home.indexes.catalog.db)}


def _owners(home: str, owners: set[str | None] | None) -> list[str]:
    """The names under which the keys of a Home lie: its own, and one for each owner of something forgotten."""
    return [home, *(f"{home}.{owner}" for owner in sorted(filter(None, owners or ())))]
