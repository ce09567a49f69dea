"""What a check of a Home finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memoranda.operations.open_home import OpenHome
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing: a stable `code`, how bad (error, warning, notice), where, what, what to do; `fixed`: mended."""

    code: str
    severity: str
    where: str
    what: str
    remedy: str
    fixed: bool = False

    def json(self) -> dict[str, object]:
        return {
            "code": self.code, "severity": self.severity, "where": self.where, "what": self.what,
            "remedy": self.remedy, "fixed": self.fixed,
        }  # fmt: skip


Check = Callable[[OpenHome], Iterator[Finding]]
