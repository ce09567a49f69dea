"""Erasing in histories as people make them: only what was named is gone."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from home.erasing import blanks_of, commits, lines_of
from home.histories import (
    Act,
    Story,
    amend,
    annotate,
    commit_by_hand,
    drop,
    edit,
    others,
    pack,
    played,
    side_branch,
    stash,
    tag,
)
from home.tools import git, note, rows
from memoranda.operations.journaling import Turn, append
from memoranda.operations.remembering import update

ALL = ("--branches", "--tags", "--reflog")


def remember(s: Story, seed: int) -> None:
    word = s.word()
    subject = ["customer/acme", "customer/globex", None][seed % 3]
    s.notes.append((note(s.context, s.space, s.text(word, seed), subject=subject).id, word))


def say(s: Story, seed: int) -> None:
    word = s.word()
    s.turns.append((append(s.context, s.space, Turn(s.text(word, seed), speaker="dana")).uri, word))


def supersede(s: Story, seed: int) -> None:
    if s.path(seed) is not None:
        word = s.word()
        s.notes.append((update(s.context, s.space, s.notes[seed % len(s.notes)][0], s.text(word, seed)).id, word))


ACTS: tuple[Act[Story], ...] = (
    remember, say, supersede, edit, commit_by_hand, side_branch, tag, stash, amend, drop, annotate, pack,
)  # fmt: skip


@settings(
    max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(
    acts=st.lists(st.tuples(st.integers(0, len(ACTS) - 1), st.integers(0, 50)), min_size=4, max_size=14),
    which=st.lists(st.integers(0, 20), min_size=1, max_size=3),
)
def test_only_what_was_named_is_gone(acts: list[tuple[int, int]], which: list[int]) -> None:
    with played(Story, (remember, say), 2, ACTS, acts) as (s, _):
        root, space, context = s.root, s.space, s.context
        history, everywhere = commits(root, "HEAD"), set(commits(root, *ALL))
        stashes = git(root, "stash", "list").count("\n")
        chosen = sorted({n % len(s.notes) for n in which})
        words = [s.notes[n][1] for n in chosen] + [s.turns[which[0] % len(s.turns)][1]]
        told = others(rows(space), words)
        known = [s.notes[n][0] for n in chosen if space.one().indexes.catalog.by_id(s.notes[n][0])]
        blanks = [*blanks_of(space, context, *known), lines_of(s.turns[which[0] % len(s.turns)][0])]
        s.gone = [s.notes[n][1] for n in chosen if s.notes[n][0] in known] + words[-1:]
        done = space.one().repository.erase(context, blanks, "asked for")
        assert done.found == ()
        assert commits(root, "HEAD") == history
        assert set(commits(root, *ALL)) == everywhere  # a set: amended, two may differ in an erased message only
        assert git(root, "stash", "list").count("\n") == stashes
        for n in range(stashes):
            git(root, "stash", "show", "-p", f"stash@{{{n}}}")
        space.one().refresh(context)
        assert others(rows(space), s.gone) == told
