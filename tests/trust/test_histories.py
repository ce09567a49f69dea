"""Random histories of sessions, writes, edits, merges and reviews, against a model that knows nothing of the program.

The model keeps, for every text ever written (each has a word of its own), whether it came from outside, by rules that
are written down here a second time; and which bytes a person has accepted. After every step:

- nothing but accepted words stands in MEMORY.md, in the automatic context and in the instructions for MCP;
- what the model holds for external is tainted, and quarantined until a person has accepted it;
- a session that has met nothing from outside is handed no word of it;
- every pointer of what is handed out leads to the words that it stands by;
- what a person has accepted is recalled as reviewed with these words and no others, and says that it is contested where
  the automatic context says so.

No file that is written or edited, no commit and nothing quarantined takes a reviewed note out of a recall.

`MEMORANDA_HISTORIES=200` runs that many histories instead of the few that a suite has time for.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memoranda.context import Context
from memoranda.errors import ChainConflict, Conflict, InvalidInput, NotFound, Refused
from memoranda.notes.ids import blob_id
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.journaling import Turn, append
from memoranda.operations.presenting import Item
from memoranda.operations.reading import read
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide
from memoranda.operations.session_desk import session_fresh, session_taint
from memoranda.operations.sessions import event
from memoranda.operations.space import Space
from memoranda.trust.standing import trust_of
from trust.stage import Stage

HISTORIES = int(os.environ.get("MEMORANDA_HISTORIES", "0"))
AGENTS = ("ada", "bob")
WORD = re.compile(r"zq\d{4}xw")


@dataclass
class Bytes:
    """One state of a note's file: its words, whether they are external, whether a person accepted these very bytes."""

    id: str
    words: frozenset[str]
    external: bool
    accepted: bool = False


@dataclass
class Known:
    """A session as the model sees it: for whom it is open, whether it met anything, and who opened it."""

    opener: str
    clean_start: bool
    tainted: bool = False
    open_for: set[str] = field(default_factory=set)


class Model:
    """What must hold, derived from what was done and from nothing else."""

    def __init__(self) -> None:
        self.sessions: dict[str, Known] = {}
        self.epoch = dict.fromkeys(AGENTS, 0)
        self.bytes: dict[str, Bytes] = {}  # by blob
        self.files: dict[str, str] = {}  # path -> blob, of notes that there are
        self.entries: dict[str, tuple[str, bool]] = {}  # id -> (word, external)
        self.sources: dict[str, tuple[frozenset[str], Callable[[], bool]]] = {}  # pointer -> (words, taints now)

    def name(self, agent: str, session: str | None) -> str:
        return session or f"ambient {agent} {self.epoch[agent]}"

    def at_work(self, agent: str, session: str | None) -> Known:
        known = self.sessions.setdefault(self.name(agent, session), Known(agent, False))
        known.open_for.add(agent)
        return known

    def tainted(self, agent: str, session: str | None) -> bool:
        own = self.sessions.get(self.name(agent, session))
        if own is not None and own.clean_start and own.opener == agent and agent in own.open_for:
            return own.tainted
        inherited = any(s.tainted for s in self.sessions.values() if agent in s.open_for)
        return inherited or (own is not None and own.tainted)

    def taint(self, agent: str, session: str | None) -> None:
        self.at_work(agent, session).tainted = True

    def anybody_tainted(self) -> bool:
        return any(s.tainted for s in self.sessions.values() if s.open_for)

    def loadable(self) -> frozenset[str]:
        return frozenset().union(*(b.words for b in self.bytes.values() if b.accepted))


