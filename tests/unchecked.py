"""The service with its own check of tenants taken out: what keeps them apart then is the database alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Delete, Select, Update, event, true
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BinaryExpression, BindParameter, ColumnClause


@contextmanager
def unchecked() -> Iterator[list[str]]:
    """Every statement loses `tenant = …`, in whichever engine; the list tells of each that did."""
    lost: list[str] = []

    def replaced(element: Any, **_: Any) -> Any:
        if (
            isinstance(element, BinaryExpression)
            and element.operator is operators.eq
            and isinstance(element.left, ColumnClause)
            and element.left.name == "tenant"
            and isinstance(element.right, BindParameter)
        ):
            lost.append(str(element.left))
            return true()
        return None

    def without(
        connection: Connection, statement: Any, many: Any, parameters: Any, options: Any
    ) -> tuple[Any, Any, Any]:
        if isinstance(statement, Select | Update | Delete):
            statement = visitors.replacement_traverse(statement, {}, replaced)
        return statement, many, parameters

    event.listen(Engine, "before_execute", without, retval=True)
    try:
        yield lost
    finally:
        event.remove(Engine, "before_execute", without)
