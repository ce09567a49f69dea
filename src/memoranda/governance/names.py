"""Names of tenants, users, agents, teams and projects, and the moment as the state keeps it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import get_args

from memoranda.context import Context
from memoranda.engines.contract import Name
from memoranda.errors import InvalidInput
from memoranda.operations.admission import refuse_secrets
from memoranda.state.tables import PLATFORM

_NAME = re.compile(get_args(Name)[1].pattern)


def checked(what: str, name: str) -> str:
    """The name as it is; InvalidInput when the contract has no such names, SecretRefused for one that is a secret.

    `what` says whose it is. Names stand in the audit, in logs and in errors.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"{what}: not a possible name.",
            why="A name begins with a letter or a digit, goes on with these and . _ @ + -, and has at most 64 of them.",
            remedy="Choose another name.",
        )
    refuse_secrets([(what, name)])
    return name


def column(tenant: str | None) -> str:
    """A tenant as the state's `tenant` columns hold it; None is the platform."""
    return PLATFORM if tenant is None else tenant


def moment(context: Context) -> str:
    """The time of this call, such as `2026-10-02T09:12:33.000000Z`: sorts as it is."""
    return stamp(context.now())


def stamp(at: datetime) -> str:
    """An aware instant in the same form."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