class Histories(RuleBasedStateMachine):
    """The steps. `what` picks among what there is, so that shrinking a history keeps its meaning."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memoranda-"))
        self.stage = Stage(self.folder)
        self.other: Space | None = None
        self.model = Model()
        self.counted = 0
        self.forgot = self.unsure = False
        checker = self.stage.agent("checker", "ses_checker")
        self.stage.home.sessions.tell(checker, [event("ses_checker", checker, "open", by="hook")], "A session begins")

    def teardown(self) -> None:
        if self.other is not None:
            self.other.close()
        self.stage.close()
        shutil.rmtree(self.folder)

    # Helpers

    def word(self) -> str:
        self.counted += 1
        return f"zq{self.counted:04}xw"

    def text(self, word: str) -> str:
        return f"The harbour opens at six {word}."

    def space(self, which: int) -> Space:
        """One of two processes that have the Home open."""
        if which % 2 == 0:
            return self.stage.space
        if self.other is None:
            self.other = self.stage._opened()
        return self.other

    def read(self, context: Context, uri: str) -> str | None:
        """What stands there; None only for what was forgotten."""
        try:
            return read(context, self.stage.space, uri).text
        except NotFound:
            assert self.forgot, f"{uri} leads nowhere"
            self.model.sources.pop(uri, None)
            return None

    def note(self, what: int) -> str | None:
        """The path of one of the notes that there are."""
        paths = sorted(self.model.files)
        return paths[what % len(paths)] if paths else None

    def picked(self, what: int) -> list[str]:
        """None to two of the pointers that are known."""
        pointers = sorted(self.model.sources)
        return [pointers[(what * 7 + n) % len(pointers)] for n in range(what % 3)] if pointers else []

    def wrote(self, path: str, external: bool, *, note_id: str, words: frozenset[str]) -> None:
        blob = blob_id((self.stage.root / path).read_bytes())
        self.model.files[path] = blob
        known = self.model.bytes.setdefault(blob, Bytes(note_id, words, external))
        known.external = known.external or external

    def found(self, path: str, words: frozenset[str], *, cites: bool = False) -> None:
        """A file that was written by hand: the author is unknown, and any open session may have been it."""
        model = self.model
        text = (self.stage.root / path).read_text(encoding="utf-8")
        declared = re.search(r"^id: (mem_\w+)", text, re.M)
        note_id = declared[1] if declared else path
        before = [model.bytes[model.files[path]]] if path in model.files else []
        before += [b for b in model.bytes.values() if b.id == note_id]
        external = model.anybody_tainted() or cites or any(b.external and not b.accepted for b in before)
        self.wrote(path, external, note_id=note_id, words=words)
        self.stage.home.refresh(self.stage.person)

    def reviewed(self) -> dict[str, Item]:
        """What a session that has met nothing recalls as reviewed, by its pointer."""
        checker = self.stage.agent("checker", "ses_checker")
        view = recall(checker, self.stage.space, "when does the harbour open?", k=500, budget=1_000_000)
        return {item.uri: item for item in view.items if item.reviewed}

    @contextmanager
    def nothing_reviewed_is_lost(self) -> Iterator[None]:
        before = self.reviewed()
        yield
        lost = before.keys() - self.reviewed().keys()
        assert not lost, f"{lost} is recalled no more"

    # What agents do

    @initialize()
    def begin(self) -> None:
        self.remembers(agent=0, session=None, what=0, process=0)

    @rule(
        agent=st.integers(0, 1), session=st.sampled_from([None, "ses_1", "ses_2"]), what=st.integers(0, 50),
        process=st.integers(0, 1),
    )  # fmt: skip
    def remembers(self, agent: int, session: str | None, what: int, process: int) -> None:
        who, word, sources = AGENTS[agent], self.word(), self.picked(what)
        external = self.model.tainted(who, session) or any(self.model.sources[s][1]() for s in sources)
        context, space = self.stage.agent(who, session), self.space(process)
        done = remember(context, space, NewNote(self.text(word), subject="harbour", sources=tuple(sources)))
        self.model.at_work(who, session)
        self.wrote(done.path, external, note_id=done.id, words=frozenset([word]))
        self.cite_note(done.uri, done.path)

    def cite_note(self, uri: str, path: str) -> None:
        known = self.model.bytes[self.model.files[path]]
        self.model.sources[uri] = (known.words, lambda: known.external and not known.accepted)

    @rule(
        agent=st.integers(0, 1), session=st.sampled_from([None, "ses_1"]), external=st.booleans(),
        process=st.integers(0, 1),
    )  # fmt: skip
    def writes_an_entry(self, agent: int, session: str | None, external: bool, process: int) -> None:
        who, word = AGENTS[agent], self.word()
        turn = Turn(self.text(word), "mail" if external else None, origin="external" if external else None)
        done = append(self.stage.agent(who, session), self.space(process), turn)
        self.model.at_work(who, session)
        tainted = external or self.model.tainted(who, session)
        if external:
            self.model.taint(who, session)
        self.model.entries[done.id] = (word, tainted)
        self.model.sources[done.uri] = (frozenset([word]), lambda: tainted)

    @rule(agent=st.integers(0, 1), session=st.sampled_from([None, "ses_2"]), what=st.integers(0, 50))
    def updates(self, agent: int, session: str | None, what: int) -> None:
        path, who, word = self.note(what), AGENTS[agent], self.word()
        if path is None:
            return
        old = self.model.bytes[self.model.files[path]]
        external = self.model.tainted(who, session)
        try:
            done = update(self.stage.agent(who, session), self.stage.space, old.id, self.text(word))
        except (ChainConflict, NotFound):
            return
        self.model.at_work(who, session)
        self.wrote(done.path, external, note_id=done.id, words=frozenset([word]))
        self.cite_note(done.uri, done.path)

    @rule(agent=st.integers(0, 1), what=st.integers(0, 50))
    def somebody_from_outside_supersedes_a_reviewed_note(self, agent: int, what: int) -> None:
        path, who = self.accepted_note(what), AGENTS[agent]
        if path is None or not self.id_at(path).startswith("mem_"):
            return
        name, word = self.clean_session(who), self.word()
        context = self.stage.agent(who, name)
        session_taint(context, self.stage.space, "read a page")
        self.model.taint(who, name)
        over = (self.id_at(path),)
        with self.nothing_reviewed_is_lost():
            try:
                done = remember(context, self.stage.space, NewNote(self.text(word), subject="harbour", supersedes=over))
            except ChainConflict:
                self.ended(who, name)
                return
        self.wrote(done.path, True, note_id=done.id, words=frozenset([word]))
        self.cite_note(done.uri, done.path)
        self.ended(who, name)
        told = {item.id: item for item in self.reviewed().values()}
        assert over[0] not in told or done.id in told[over[0]].proposed_by, "it is contested, and says by what"

    def accepted_note(self, what: int) -> str | None:
        """The path of one of the files that say what a person accepted."""
        paths = [path for path, blob in sorted(self.model.files.items()) if self.model.bytes[blob].accepted]
        return paths[what % len(paths)] if paths else None

    @rule(agent=st.integers(0, 1), session=st.sampled_from([None, "ses_1", "ses_2"]), what=st.integers(0, 50))
    def reads(self, agent: int, session: str | None, what: int) -> None:
        pointers, who = sorted(self.model.sources), AGENTS[agent]
        if pointers:
            uri = pointers[what % len(pointers)]
            words, taints = self.model.sources[uri]
            said = self.read(self.stage.agent(who, session), uri)
            if said is None or (self.forgot and "forgotten" in said):
                self.unsure = True  # what is gone may or may not have tainted the reader
                return
            assert words <= set(WORD.findall(said)), "the pointer leads to the words that it cites"
            if taints():
                self.model.taint(who, session)

    @rule(agent=st.integers(0, 1), session=st.sampled_from([None, "ses_1"]), process=st.integers(0, 1))
    def recalls(self, agent: int, session: str | None, process: int) -> None:
        who = AGENTS[agent]
        clean = not self.model.tainted(who, session) and not self.unsure
        view = recall(self.stage.agent(who, session), self.space(process), "when does the harbour open?", k=50)
        outside = self.external_words()
        given = {word for item in view.items for word in WORD.findall(f"{item.text} {item.subject} {item.sources}")}
        if clean:
            assert not given & outside, "a clean session is handed nothing from outside"
            assert not set(WORD.findall(str(view.json()))) & outside
        elif given & outside:
            self.model.taint(who, session)
        for item in view.items:
            if set(WORD.findall(item.text)) & outside:
                assert item.taint, "what is from outside says so"
            self.leads_to(item.uri, item.text)
            for source in item.sources:
                self.read(self.stage.person, source)

    def external_words(self) -> set[str]:
        """The words that came from outside, stand in nothing clean as well, and were accepted by no person."""
        outside: set[str] = {word for word, external in self.model.entries.values() if external}
        clean: set[str] = set()
        for known in self.model.bytes.values():
            (outside if known.external and not known.accepted else clean).update(known.words)
        return outside - clean

    # Sessions

    def clean_session(self, who: str) -> str:
        """The harness opens one; it stands for itself."""
        name = f"ses_h{self.word()}"
        context = self.stage.agent(who, name)
        self.stage.home.sessions.tell(context, [event(name, context, "open", by="hook")], "A session begins")
        self.model.sessions[name] = Known(who, True, open_for={who})
        return name

    def ended(self, who: str, name: str) -> None:
        context = self.stage.agent(who, name)
        self.stage.home.sessions.tell(context, [event(name, context, "close")], "A session ends")
        self.model.sessions[name].open_for.discard(who)

    @rule(agent=st.integers(0, 1), note=st.booleans())
    def something_comes_from_outside_and_its_session_ends(self, agent: int, note: bool) -> None:
        """So that nothing but what is kept of it says where it came from."""
        who = AGENTS[agent]
        name = self.clean_session(who)
        word = self.word()
        context = self.stage.agent(who, name)
        done = append(context, self.stage.space, Turn(self.text(word), "mail", origin="external"))
        self.model.taint(who, name)
        self.model.entries[done.id] = (word, True)
        self.model.sources[done.uri] = (frozenset([word]), lambda: True)
        if note:
            word = self.word()
            kept = remember(context, self.stage.space, NewNote(self.text(word), subject="harbour"))
            self.wrote(kept.path, True, note_id=kept.id, words=frozenset([word]))
            self.cite_note(kept.uri, kept.path)
        self.ended(who, name)

    @rule(agent=st.integers(0, 1), what=st.integers(0, 50), cited=st.booleans())
    def somebody_clean_reads_it_or_cites_it(self, agent: int, what: int, cited: bool) -> None:
        pointers, who = sorted(self.model.sources), AGENTS[agent]
        if not pointers:
            return
        uri, name, word = pointers[what % len(pointers)], self.clean_session(who), self.word()
        taints = self.model.sources[uri][1]()
        context = self.stage.agent(who, name)
        if not cited:
            if self.read(context, uri) is None:
                return
            self.model.sessions[name].tainted = taints
        sources = (uri,) if cited else ()
        done = remember(context, self.stage.space, NewNote(self.text(word), subject="harbour", sources=sources))
        self.wrote(done.path, taints, note_id=done.id, words=frozenset([word]))
        self.cite_note(done.uri, done.path)
        self.ended(who, name)

    @rule(agent=st.integers(0, 1), session=st.sampled_from([None, "ses_1"]))
    def is_tainted(self, agent: int, session: str | None) -> None:
        session_taint(self.stage.agent(AGENTS[agent], session), self.stage.space, "read a page")
        self.model.taint(AGENTS[agent], session)

    @rule(agent=st.integers(0, 1))
    def harness_opens(self, agent: int) -> None:
        who = AGENTS[agent]
        context = self.stage.agent(who, self.clean_session(who))
        done = remember(context, self.stage.space, NewNote(self.text(word := self.word())))
        self.wrote(done.path, False, note_id=done.id, words=frozenset([word]))

    @rule(what=st.integers(0, 20), agent=st.integers(0, 1))
    def harness_closes(self, what: int, agent: int) -> None:
        names = sorted(n for n in self.model.sessions if n.startswith("ses_"))
        if names:
            name, who = names[what % len(names)], AGENTS[agent]
            self.ended(who, name)

    @rule(agent=st.integers(0, 1))
    def person_starts_afresh(self, agent: int) -> None:
        who = AGENTS[agent]
        session_fresh(replace(self.stage.agent(who), person=True), self.stage.space)
        for known in self.model.sessions.values():
            known.open_for.discard(who)
        self.model.epoch[who] += 1

    # Files and Git

    @rule(what=st.integers(0, 50), how=st.sampled_from(["append", "claim", "unlabel"]))
    def edits(self, what: int, how: str) -> None:
        path = self.note(what)
        if path is None:
            return
        file, word = self.stage.root / path, self.word()
        text = file.read_text(encoding="utf-8")
        if how == "claim":
            text = text.replace("reviewed: false", "reviewed: true")
        if how == "unlabel":
            text = text.replace("taint:\n  - external\n", "").replace("taint: [external]\n", "taint: []\n")
        with self.nothing_reviewed_is_lost():
            file.write_text(f"{text}And so {word}.\n", encoding="utf-8")
            self.found(path, self.model.bytes[self.model.files[path]].words | {word})

    @rule(what=st.integers(0, 50), how=st.sampled_from(["words", "id", "front matter", "end", "chain"]))
    def edits_a_reviewed_note(self, what: int, how: str) -> None:
        path, other = self.accepted_note(what), self.accepted_note(what + 1)
        if path is None or other is None:
            return
        file, word = self.stage.root / path, self.word()
        fields, _, body = file.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
        words = self.model.bytes[self.model.files[path]].words if how == "end" else frozenset[str]()
        if how in ("id", "end", "chain"):
            name = {"id": "id", "end": "valid_to", "chain": "supersedes"}[how]
            value = {"id": f"mem_{word}", "end": "2020-01-01", "chain": f"[{self.id_at(other)}]"}[how]
            fields = re.sub(rf"^{name}:.*\n?", "", fields, flags=re.M).strip("\n") + f"\n{name}: {value}"
        text = f"{body.rstrip()} {word}\n" if how == "end" else f"{self.text(word)}\n"
        with self.nothing_reviewed_is_lost():
            file.write_text(text if how == "front matter" else f"---\n{fields}\n---\n{text}", encoding="utf-8")
            self.found(path, words | {word})

    def id_at(self, path: str) -> str:
        return self.model.bytes[self.model.files[path]].id

    @rule(what=st.integers(0, 50), how=st.sampled_from(["new", "same id", "copy", "cites", "supersedes"]))
    def writes_a_file(self, what: int, how: str) -> None:
        word, other = self.word(), self.note(what)
        path, front = f"memory/notes/hand/{word}.md", "subject: harbour\nreviewed: true\ntaint: []\n"
        words, cites = frozenset([word]), False
        if how == "same id" and other is not None:
            front += f"id: {self.model.bytes[self.model.files[other]].id}\n"
        if how == "supersedes" and other is not None:
            front += f"id: mem_{word}\nsupersedes: [{self.model.bytes[self.model.files[other]].id}]\n"
        if how == "cites" and (pointers := sorted(self.model.sources)):
            front += f"sources: ['{(uri := pointers[what % len(pointers)])}']\n"
            cites = self.model.sources[uri][1]()
        text = f"---\n{front}---\n{self.text(word)}\n"
        if how == "copy" and other is not None:
            text = (self.stage.root / other).read_text(encoding="utf-8") + f"Copied {word}.\n"
            words |= self.model.bytes[self.model.files[other]].words
        with self.nothing_reviewed_is_lost():
            self.stage.put(path, text)
            self.found(path, words, cites=cites)

    @rule(what=st.integers(0, 50), merged=st.booleans())
    def commits_by_hand(self, what: int, merged: bool) -> None:
        """A person's Git, or an agent's: on this branch, or on another one that is merged."""
        self.restarts(False)
        self.stage.close()
        if self.other is not None:
            self.other.close()
            self.other = None
        word = self.word()
        path = self.note(what) if what % 3 == 0 else None
        git = self.stage.git
        if merged:
            git("checkout", "-q", "-b", f"side{word}")
        words = frozenset([word])
        if path is None:
            path = f"memory/notes/hand/{word}.md"
            self.stage.put(path, f"---\nsubject: harbour\nreviewed: true\n---\n{self.text(word)}\n")
        else:
            file = self.stage.root / path
            file.write_text(file.read_text(encoding="utf-8") + f"On the side {word}.\n", encoding="utf-8")
            words |= self.model.bytes[self.model.files[path]].words
        git("add", "-A", "memory/notes")
        git("commit", "-q", "-m", f"By hand {word}")
        if merged:
            git("checkout", "-q", "main")
            self.stage.space = self.stage._opened()
            self.remembers(agent=what % 2, session=None, what=0, process=0)
            self.stage.close()
            git("merge", "-q", "--no-edit", f"side{word}")
        self.stage.space = self.stage._opened()
        self.found(path, words)

    @rule(without_indexes=st.booleans())
    def restarts(self, without_indexes: bool) -> None:
        if self.other is not None:
            self.other.close()
            self.other = None
        self.stage.home.refresh(self.stage.person)
        self.stage.restart(without_indexes=without_indexes)

    # What a person does

    @rule(what=st.integers(0, 50), verdict=st.sampled_from(["accept", "accept", "accept", "reject", "revoke"]))
    def decides(self, what: int, verdict: str) -> None:
        path = self.note(what)
        if path is None:
            return
        known = self.model.bytes[self.model.files[path]]
        try:
            done = decide(self.stage.person, self.stage.space, [path], verdict)
        except (Conflict, InvalidInput, NotFound):
            return
        known.accepted = verdict == "accept"
        for written in done.settled:
            row = self.stage.home.indexes.catalog.by_id(written)[0]
            self.wrote(row.path, False, note_id=written, words=known.words)
            self.model.bytes[row.blob].accepted = True

    @rule(what=st.integers(0, 50), edited=st.booleans())
    def decides_and_takes_it_back(self, what: int, edited: bool) -> None:
        self.decides(what=what, verdict="accept")
        self.only_accepted_words_load()
        if edited:
            self.edits(what=what, how="claim")
        else:
            self.decides(what=what, verdict="revoke")

    @rule(what=st.integers(0, 50))
    @precondition(lambda self: len(self.model.files) > 3)
    def forgets(self, what: int) -> None:
        path = self.note(what)
        assert path is not None
        note_id = self.model.bytes[self.model.files[path]].id
        try:
            forget(self.stage.person, self.stage.space, Selection((note_id,)), reason="no longer needed")
        except (Refused, NotFound, InvalidInput):
            return
        self.forgot = True
        self.look_what_is_left()

    def look_what_is_left(self) -> None:
        self.stage.home.refresh(self.stage.person)
        here = {row.path for row in self.stage.home.indexes.catalog.live_notes()}
        self.model.files = {path: blob for path, blob in self.model.files.items() if path in here}
        for uri in list(self.model.sources):
            self.read(self.stage.person, uri)

    # What holds after every step

    def leads_to(self, uri: str, text: str) -> None:
        said = read(self.stage.person, self.stage.space, uri).text
        plain = " ".join(said.split())
        assert " ".join(text.split()) in plain, f"{uri} leads to other words"

    @invariant()
    def only_accepted_words_load(self) -> None:
        loaded = self.stage.loaded()
        assert set(WORD.findall(loaded)) <= self.model.loadable()
        from memoranda.operations.loading import automatic_context

        told = {(item.id, item.text): item for item in self.reviewed().values()}
        assert {word for _, text in told for word in WORD.findall(text)} <= self.model.loadable()
        for item in automatic_context(self.stage.agent("loader"), self.stage.space, budget=10_000).items:
            self.leads_to(item.uri, item.text)
            recalled = told.get((item.id, item.text))
            assert recalled is None or bool(recalled.proposed_by) == item.contested
            assert recalled is not None or self.replaced(item.id), f"{item.id} loads and is not recalled"

    def replaced(self, note_id: str) -> bool:
        """Whether an agent in a session that had met nothing has written what supersedes this note."""
        return bool(self.stage.home.indexes.catalog.successors(note_id))

    @invariant()
    def no_taint_is_lost(self) -> None:
        catalog = self.stage.home.indexes.catalog
        rows = [row for row in catalog.live_notes() if row.blob in self.model.bytes]
        trust = trust_of(catalog, rows)
        for row in rows:
            known = self.model.bytes[row.blob]
            if known.external:
                assert trust[row.blob].taint, f"{row.id} is from outside"
                assert trust[row.blob].state == ("reviewed" if known.accepted else "quarantined")
            assert known.accepted or trust[row.blob].state != "reviewed"
        wrote = catalog.ledger.wrote(self.model.entries)
        assert all(
            wrote[name].taint for name, (_, external) in self.model.entries.items() if external and name in wrote
        )


TestHistories: Any = Histories.TestCase
TestHistories.settings = settings(
    max_examples=HISTORIES or 35,
    stateful_step_count=40 if HISTORIES else 25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
    print_blob=True,
)
