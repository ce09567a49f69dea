"""What every engine elsewhere is made of: its connection, and the rooms that all of them share."""

from __future__ import annotations

from collections.abc import Callable

from memoranda.engines.company import Company
from memoranda.engines.connection import Connection
from memoranda.engines.contract import Isolation
from memoranda.engines.naming import Naming
from memoranda.engines.records import Records
from memoranda.trust.envelope import Envelope
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Outside:
    """One instance elsewhere with what we keep of it. `isolation` says what a tenant is guaranteed there."""

    instance: str
    connection: Connection
    records: Records
    naming: Naming
    company: Company
    envelope: Envelope
    isolation: Callable[[str], Isolation]
