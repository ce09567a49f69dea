"""What we know of the datasets that lie in engines elsewhere: whose they are, and how far their graphs are built.

Their documents are rows of `records`, whose `container` is the dataset's id. A dataset that has no row here, or one of
another place, was never asked for, and is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import and_, bindparam, func, or_, select, tuple_, update
from sqlalchemy.engine import Connection

from memoranda.engines.contract import OperationContext, Place
from memoranda.engines.naming import project_of
from memoranda.state.database import Database
from memoranda.state.tables import engine_datasets, engine_items
from memoranda.values import dataclass

_T = engine_datasets.c
_I = engine_items.c
# Put together once, since every recall of hybrid asks it. Takes `tenant`, `instance`, `places`.
_AT = (
    select(engine_datasets)
    .where(_T.tenant == bindparam("tenant"), _T.instance == bindparam("instance"), _T.state == "kept")
    .where(tuple_(_T.project, _T.scope, _T.owner).in_(bindparam("places", expanding=True)))
    .order_by(_T.created_at.desc(), _T.id.desc())
)
Status = Literal["empty", "ingested", "building", "built", "failed"]


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One dataset. Times as in `Record`. `record` is the engine's own id, None until the engine was heard to have it.

    `status` is how its graph stood when it was last looked at, `building_since` when the present build was begun for
    the first time and `builds` how often it was; `built` counts the documents in the graph.
    """

    tenant: str
    id: str
    instance: str
    state: Literal["pending", "kept", "gone"]
    namespace: str
    project: str
    scope: str
    owner: str
    user_id: str
    agent: str
    classification: str
    created_at: str
    updated_at: str
    record: str | None = None
    retention_days: int | None = None
    legal_hold: bool = False
    status: Status = "empty"
    building_since: str | None = None
    builds: int = 0
    built: int = 0

    @property
    def name(self) -> str:
        """What the engine calls it: the opaque prefix, whose it is, and which one."""
        return f"{self.namespace}:{self.scope}:{self.owner}:{self.id}"


class Datasets:
    """The rows of one service. Every method is for one tenant, and knows no other's rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, row: DatasetRow) -> None:
        """A new row, durable when it returns."""
        with self._database.begin(row.tenant) as connection:
            connection.execute(
                engine_datasets.insert().values(**{name: getattr(row, name) for name in DatasetRow.__match_args__})
            )

    def change(self, tenant: str, dataset_id: str, **values: Any) -> None:
        """Sets fields of one row."""
        with self._database.begin(tenant) as connection:
            connection.execute(update(engine_datasets).where(_T.tenant == tenant, _T.id == dataset_id).values(**values))

    def some(self, where: OperationContext, instance: str, dataset_ids: Sequence[str]) -> list[DatasetRow]:
        """Those of these that are kept in places that the context reads, in the order asked for."""
        with self._database.read(where.tenant) as connection:
            rows = _rows(
                connection, where.tenant, _T.instance == instance, _T.id.in_(dataset_ids), _T.state == "kept",
                tuple_(_T.project, _T.scope, _T.owner).in_(_keys(where, where.reads)),
            )  # fmt: skip
        found = {row.id: row for row in rows}
        return [found[one] for one in dict.fromkeys(dataset_ids) if one in found]

    def at(
        self, where: OperationContext, instance: str, places: Sequence[Place], *, limit: int | None = None,
        after: tuple[str, str] | None = None,
    ) -> list[DatasetRow]:  # fmt: skip
        """What is kept in these places, newest first, behind (created_at, id) `after`."""
        if not places:
            return []
        asked = _AT
        if after is not None:
            asked = asked.where(or_(_T.created_at < after[0], and_(_T.created_at == after[0], _T.id < after[1])))
        if limit is not None:
            asked = asked.limit(limit)
        told = {"tenant": where.tenant, "instance": instance, "places": _keys(where, places)}
        with self._database.read(where.tenant) as connection:
            return [DatasetRow(**row._mapping) for row in connection.execute(asked, told)]

    def building(self, tenant: str, instance: str) -> list[DatasetRow]:
        """Those whose graph is being built, as far as is known."""
        with self._database.read(tenant) as connection:
            return _rows(connection, tenant, _T.instance == instance, _T.status == "building", _T.state == "kept")

    def held(self, tenant: str) -> list[DatasetRow]:
        """Those under legal hold, in whichever instance."""
        with self._database.read(tenant) as connection:
            return _rows(connection, tenant, _T.state == "kept", _T.legal_hold.is_(True))

    def record_of(self, tenant: str, dataset_id: str) -> str | None:
        """The engine's own id of a dataset; None for one that is gone."""
        with self._database.read(tenant) as connection:
            rows = _rows(connection, tenant, _T.id == dataset_id)
        return rows[0].record if rows else None

    def counts(self, tenant: str, dataset_ids: Sequence[str]) -> dict[str, int]:
        """How many documents are kept in each of these."""
        asked = (
            select(_I.container, func.count())
            .where(_I.tenant == tenant, _I.container.in_(dataset_ids), _I.state == "kept")
            .group_by(_I.container)
        )
        with self._database.read(tenant) as connection:
            return {str(container): int(n) for container, n in connection.execute(asked)}


def _keys(where: OperationContext, places: Sequence[Place]) -> list[tuple[str, str, str]]:
    return [(project_of(where, place) or "", place.scope, place.owner) for place in places]


def _rows(connection: Connection, tenant: str, *where: Any) -> list[DatasetRow]:
    asked = select(engine_datasets).where(_T.tenant == tenant, *where)
    asked = asked.order_by(_T.created_at.desc(), _T.id.desc())
    return [DatasetRow(**row._mapping) for row in connection.execute(asked)]
