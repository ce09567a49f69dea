"""What ranking asks and answers: the facts of documents, and items in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol


class Fact(NamedTuple):
    """What ranking has to know of a document besides the words.

    `at_ms` is when it was said, or from when a note holds (milliseconds since 1970 in UTC). A passage has a `thread`
    (its journal file) and a `place` in it, consecutive numbers, a `session` and a `speaker`. A note has a `title` and
    a `state`: current, ended, future or superseded.
    """

    key: str
    at_ms: int | None = None
    thread: str = ""
    place: int = 0
    session: str = ""
    speaker: str = ""
    title: str = ""
    state: str = "current"


class Known(Protocol):
    """What ranking reads of a document: a `Fact`, or an entry of a journal as the catalog has it."""

    @property
    def key(self) -> str: ...
    @property
    def at_ms(self) -> int | None: ...
    @property
    def thread(self) -> str: ...
    @property
    def place(self) -> int: ...
    @property
    def session(self) -> str: ...
    @property
    def speaker(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def state(self) -> str: ...


class Facts(Protocol):
    """Where ranking asks; each method is called once or twice a recall, with everything at once."""

    def titled(self, question: str) -> Sequence[str]:
        """The notes whose title is the question."""

    def facts(self, keys: Sequence[str]) -> Mapping[str, Known]:
        """What is known of these documents."""

    def around(self, spans: Sequence[tuple[str, int, int]]) -> Iterable[Known]:
        """The passages of each (thread, first place, last place), both included, those that exist."""


class Ranked(NamedTuple):
    """An item in its place: `score` has six decimals; the rest is what made it, see `ranking.account`."""

    key: str
    score: float
    signals: Mapping[str, float]
    weights: Mapping[str, float]
    ranks: Mapping[str, int | None]
