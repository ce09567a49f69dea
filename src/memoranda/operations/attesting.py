"""Attestations as the ledger keeps them: what a person decided about exact bytes, signed where it has to be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from memoranda.context import Context
from memoranda.notes.times import format_instant
from memoranda.operations.open_home import OpenHome
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person says of one note's exact bytes: accept, reject or revoke.

    `beside` names the bytes (by blob) of other notes that this one contradicts and stands beside all the same. `data`
    are the bytes when no file holds them yet.
    """

    id: str
    path: str
    blob: str
    verdict: str
    beside: tuple[str, ...] = ()
    data: bytes | None = None


def attested(
    context: Context, home: OpenHome, decisions: Iterable[Decision], comment: str | None
) -> list[dict[str, Any]]:
    """The lines of the ledger for these decisions.

    Raises:
        ReviewUnsigned: signed reviews are configured, and one could not be signed.
    """
    lines = []
    for decision in decisions:
        data = decision.data if decision.data is not None else home.repository.at(decision.path, decision.blob)
        line: dict[str, Any] = {
            "kind": "review", "id": decision.id, "blob": decision.blob, "verdict": decision.verdict,
            "reviewer": context.user, "path": decision.path, "home": home.name,
            "sha256": hashlib.sha256(data).hexdigest(), "comment": comment,
        }  # fmt: skip
        if decision.beside:
            line["beside"] = list(decision.beside)
        lines.append(_signed(context, home, line))
    return lines


def _signed(context: Context, home: OpenHome, line: dict[str, Any]) -> dict[str, Any]:
    if home.signing is None:
        return line
    from memoranda.trust.signing import sign

    repository = home.repository
    told = {**line, "signed_at": format_instant(context.now())}
    return sign(home.signing, repository.root, repository.marker.id, told)
