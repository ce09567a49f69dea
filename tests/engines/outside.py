"""An engine elsewhere, put together by hand: with rows, names, Homes and a key of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.context import Context
from memoranda.engines.company import Company
from memoranda.engines.connection import Connection, Secret
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.engines.homes import Homes
from memoranda.engines.naming import Naming
from memoranda.engines.outside import Outside
from memoranda.engines.records import Records
from memoranda.governance.credentials import Secret as Key
from memoranda.home.keys import Keys
from memoranda.state.opening import open_database
from memoranda.trust.envelope import Envelope
from memoranda.values import replace


class OneKey:
    """The same key for everybody; `forgotten` counts how often it was refused. `next` is the one it is renewed to."""

    def __init__(self, key: str) -> None:
        self.key, self.next, self.forgotten = key, key, 0

    def of(self, tenant: str | None) -> tuple[str, Secret] | None:
        return "env://EAI_CRED_MEMORY_KEY", Key(self.key)

    def forget(self, tenant: str | None) -> None:
        self.forgotten += 1
        self.key = self.next


@contextmanager
def outside(
    folder: Path, context: Context, url: str, key: str, *, instance: str = "mem0-1", timeout: float = 5.0
) -> Iterator[Outside]:
    """The rooms of one instance, on a fresh state below `folder`."""
    keys = Keys(folder / "keys")
    egress = Egress(EgressSettings("development"))
    with Homes(folder / "data", context) as homes, open_database(f"sqlite:///{folder}/state.db") as database:
        connection = Connection(egress, instance, url, OneKey(key), timeout=timeout)
        envelope = Envelope(keys.get("envelope", "engines"))
        yield Outside(
            instance, connection, Records(database, keys), Naming(keys), Company(homes), envelope,
            lambda _: "logical",
        )  # fmt: skip
    egress.close()


@contextmanager
def beside(rooms: Outside, url: str, key: str, *, instance: str, timeout: float = 5.0) -> Iterator[Outside]:
    """The rooms of another instance of the same service."""
    egress = Egress(EgressSettings("development"))
    yield replace(
        rooms, instance=instance, connection=Connection(egress, instance, url, OneKey(key), timeout=timeout)
    )  # fmt: skip
    egress.close()
