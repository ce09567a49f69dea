"""The face for Python programs: a Home, a session, and what they answer.

    from memoranda import Home

    with Home.init("notes") as home, home.session(agent="cleo") as session:
        said = session.observe("We renew, but Luis decides now.", speaker="dana")
        session.remember("Luis decides at Acme.", subject="customer/acme", sources=[said.uri])
        view = session.recall("who decides at Acme?", budget=500)
        for item in view.items:
            print(item.id, item.text, item.sources)
        prompt = view.text  # for a model: each item between markers of its own

Times are given as `str`, `date` or `datetime`; a naive one is UTC. Every refusal is a `memoranda.errors.MemorandaError`
with `what`, `why`, `remedy` and a stable `code`; what the operating system refuses (no room on the disk, no right to
write a folder) is its own `OSError`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memoranda.context import Context
from memoranda.faces import local
from memoranda.notes.ids import new_id
from memoranda.notes.times import parse_instant
from memoranda.operations.forgetting import Forgotten, Selection, forget
from memoranda.operations.journaling import Appended, Turn, append
from memoranda.operations.presenting import Reading, View
from memoranda.operations.reading import read
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, Remembered, remember, update
from memoranda.operations.space import Space
from memoranda.values import replace

Time = str | date | datetime
Texts = str | Iterable[str]


class _Calls:
    """What can be asked of a Home; a `Session` does it in its own name."""

    _space: Space
    _context: Context

    def observe(
        self, text: str, *, speaker: str | None = None, at: Time | None = None, origin: str | None = None
    ) -> Appended:
        """Adds one entry to the journal of the agent; durable when it returns.

        Args:
            text: the words, as they were.
            speaker: who said them; None: the agent.
            at: when; None: now.
            origin: agent, human, external, maintenance or import; None: agent.

        Raises:
            InvalidNote: an empty text, a NUL, an unknown origin, more than 1 MiB.
            InvalidTime: `at` is no time.
            ReadOnlyHome, HomeNotFound: nothing can be written here.
        """
        return append(self._context, self._space, Turn(text, speaker, _instant(at, "at"), origin))

    def remember(
        self,
        text: str,
        *,
        subject: str | None = None,
        kind: str = "fact",
        scope: str = "user",
        sources: Texts = (),
        valid_from: Time | None = None,
        valid_to: Time | None = None,
        confidence: float | None = None,
        supersedes: Texts = (),
        origin: str = "agent",
        retention_days: int | None = None,
        retention_class: str | None = None,
        legal_hold: bool = False,
    ) -> Remembered:
        """Writes one note and commits it; durable when it returns.

        Args:
            text: Markdown, at most 1 MiB.
            subject: what it is about, a path such as `customer/acme`.
            kind: episodic, semantic, procedural, preference or fact.
            scope: session, user, agent, shared_agents, project, team, organization or global.
            sources: URIs; without any the note cites the journal entry that records this call.
            valid_from, valid_to: when it holds, half-open; a date is its first instant.
            confidence: 0 to 1.
            supersedes: ids of the notes that this one replaces.
            origin: agent, human, external, maintenance or import.
            retention_days: how many days it is kept; then it is hidden, and `memoranda expire` removes it.
            retention_class: keep_history or erase_history: what happens to its history then.
            legal_hold: it is not removed until a person releases it.

        Raises:
            Forgotten: the same content was forgotten.
            InvalidNote, InvalidTime, InvalidPointer: the note may not be written as it is; nothing was written.
            UnknownNote, ChainConflict: a note in `supersedes` does not exist, or is superseded already.
            ReadOnlyHome, HomeNotFound: nothing can be written here.
        """
        note = NewNote(
            text, subject, kind, scope, _texts(sources), _instant(valid_from, "valid_from"),
            _instant(valid_to, "valid_to"), confidence, _texts(supersedes), origin, retention_days,
            retention_class, legal_hold,
        )  # fmt: skip
        return remember(self._context, self._space, note)

    def update(self, id: str, text: str, *, correct: bool = False, **changes: Any) -> Remembered:
        """Writes a note that supersedes what holds now on the chain of `id`; the old one stays as it was.

        Args:
            id: any note of the chain.
            text: what holds now.
            correct: the old note never held; the new one takes over its interval.
            changes: fields of `remember` that change too; the others are taken over. The new note holds from now on,
                or from `valid_from`.

        Raises:
            UnknownNote, ChainConflict: no such note, or a chain with two heads.
            InvalidNote, InvalidTime, InvalidPointer, ReadOnlyHome: as for `remember`.
            TypeError: a field that notes do not have.
        """
        return update(self._context, self._space, id, text, changes=_fields(changes), correct=correct)

    def forget(self, id: str, *, reason: str = "", dry_run: bool = False) -> Forgotten:
        """Takes away one note that this agent wrote itself and nobody reviewed, with its chain; erases nothing.

        Everything else is for a person at a terminal: `memoranda forget`.

        Args:
            id: the note.
            reason: why; it stays on record.
            dry_run: only say what would go.

        Returns:
            What went (`removed`), and what could not be removed and why (`remains`).

        Raises:
            NotFound: no such note. LegalHold: it is held. ConfirmationRequired: this needs a person.
        """
        return forget(self._context, self._space, Selection((id,)), reason=reason, dry_run=dry_run)

    def recall(
        self,
        query: str,
        *,
        budget: int = 2000,
        k: int | None = None,
        include: Texts = ("notes", "journal"),
        kinds: Texts = (),
        subject: str | None = None,
        scopes: Texts = (),
        as_of: Time | None = None,
        known_at: Time | None = None,
        at: Time | None = None,
        history: bool = False,
    ) -> View:
        """Finds what is remembered about `query` and fits it into a budget.

        Args:
            query: a question or key words.
            budget: tokens that the items may cost together.
            k: how many items at most; without it eight, and up to thirty as long as they are half as good as the best
                and the budget has room for their words.
            include: `notes`, `journal`, or both.
            kinds, scopes: only these; empty: all.
            subject: only this subject and those below it.
            as_of: what held then. A date means its last instant; None: now.
            known_at: what was known then.
            at: both at once.
            history: superseded notes too.

        Returns:
            A view whose attributes bear the names of the JSON: `query`, `items` (best first), `coverage`, `budget`;
            `view.json()` is the document itself. Nothing found is an empty `items`. `view.text` (also `str(view)`) is
            the answer in words for a model, each item in its envelope. What the injection filter blocks is left out
            and counted in `coverage.blocked`; what it doubts is in `item.suspicious`.

        Raises:
            InvalidInput: an unknown kind, scope or place, a budget or k out of bounds.
            InvalidTime: a time that is none.
        """
        return recall(
            self._context, self._space, query, budget=budget, k=k, kinds=_texts(kinds), subject=subject,
            scopes=_texts(scopes), include=_texts(include), as_of=_instant(as_of, "as_of", end_of_day=True),
            known_at=_instant(known_at, "known_at", end_of_day=True), at=_instant(at, "at", end_of_day=True),
            history=history,
        )  # fmt: skip

    def read(
        self,
        uri: str,
        *,
        view: str | None = None,
        section: str | None = None,
        lines: tuple[int, int] | None = None,
        budget: int | None = None,
    ) -> Reading:
        """Reads a pointer (at its revision), a note or an entry by id, or a path in the Home.

        Args:
            uri: `nas://…@rev#L1-L9`, `mem_…`, `j_…`, or a path.
            view: full, section, lines or outline; None: what the uri names.
            section: a heading, or its number in the outline.
            lines: the first and the last line, from 1.
            budget: tokens; what does not fit comes in a shorter form, with `truncated` set.

        Returns:
            The words in `text`; `str(reading)` is for a model, the words in their envelope. What the injection filter
            blocks is not given, and `blocked` says why.

        Raises:
            NotFound, InvalidPointer, InvalidPath, InvalidInput: nothing is there, or the words name no place.
        """
        return read(self._context, self._space, uri, view=view, section=section, lines=lines, budget=budget)


class Home(_Calls):
    """An open Home. Threads may share it; close it, or use it as a context manager.

    Called on the Home itself, the operations belong to the ambient session of the person's agent (`MEMORANDA_AGENT`,
    else `python`).
    """

    def __init__(self, choice: local.Choice) -> None:
        """Use `Home.open` or `Home.init`."""
        self._context = local.make_context(otherwise="python")
        self._space = local.open_space(self._context, choice)

    @classmethod
    def init(cls, path: str | os.PathLike[str], name: str | None = None, *, here: bool = False) -> Self:
        """Makes a Home of the folder `path`, or opens the one that it is already; no existing file is rewritten.

        Args:
            path: a folder, existing or not; Markdown files in it become notes as they are.
            name: what pointers call the Home; None: the name of the folder.
            here: in a repository that tracks more than notes, make no nested Home but take the repository itself.

        Raises:
            InvalidInput: `path` is a file. SecretRefused: the name is one. GitFailed: Git refused.
        """
        from memoranda.home.create import create, finish
        from memoranda.operations.admission import Rules, admitter, refuse_secrets

        rules = Rules(local.keys())
        refuse_secrets([("name", name or Path(path).name)], rules)
        context = local.make_context(otherwise="python")
        made = create(Path(path).expanduser(), context, name=name, here=here)
        if not made.existed:
            finish(made.root, context, local.keys(), admit=admitter(rules))
        return cls(local.Choice(made.root, None))

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None) -> Self:
        """Opens the Home at `path`; None: as the command line finds it.

        That is `MEMORANDA_HOME`, else the nearest Home above the working directory together with the person's own.

        Raises:
            HomeNotFound: `path` is no Home. HomeDamaged: it cannot be read.
        """
        choice = local.choose(path)
        home = cls(choice)
        if path is not None:
            home._space.homes()  # says at once when it is damaged
        return home

    @property
    def path(self) -> Path:
        """The folder of the Home that is written; HomeNotFound when there is none yet."""
        return self._space.one().repository.root

    @property
    def name(self) -> str:
        """What pointers call the Home that is written."""
        return self._space.one().name

    def session(self, agent: str, session: str | None = None) -> Session:
        """A session of an agent: one run, in whose name is observed and remembered. Without an id it is a new one."""
        named = session or new_id("ses", self._context.random)
        return Session(self._space, replace(self._context, agent=agent, session=named))

    def close(self) -> None:
        """Commits what is left and lets go of everything; `git status` is clean afterwards."""
        self._space.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Session(_Calls):
    """One run of an agent in a Home; made by `Home.session`. It ends with the `with` block, the Home stays open."""

    def __init__(self, space: Space, context: Context) -> None:
        """Use `Home.session`."""
        self._space = space
        self._context = context

    @property
    def id(self) -> str:
        """The id, `ses_…` unless one was given."""
        return self._context.session or ""

    @property
    def agent(self) -> str:
        """The agent in whose name it writes."""
        return self._context.agent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Nothing is held open: what was written is durable already."""


def _instant(time: Time | None, what: str, *, end_of_day: bool = False) -> datetime | None:
    return None if time is None else parse_instant(time, what=what, end_of_day=end_of_day)


def _texts(given: Texts) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _fields(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changed fields of a note in their inner form. TypeError for one that notes do not have."""
    fields: dict[str, Any] = {}
    for name, value in changes.items():
        if name in ("valid_from", "valid_to"):
            fields[name] = _instant(value, name)
        elif name == "sources":
            fields[name] = _texts(value)
        elif name in ("subject", "kind", "scope", "confidence", "origin", "retention_days", "retention_class"):
            fields[name] = value
        else:
            raise TypeError(f"update() got an unexpected keyword argument {name!r}")
    return fields
