"""What a model is given: what the injection filter blocks is left out and counted, what it doubts is labelled."""

from __future__ import annotations

from memoranda.operations.open_home import OpenHome
from memoranda.operations.recalling import View
from memoranda.trust.envelope import Envelope
from memoranda.trust.injection import judge
from memoranda.values import replace


def screened(view: View) -> tuple[View, dict[str, str]]:
    """The view without blocked items, and id -> the reasons for which an item that stays is doubted."""
    kept, doubts = [], {}
    for item in view.items:
        verdict = judge(item.text)
        if verdict.level == "blocked":
            continue
        kept.append(item)
        if verdict.level == "suspicious":
            doubts[item.id] = ",".join(verdict.reasons)
    blocked = len(view.items) - len(kept)
    coverage = replace(view.coverage, blocked=blocked)
    return replace(view, items=tuple(kept), coverage=coverage), doubts


def envelope_of(home: OpenHome) -> Envelope:
    """The envelope of one Home, under its installation's key."""
    repository = home.repository
    return Envelope(repository.keys.get("envelope", repository.marker.id))
