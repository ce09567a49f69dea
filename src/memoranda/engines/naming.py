"""How a context is called in an engine elsewhere: identifiers that nobody can guess, made here and nowhere else.

Each begins with a prefix, an HMAC of the instance, the tenant and the project under a key of the service. Behind it
stands what it names: a place, an agent, an item, a dataset. What belongs to the tenant as a whole has the tenant's
prefix, with no project in it. Who has not the key can neither find another tenant's identifiers nor make such a one.

The key is `namespace` of the service's keys. When it was renewed (`Keys.renew`), what was written before is still found
under the older prefixes, and what is written from then on bears the new one.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator

from memoranda.engines.contract import OperationContext, Place
from memoranda.engines.placing import home_of
from memoranda.home.keys import Keys
from memoranda.values import dataclass

OWNER = "engines"  # of the key
_LENGTH = 32  # hexadecimal digits of a prefix: 128 bits


@dataclass(frozen=True, slots=True)
class Named:
    """One place as an instance knows it: `namespace` is the prefix, `place` the identifier that only this place has."""

    namespace: str
    place: str

    @property
    def beside(self) -> Named:
        """Where the place's originals lie, which no question finds."""
        return Named(self.namespace, f"{self.namespace}:original:{self.place.partition(':')[2]}")

    def agent(self, agent: str) -> str:
        """An agent's identifier in this namespace."""
        return f"{self.namespace}:agent:{agent}"

    def item(self, item_id: str) -> str:
        """The identifier of one item in this namespace."""
        return f"{self.namespace}:{item_id}"


class Naming:
    """The identifiers of one service. Thread-safe."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._known: tuple[bytes, tuple[bytes, ...]] = (b"", ())

    def prefix(self, instance: str, tenant: str, project: str | None) -> str:
        """The prefix of what is written now; `project` is None for what belongs to the tenant as a whole."""
        return _prefix(self._keys.get("namespace", OWNER), instance, tenant, project)

    def prefixes(self, instance: str, tenant: str, project: str | None) -> tuple[str, ...]:
        """Every prefix under which something may lie there, the present one first."""
        keys = self._every_key()
        return tuple(dict.fromkeys(_prefix(key, instance, tenant, project) for key in keys))

    def _every_key(self) -> tuple[bytes, ...]:
        """The present key and the older ones, which are read from their files once for each present one."""
        own = self._keys.get("namespace", OWNER)
        known = self._known
        if known[0] is not own:
            known = self._known = (own, tuple(self._keys.versions("namespace", OWNER).values()))
        return known[1]

    def place(self, instance: str, where: OperationContext, place: Place) -> Named:
        """The place as it is written to."""
        return _named(self.prefix(instance, where.tenant, project_of(where, place)), place)

    def places(self, instance: str, where: OperationContext, place: Place) -> Iterator[Named]:
        """The place under each prefix under which something may lie there."""
        for prefix in self.prefixes(instance, where.tenant, project_of(where, place)):
            yield _named(prefix, place)


def project_of(where: OperationContext, place: Place) -> str | None:
    """The project that a place belongs to; None for one of the tenant as a whole."""
    return where.project if home_of(place.scope) == "project" else None


def named_of(namespace: str, scope: str, owner: str) -> Named:
    """A place as it was written to under this prefix."""
    return Named(namespace, f"{namespace}:{scope}:{owner}")


def _named(prefix: str, place: Place) -> Named:
    return named_of(prefix, place.scope, place.owner)


def _prefix(key: bytes, instance: str, tenant: str, project: str | None) -> str:
    parts = [b"memoranda namespace 1"]
    for part in (instance, tenant, project):  # each with its length, and none told apart from an empty one
        data = b"" if part is None else part.encode()
        parts.append((b"-" if part is None else b"+") + len(data).to_bytes(4, "big") + data)
    return hmac.digest(key, b"".join(parts), "sha256").hex()[:_LENGTH]
