"""The injection filter of the service: ours, or the gateway's over HTTP. Where it does not answer, nothing is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memoranda.trust import injection
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the filter saw in one text: whether it is blocked, and what it doubts, as stable codes."""

    blocked: bool
    suspicious: tuple[str, ...] = ()


class Filter(Protocol):
    """What is asked of every text before it is given back."""

    @property
    def own(self) -> bool:
        """Whether it is ours, which an engine over notes has asked already."""
        ...

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """One verdict a text, in their order. ComponentUnavailable when it does not answer: then nothing is given."""
        ...

    def ready(self) -> None:
        """Returns where texts can be judged."""
        ...


class LocalFilter:
    """Our own filter, in process."""

    own = True

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """As `Filter.judge`."""
        return [
            Verdict(verdict.level == "blocked", () if verdict.level == "blocked" else verdict.reasons)
            for verdict in injection.judge_all(list(texts))
        ]

    def ready(self) -> None:
        """As `Filter.ready`: always."""
