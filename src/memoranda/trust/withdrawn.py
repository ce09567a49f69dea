"""Acceptances that a person took back, kept outside the Home as well.

Whoever can write into `.git` can set the ledger's ref back to a commit from before a revocation. What this
installation has once taken back or rejected stays so, until the person decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from memoranda.home.settings import Setting, Settings
from memoranda.index.testimony import Review
from memoranda.notes.times import format_instant, parse_instant

_KIND = "withdrawn"
_EVER = datetime.min.replace(tzinfo=UTC)


class Withdrawn:
    """The bytes of one Home's notes that stand withdrawn, by blob, with the time of that decision."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._times: dict[str, datetime] | None = None

    def outlives(self, review: Review) -> bool:
        """Whether a review was given after its bytes were withdrawn, if they were."""
        since = self._known().get(review.blob)
        return since is None or (review.at or _EVER) > since

    def settle(self, blobs: Iterable[str], verdict: str, by: str, now: datetime) -> None:
        """Keeps a decision on these bytes, durably: accept ends a withdrawal, reject and revoke are one."""
        known = self._known()
        for blob in blobs:
            if verdict != "accept":
                self._settings.settle(Setting(_KIND, blob, verdict, by, format_instant(now)))
                known[blob] = now
            elif known.pop(blob, None) is not None:
                self._settings.settle(Setting(_KIND, blob, verdict, by, format_instant(now)), "revoke")

    def _known(self) -> dict[str, datetime]:
        if self._times is None:
            found = self._settings.standing().values()
            self._times = {setting.value: parse_instant(setting.at) for setting in found if setting.kind == _KIND}
        return self._times


def not_withdrawn(counts: Callable[[Review], bool], withdrawn: Withdrawn) -> Callable[[Review], bool]:
    """Which reviews count when what was withdrawn does not come back with an older ledger."""
    return lambda review: counts(review) and (review.verdict != "accept" or withdrawn.outlives(review))
