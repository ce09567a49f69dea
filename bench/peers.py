"""The same work with three other memories from PyPI: index 1,000 notes, search them, and find what answers.

Each is measured as it comes without a model, beside ours by the words alone, and in the best way that it documents
with our bundled table in the place of the model that it would download, beside ours as shipped, which has the same
table: basic-memory hybrid, memd with its vectors fused, mem0 with `infer=False` (it has no other way). Found is
counted as in `finding`: the turns of LoCoMo's conversations 6 to 10, a memory a conversation, and all questions in
turn to everybody. Ours has speaker, session and time as it keeps them; peers have who spoke and when as a part of the
text, which on conversation 1 served each of them best (without, or with the speaker as a title, they find less), and
session and time besides where they have a place for them.
Everybody is asked for ten and times itself without its start. A peer that cannot be installed here is named, and the
rest goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean

from bench._common import (
    CACHE,
    DATA,
    Line,
    Options,
    context,
    discard,
    elapsed,
    faster,
    files,
    median,
    new_home,
    opened,
    questions,
    tell,
)
from bench._peer import PEERS, WORDS, Absent, Peer, Running, running
from bench.locomo import Asked, conversation, remembered
from memoranda.index.recipes import NamedRecipe
from memoranda.operations.importing import import_folder
from memoranda.operations.journaling import Turn
from memoranda.operations.recalling import recall
from memoranda.operations.space import Space

TITLE = "peers: 1,000 notes, and LoCoMo's conversations 6 to 10"
_PLENTY = 10_000_000  # tokens: nothing is left out for want of room


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(1_000):
        for peer in PEERS:
            try:
                yield from _beside(peer, size, options)
            except Absent as reason:
                yield _not_measured(peer, peer.modes[0], reason)
    if DATA.is_file():
        yield from _finding(options)
    else:
        yield Line("found in the first 10", 0, "%", note="not measured: shared/data/locomo10.json is not there")


def _not_measured(peer: Peer, mode: str, reason: Absent) -> Line:
    return Line(f"{peer.package} {peer.pinned}, {mode}", 0, "", note=f"not measured: {reason}")


# A thousand notes


def _beside(peer: Peer, size: int, options: Options) -> Iterator[Line]:
    asked = questions(options.samples(200) + 20)
    indexed = [_index(size) for _ in range(3)]
    with running(peer, peer.modes[0], files(size)) as their:
        indexed += [_index(size) for _ in range(3)]
        ours, theirs = 1 / median(indexed), 1 / their.seconds
        what = f"index {size:,} notes"
        if peer.times:
            yield faster(what, size * ours, their.name, size * theirs, peer.times, unit="/s")
        else:
            note = "ours includes files and commits"
            yield Line(what, size * ours, "/s", their.name, size * theirs, ours / theirs, note=note)
        mine: list[float] = []
        other: list[float] = []
        with opened(CACHE / "peer-home") as (space, _):
            space.watch()
            recipe = _recipe(space, peer.modes[0])
            for n, question in enumerate(asked):
                mine.append(elapsed(partial(recall, context(), space, question, recipe=recipe)))
                other.append(their.ask(question)[0])
                if n < 20:  # both warm up
                    mine.clear()
                    other.clear()
        yield _search("search, p50", mine, their.name, other)


def _recipe(space: Space, mode: str) -> NamedRecipe | None:
    """Ours that is like the peer's mode: by the words alone, or as shipped."""
    return space.one().indexes.recipe("words") if mode == WORDS else None


def _search(what: str, ours: Sequence[float], name: str, theirs: Sequence[float]) -> Line:
    mine, other = median(ours), median(theirs)
    return Line(what, mine, "ms", name, other, mine / other, "faster", mine < other)


def _index(size: int) -> float:
    """Seconds until 1,000 files are imported, committed, indexed and can be recalled."""
    source = files(size)
    root = new_home("peer-home")
    started = time.perf_counter()
    with opened(root) as (space, _):
        import_folder(context(), space, source)
    return time.perf_counter() - started


