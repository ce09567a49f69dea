"""What a person has settled at a terminal, outside every Home: lines that a key of this installation vouches for.

A line says that something stands (`allow`) or no longer does (`revoke`). A line that the key does not vouch for says
nothing: neither an edit of the file nor anything that a Home brings along settles anything.
"""

from __future__ import annotations

import json
from typing import Any

from memoranda.home.keys import Keys
from memoranda.values import dataclass

_FIELDS = ("kind", "value", "verdict", "reason", "by", "at")


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that stands: `kind` and `value`, and why, by whom and when (RFC 3339) it was settled."""

    kind: str
    value: str
    reason: str
    by: str
    at: str

    def json(self) -> dict[str, object]:
        return {"kind": self.kind, "value": self.value, "reason": self.reason, "by": self.by, "at": self.at}


def settled(keys: Keys, owner: str) -> bool:
    """Whether anything was ever settled for this owner: asked at every write, and nearly always it was not."""
    return keys.settled(owner).mark() is not None


def state_of(keys: Keys, *owners: str) -> str:
    """Changes with everything that is settled for one of these owners; what was settled is not read."""
    return " ".join(str(keys.settled(owner).mark()) for owner in owners)


class Settings:
    """The settings of one installation for `owner`: `person`, or the id of a Home. Kept beside the keys."""

    def __init__(self, keys: Keys, owner: str = "person") -> None:
        self._keys = keys
        self._owner = owner
        self.lines = keys.settled(owner)

    def standing(self) -> dict[tuple[str, str], Setting]:
        """(kind, value) -> what stands now, oldest first."""
        found: dict[tuple[str, str], Setting] = {}
        for fields in self._lines()[0]:
            name = fields["kind"], fields["value"]
            found.pop(name, None)
            if fields["verdict"] == "allow":
                found[name] = Setting(*name, fields["reason"], fields["by"], fields["at"])
        return found

    def unvouched(self) -> int:
        """How many lines of the file were not written by this installation; they count for nothing."""
        return self._lines()[1]

    def settle(self, setting: Setting, verdict: str = "allow") -> None:
        """Adds a line, durably; `verdict` is `allow` or `revoke`."""
        fields = setting.json() | {"verdict": verdict}
        line = json.dumps({name: fields[name] for name in _FIELDS} | {"mac": self._mac(fields)}) + "\n"
        self.lines.add(line.encode())

    def mark(self, text: str) -> str:
        """The keyed hash of a text: 32 hex digits that say nothing of it to whoever lacks the key."""
        return self._keys.mac("settings", self._owner, b"text\0" + text.encode("utf-8", "surrogatepass"))

    def _mac(self, fields: dict[str, Any]) -> str:
        told = json.dumps([fields[name] for name in _FIELDS])
        return self._keys.mac("settings", self._owner, b"line\0" + told.encode())

    def _lines(self) -> tuple[list[dict[str, str]], int]:
        """The lines that are vouched for, and how many are not."""
        good, bad = list[dict[str, str]](), 0
        for line in self.lines.read().splitlines():
            try:
                fields = json.loads(line)
                vouched = fields.pop("mac") == self._mac(fields) and all(isinstance(v, str) for v in fields.values())
            except (ValueError, KeyError, AttributeError, TypeError):
                vouched = False
            if vouched:
                good.append(fields)
            else:
                bad += 1
        return good, bad
