"""Chains: their heads, their circles, and when each note held."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memoranda.errors import ChainConflict, UnknownNote
from memoranda.notes.chains import Chains, Link, check_supersedes
from memoranda.notes.times import Interval

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def day(n: int | None) -> datetime | None:
    return None if n is None else DAY + timedelta(days=n)


def link(name: str, old: str = "", start: int | None = None, end: int | None = None, known: int = 0) -> Link:
    """`link("c", "ab", 3)`: c supersedes a and b and holds from day 3."""
    return Link(name, tuple(old), day(start), day(end), DAY + timedelta(days=known))


def held(chains: Chains, name: str, known: int = 1000) -> tuple[int | None, int | None] | None:
    interval = chains.effective(name, DAY + timedelta(days=known))
    if interval is None:
        return None
    return tuple(None if t is None else (t - DAY).days for t in (interval.start, interval.end))  # type: ignore[return-value]


def test_a_note_alone_holds_as_it_says() -> None:
    chains = Chains([link("a", start=3, end=9, known=5)])
    assert held(chains, "a") == (3, 9)
    assert held(chains, "a", known=5) == (3, 9)
    assert held(chains, "a", known=4) is None
    assert chains.heads_of("a") == chains.members("a") == ("a",)
    assert chains.is_head("a") and not chains.is_head("b")


def test_a_successor_with_a_later_start_ends_the_old_note_there() -> None:
    chains = Chains([link("a", start=0), link("b", "a", 10, known=20), link("c", "b", 15, known=30)])
    assert (held(chains, "a"), held(chains, "b"), held(chains, "c")) == ((0, 10), (10, 15), (15, None))
    # Before the Home learned of the change it believed that the old note goes on.
    assert (held(chains, "a", known=19), held(chains, "b", known=19)) == ((0, None), None)
    assert held(chains, "b", known=29) == (10, None)
    for name in "abc":
        assert chains.heads_of(name) == ("c",)
        assert chains.members(name) == ("a", "b", "c")
    assert chains.heads_of("a", DAY + timedelta(days=25)) == ("b",)
    assert chains.heads_of("c", DAY + timedelta(days=25)) == ()


def test_a_note_that_ended_before_its_successor_began_ends_when_it_says() -> None:
    assert held(Chains([link("a", start=0, end=5), link("b", "a", 10)]), "a") == (0, 5)


def test_a_note_without_a_start_is_ended_by_any_start() -> None:
    assert held(Chains([link("a"), link("b", "a", 10)]), "a") == (None, 10)


@pytest.mark.parametrize("start", [None, 0, -5])
def test_a_successor_without_a_later_start_is_a_correction(start: int | None) -> None:
    chains = Chains([link("a", start=0), link("b", "a", start, known=20)])
    assert held(chains, "a") is None
    assert held(chains, "a", known=19) == (0, None)
    assert held(chains, "b") == (start, None)


def test_a_correction_stands_in_the_place_of_what_it_corrects() -> None:
    before = [link("a", start=0), link("b", "a", 10)]
    assert held(Chains([*before, link("c", "b", 10)]), "a") == (0, 10)
    assert held(Chains([*before, link("c", "b", 7)]), "a") == (0, 7)
    assert held(Chains([*before, link("c", "b")]), "a") == (0, 10)
    assert held(Chains([*before, link("c", "b", 0)]), "a") is None
    chains = Chains([*before, link("c", "b", 7, known=20), link("d", "c", 4, known=30)])
    assert [held(chains, "a", known) for known in (10, 25, 35)] == [(0, 10), (0, 7), (0, 4)]
    assert (held(chains, "b"), held(chains, "c"), held(chains, "d")) == (None, None, (4, None))


def test_a_note_may_supersede_several() -> None:
    chains = Chains([link("a", start=0), link("b", start=2), link("c", "ab", 5), link("d", "c", 5)])
    assert chains.members("a") == chains.members("d") == ("a", "b", "c", "d")
    assert chains.heads_of("a") == chains.heads_of("b") == ("d",)
    assert (held(chains, "a"), held(chains, "b"), held(chains, "c")) == ((0, 5), (2, 5), None)


def test_two_heads_are_both_named_the_older_first() -> None:
    chains = Chains([link("a"), link("z", "a", known=1), link("b", "a", known=2), link("c", "z", 5, known=3)])
    assert chains.heads_of("a") == ("b", "c")
    assert chains.successors("a") == ("z", "b")
    assert chains.is_head("b") and chains.is_head("c") and not chains.is_head("z")
    assert chains.members("b") == ("a", "z", "b", "c")


def test_an_id_without_a_note_resolves_and_is_reported() -> None:
    chains = Chains([link("b", "a", 5), link("c", "a")])
    assert chains.unknown() == (("b", "a"), ("c", "a"))
    assert chains.heads_of("a") == ("b", "c")
    assert chains.members("a") == ("b", "c")
    assert not chains.is_head("a")
    assert held(chains, "a") is None
    assert chains.neighbours("a") is None
    for ask in (chains.heads_of, chains.members):
        with pytest.raises(UnknownNote) as caught:
            ask("x")
        assert caught.value.remedy


def test_a_circle_is_named_and_hides_nothing() -> None:
    chains = Chains([link("a", "c", 1), link("b", "a", 2), link("c", "b", 3), link("d", "d")])
    assert chains.cycles() == (("a", "b", "c"), ("d",))
    assert chains.heads_of("a") == ("a", "b", "c")
    assert all(chains.is_head(name) for name in "abcd")
    assert (held(chains, "a"), held(chains, "d")) == ((1, None), (None, None))
    assert chains.members("b") == ("a", "b", "c")
    chains = Chains([link("a", "b", 1), link("b", "a", 1, known=9), link("c", "a", 5)])
    assert held(chains, "b", known=10) == (1, None)  # the circle counts for nothing, c for itself
    assert held(chains, "a", known=10) == (1, 5)
    assert chains.heads_of("a") == ("c", "b")
    assert held(chains, "a", known=8) == (1, 5)
    assert chains.cycles() == (("a", "b"),)


def test_of_two_notes_with_one_id_the_first_counts() -> None:
    chains = Chains([link("a", start=1), link("a", "z", start=2)])
    assert held(chains, "a") == (1, None)
    assert chains.unknown() == ()


# --- against a naive oracle, over random histories ---

NAMES = "abcdefg"
numbers = st.none() | st.integers(0, 5)
histories = st.lists(
    st.builds(
        link,
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(NAMES + "xy"), max_size=3).map("".join),
        numbers,
        st.none() | st.integers(6, 9),
        st.integers(0, 5),
    ),
    max_size=7,
    unique_by=lambda one: one.id,
)


class Oracle:
    """The definitions as they are said, without a thought for cost."""

    def __init__(self, links: list[Link], known: int | None) -> None:
        self.links = {x.id: x for x in links if known is None or x.known_from <= DAY + timedelta(days=known)}

    def reach(self, name: str) -> set[str]:
        """What supersedes this, directly or not; holds itself only in a circle."""
        found: set[str] = set()
        while True:
            more = {x.id for x in self.links.values() if set(x.supersedes) & (found | {name})}
            if more <= found:
                return found
            found |= more

    def after(self, name: str) -> list[str]:
        direct = [x.id for x in self.links.values() if name in x.supersedes]
        return [x for x in direct if not (x == name or name in self.reach(x))]

    def heads(self, name: str) -> set[str]:
        return {x for x in {name} | self.reach(name) if x in self.links and not self.after(x)}

    def standing(self, name: str, start: datetime | None) -> set[datetime | None]:
        """The starts of what stands for this note, which counts as beginning at `start`."""
        out: set[datetime | None] = set()
        for x in self.after(name):
            since = self.links[x].valid_from
            if since is None or (start is not None and since <= start):
                out |= self.standing(x, since or start)
        return out or {start}

    def effective(self, name: str) -> tuple[datetime | None, datetime | None] | None:
        if name not in self.links:
            return None
        link = self.links[name]
        cuts: set[datetime | None] = set()
        for x in self.after(name):
            cuts |= self.standing(x, self.links[x].valid_from)
        if any(cut is None or (link.valid_from is not None and cut <= link.valid_from) for cut in cuts):
            return None
        return link.valid_from, min((t for t in (*cuts, link.valid_to) if t is not None), default=None)


@settings(deadline=None, max_examples=500)
@given(histories, st.none() | st.integers(-1, 6))
def test_heads_and_intervals_are_what_the_definitions_say(links: list[Link], known: int | None) -> None:
    chains = Chains(links)
    oracle = Oracle(links, known)
    at = None if known is None else DAY + timedelta(days=known)
    everything = {x.id for x in links} | {old for x in links for old in x.supersedes}
    for name in everything:
        assert set(chains.heads_of(name, at)) == oracle.heads(name)
        assert len(chains.heads_of(name, at)) == len(set(chains.heads_of(name, at)))
        got = chains.effective(name, at or DAY + timedelta(days=99))
        assert (None if got is None else (got.start, got.end)) == oracle.effective(name)


@settings(deadline=None, max_examples=200)
@given(histories, st.randoms(use_true_random=False))
def test_structure_holds_over_random_histories(links: list[Link], random: object) -> None:
    chains = Chains(links)
    ids = {x.id for x in links}
    oracle = Oracle(links, None)
    in_circles = {x for x in ids if x in oracle.reach(x)}
    assert {x for circle in chains.cycles() for x in circle} == in_circles
    assert chains.unknown() == tuple(sorted({(x.id, old) for x in links for old in x.supersedes if old not in ids}))
    for name in ids:
        assert chains.is_head(name) == (name in oracle.heads(name)) == (not oracle.after(name))
        members = chains.members(name)
        assert name in members and len(set(members)) == len(members)
        assert all(chains.members(other) == members for other in members)
        assert set(chains.heads_of(name)) <= set(members)
        assert any(chains.is_head(other) for other in members)
        if not in_circles & set(members):
            for x in links:
                if x.id in members:
                    assert all(members.index(old) < members.index(x.id) for old in x.supersedes if old in ids)
    shuffled = list(links)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = Chains(shuffled)
    for name in ids:
        assert (other.heads_of(name), other.members(name)) == (chains.heads_of(name), chains.members(name))
        at = DAY + timedelta(days=3)
        assert other.effective(name, at) == chains.effective(name, at)
    assert (other.cycles(), other.unknown()) == (chains.cycles(), chains.unknown())


@settings(deadline=None, max_examples=200)
@given(histories, numbers, st.sets(st.sampled_from(NAMES), max_size=3))
def test_what_may_be_superseded_leaves_one_head_and_what_may_not_would_not(
    links: list[Link], start: int | None, targets: set[str]
) -> None:
    chains = Chains(links)
    assume(not chains.cycles())
    new = link("n", "".join(sorted(targets)), start, known=6)
    after = Chains([*links, new])
    try:
        check_supersedes("n", new.supersedes, chains.neighbours)
    except UnknownNote:
        assert targets - {x.id for x in links}
    except ChainConflict as error:
        assert error.why and error.remedy
        assert any(len(after.heads_of(target)) > 1 for target in targets)
    else:
        assert all(after.heads_of(target) == ("n",) for target in targets)
        assert not after.cycles()


def test_what_may_not_be_superseded_is_refused_by_name() -> None:
    chains = Chains([link("a"), link("b", "a"), link("c", "b"), link("p"), link("q", "p")])
    check_supersedes("n", [], chains.neighbours)
    check_supersedes("n", ["c", "c"], chains.neighbours)
    check_supersedes("n", ["c", "q"], chains.neighbours)
    check_supersedes("n", ["a", "c"], chains.neighbours)  # the whole chain, its head included
    with pytest.raises(UnknownNote):
        check_supersedes("n", ["c", "x"], chains.neighbours)
    with pytest.raises(ChainConflict) as caught:
        check_supersedes("n", ["a"], chains.neighbours)
    assert "c" in caught.value.remedy
    for new, old in (("c", "c"), ("a", "c"), ("b", "c")):
        with pytest.raises(ChainConflict) as caught:
            check_supersedes(new, [old], chains.neighbours)
        assert "circle" in caught.value.what


def test_a_long_chain_and_many_chains_cost_what_they_are() -> None:
    started = time.process_time()
    long = [Link(f"m{i:05}", (f"m{i - 1:05}",) if i else (), day(i % 900), None, DAY) for i in range(20_000)]
    chains = Chains(long)
    assert chains.heads_of("m00000") == ("m19999",)
    assert len(chains.members("m10000")) == 20_000
    assert chains.cycles() == ()
    assert held(chains, "m00000") == (0, 1)
    many = Chains([Link(f"n{i}", (), None, None, DAY) for i in range(100_000)])
    assert all(many.effective(f"n{i}", DAY) == Interval(None, None) for i in range(0, 100_000, 10))
    assert time.process_time() - started < 6