# What is found


@dataclass(slots=True)
class _Score:
    """Of one contender: milliseconds of each search, and the place of its first evidence turn (0: not in the ten)."""

    ms: list[float] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def add(self, ms: float, found: Sequence[str | None], asked: Asked) -> None:
        self.ms.append(ms)
        self.places.append(next((n for n, name in enumerate(found[:10], 1) if name in asked.evidence), 0))

    @property
    def share(self) -> float:
        return 100 * mean(place > 0 for place in self.places)

    @property
    def mrr(self) -> float:
        return mean(1 / place if place else 0 for place in self.places)


def _finding(options: Options) -> Iterator[Line]:
    samples = json.loads(DATA.read_text(encoding="utf-8"))[5 : 6 if options.quick else 10]
    contenders = [(peer, mode) for peer in PEERS for mode in peer.modes]
    scores: dict[tuple[Peer, str], _Score] = {}
    mine: dict[tuple[Peer, str], _Score] = {}
    names: dict[tuple[Peer, str], str] = {}
    for number, sample in enumerate(samples, 6):
        ids, turns, asked = conversation(sample, True)
        asked = asked[: 40 if options.quick else None]
        texts = _written(turns)
        for contender in list(contenders):
            tell(f"conversation {number}: {contender[0].package}, {contender[1]}")
            try:
                with running(*contender, texts) as their:
                    names[contender] = their.name
                    one, other = _asked_in_turn(their, contender[1], ids, turns, asked)
            except Absent as reason:
                contenders.remove(contender)
                yield _not_measured(*contender, reason)
                continue
            for kept, new in ((mine, one), (scores, other)):
                total = kept.setdefault(contender, _Score())
                total.ms += new.ms
                total.places += new.places
    for contender in contenders:
        ours, theirs = mine[contender], scores[contender]
        what = f"found in the first 10, {len(ours.places)} questions"
        note = f"mean reciprocal rank {ours.mrr:.3f} and {theirs.mrr:.3f}"
        ratio = ours.share / theirs.share if theirs.share else None
        more = ours.share > theirs.share
        yield Line(what, ours.share, "%", names[contender], theirs.share, ratio, "more often", more, note)
        yield _search("  p50 of the same searches", ours.ms, names[contender], theirs.ms)


def _asked_in_turn(
    their: Running, mode: str, ids: Sequence[str], turns: Sequence[Turn], asked: Sequence[Asked]
) -> tuple[_Score, _Score]:
    """Ours and theirs: each question is asked of one and then of the other."""
    mine, other = _Score(), _Score()
    with ExitStack() as stack:
        ours, space, name = stack.enter_context(remembered(ids, turns))
        recipe = _recipe(space, mode)
        for turn in turns[:20]:  # both warm up
            recall(ours, space, turn.text, k=10, budget=_PLENTY, recipe=recipe)
            their.ask(" ".join(turn.text.split()))
        for question in asked:
            started = time.perf_counter()
            view = recall(ours, space, question.text, k=10, budget=_PLENTY, recipe=recipe)
            mine.add((time.perf_counter() - started) * 1000, [name.get(item.id) for item in view.items], question)
            ms, found = their.ask(question.text)
            other.add(ms, [ids[int(item)] for item in found], question)
    return mine, other


def _written(turns: Sequence[Turn]) -> Path:
    """A folder with a Markdown file for each turn; its name is the number of the turn."""
    folder = CACHE / "peer-turns"
    discard(folder)
    folder.mkdir()
    for n, turn in enumerate(turns):
        assert turn.at is not None
        front = f"title: {n:04d}\nsession: {turn.session}\ndate: {turn.at.isoformat()}"
        words = f"{turn.speaker} ({turn.at:%d %B %Y}): {turn.text}"
        (folder / f"{n:04d}.md").write_text(f"---\n{front}\n---\n{words}\n", encoding="utf-8")
    return folder
