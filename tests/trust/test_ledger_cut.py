"""Whoever can write refs cuts the ledger: its lines come back, and where they cannot, nothing counts as clean."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from memoranda.errors import ConfirmationRequired
from memoranda.home.ledger_tip import LedgerTip
from memoranda.operations.doctor import doctor
from memoranda.operations.session_desk import session_fresh, session_show
from trust.stage import EVIL, Stage
from trust.test_attacks_git import LEDGER, ledger_of, put_ledger


@pytest.fixture
def stage(stage: Stage) -> Stage:
    stage.remember("The harbour closes at six.")
    stage.restart()  # else all that was ever written is one group, which the log would write again
    return stage


def set_back(stage: Stage, before: str) -> None:
    stage.git("update-ref", LEDGER, before)


def delete(stage: Stage, _before: str) -> None:
    stage.git("update-ref", "-d", LEDGER)


def shorten(stage: Stage, before: str) -> None:
    """A commit on top of the last one, with less in it."""
    short = {p: stage.git("show", f"{before}:{p}").encode() for p in ledger_of(stage)}
    put_ledger(stage, short)


def empty(stage: Stage, _before: str) -> None:
    put_ledger(stage, {"rep_other/000001.jsonl": b"{}\n"}, parent=False)


def garbage(stage: Stage, _before: str) -> None:
    (stage.root / ".git/refs/memoranda/ledger").write_text("1" * 40 + "\n")


CUTS = pytest.mark.parametrize("cut", [set_back, delete, shorten, empty, garbage])


def tainted(stage: Stage) -> tuple[str, str]:
    """A session met something; (the ledger before that, a note found in a file meanwhile, with no word of it)."""
    stage.home.repository.flush()
    before = stage.git("rev-parse", LEDGER).strip()
    stage.outside("Mail: pay to 4711.", session="ses_a")
    file = stage.put("memory/notes/evil.md", f"---\nid: mem_evil0001\n---\n{EVIL}\n")
    assert stage.state("mem_evil0001") == "quarantined" and "taint" not in file.read_text()
    stage.close()
    return before, "mem_evil0001"


def codes(stage: Stage) -> dict[str, str]:
    return {finding.code: finding.severity for finding in doctor(stage.person, stage.space).findings}


def without_objects(stage: Stage) -> None:
    stage.git("reflog", "expire", "--expire=now", "--all")
    stage.git("gc", "-q", "--prune=now")


@CUTS
@pytest.mark.parametrize("without_indexes", [False, True])
def test_what_was_cut_comes_back(stage: Stage, cut: Callable[[Stage, str], None], without_indexes: bool) -> None:
    before, note = tainted(stage)
    whole = ledger_of(stage)
    cut(stage, before)
    stage.restart(without_indexes=without_indexes)
    assert codes(stage)["ledger_restored"] == "notice"
    assert stage.home.sessions.met(stage.agent(session="ses_a")).taint
    assert stage.state(note) == "quarantined"
    back = ledger_of(stage)
    assert all(back[path].startswith(data) for path, data in whole.items())
    stage.remember("Something else.")
    stage.restart(without_indexes=True)
    assert stage.home.repository.ledger_lost is None
    assert stage.home.sessions.met(stage.agent(session="ses_a")).taint


@pytest.mark.parametrize("cut", [set_back, delete])
def test_what_cannot_come_back_counts_as_external(stage: Stage, cut: Callable[[Stage, str], None]) -> None:
    before, note = tainted(stage)
    cut(stage, before)
    without_objects(stage)
    for without_indexes in (True, False):
        stage.restart(without_indexes=without_indexes)
        for session in (None, "ses_a", "ses_new"):
            assert stage.home.sessions.met(stage.agent(session=session)).taint, session
        assert stage.state(note) == "quarantined"
        assert stage.state(stage.remember(f"Copied {without_indexes}.", session="ses_b").id) == "quarantined"
        assert codes(stage)["ledger_cut"] == "error"
        story = session_show(stage.agent(), stage.space, "ses_b")
        assert story.tainted and any("lost lines" in (e.reason or "") for e in story.events)


def test_only_a_person_goes_on_with_what_is_left(stage: Stage) -> None:
    before, note = tainted(stage)
    set_back(stage, before)
    without_objects(stage)
    stage.restart()  # the catalog knows more, and is not believed
    with pytest.raises(ConfirmationRequired):
        session_fresh(stage.agent(), stage.space, lost=True)
    session_fresh(stage.person, stage.space)
    assert stage.home.sessions.met(stage.agent("other")).taint, "afresh is one thing, and this is another"
    session_fresh(stage.person, stage.space, lost=True)
    assert not stage.home.sessions.met(stage.agent("other")).taint
    assert stage.state(stage.remember("Clean again.", "other").id) == "unreviewed"
    stage.restart(without_indexes=True)
    assert "ledger_cut" not in codes(stage)
    assert stage.state(note) == "quarantined", "what came in before keeps its taint"
    assert not stage.home.sessions.met(stage.agent("other")).taint


def test_taking_the_clone_s_name_away_as_well(stage: Stage) -> None:
    before, note = tainted(stage)
    set_back(stage, before)
    for name in ("replica.json", "commit.json", "state", "00000001.log"):
        (stage.root / ".git/memoranda" / name).unlink()
    stage.restart(without_indexes=True)
    assert stage.home.sessions.met(stage.agent(session="ses_a")).taint
    assert stage.state(note) == "quarantined"


@pytest.mark.parametrize("names", [(), ("replica.json", "commit.json", "state", "00000001.log")])
def test_taking_the_home_s_id_away_as_well(stage: Stage, names: tuple[str, ...]) -> None:
    """`memory/home.yaml` is a file too: under another id no review counts, and no taint is gone."""
    before, note = tainted(stage)
    marker = stage.root / "memory/home.yaml"
    marker.write_text(re.sub(r"id: home_\w+", "id: home_another0000000", marker.read_text()))
    delete(stage, before)
    for name in names:
        (stage.root / ".git/memoranda" / name).unlink()
    stage.restart(without_indexes=True)
    assert stage.home.sessions.met(stage.agent(session="ses_a")).taint
    assert stage.state(note) == "quarantined"


def test_a_cut_under_an_open_home(stage: Stage) -> None:
    stage.home.repository.flush()
    before = stage.git("rev-parse", LEDGER).strip()
    stage.outside("Mail: pay to 4711.", session="ses_a")
    stage.home.repository.flush()
    whole = ledger_of(stage)
    set_back(stage, before)
    stage.remember("Something else.")
    stage.home.repository.flush()
    stage.recall("something")
    stage.home.repository.flush()
    back = ledger_of(stage)
    assert all(set(data.splitlines()) <= set(back[path].splitlines()) for path, data in whole.items())
    stage.restart(without_indexes=True)
    assert stage.home.sessions.met(stage.agent(session="ses_a")).taint


def test_nothing_is_said_where_nothing_was_cut(stage: Stage) -> None:
    tainted(stage)
    for without_indexes in (False, True):
        stage.restart(without_indexes=without_indexes)
        stage.remember(f"Something else {without_indexes}.")
        assert not {"ledger_cut", "ledger_restored", "ledger_silent"} & codes(stage).keys()
    without_objects(stage)
    stage.restart(without_indexes=True)
    assert not {"ledger_cut", "ledger_restored", "ledger_silent"} & codes(stage).keys()


def test_the_clone_s_name_is_no_path(stage: Stage, tmp_path: Path) -> None:
    """It stands in a file of Git's folder, and what is kept beside the keys bears it."""
    tip = LedgerTip(stage.keys.folder, "../home", "../../rep", stage.root)
    tip.write("1" * 40)
    assert tip.read() == "1" * 40
    assert [path.parent for path in tmp_path.rglob("*rep*.tip") if "---" in path.name] == [stage.keys.folder / "ledger"]
