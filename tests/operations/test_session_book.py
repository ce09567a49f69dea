"""What one process tells of a session, every other one knows at its next call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.home.log import IntakeLog
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.session_desk import session_fresh, session_taint
from tests.stores import Opening


def segments(home: Path) -> list[str]:
    return sorted(path.name for path in (home / ".git/memoranda").glob("*.log"))


@pytest.mark.parametrize("rotates", [False, True])
def test_a_process_that_runs_on_learns_what_another_one_told(
    context: Context, opening: Opening, home: Path, rotates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the log has gone on to another segment before the first one was read to its end."""
    monkeypatch.setattr(IntakeLog, "large", lambda _self: rotates)
    with opening(context) as running:
        remember(context, running, NewNote("Before."))
        before = running.met(context, running.one())
        assert not before.taint
        running.one().repository._background.stop()  # it reads what is new while it commits, and would hide the rest
        with opening(context) as other:
            session_taint(context, other, "a mail was read")
        if rotates:
            with opening(context) as more:  # closing it brings the log forward
                remember(replace(context, agent="bob"), more, NewNote("Something else."))
            assert segments(home) != ["00000001.log"]
        after = running.met(context, running.one())
        assert after.session == before.session and after.taint


@pytest.mark.parametrize("rotates", [False, True])
def test_an_ambient_session_is_the_same_one_in_every_process(
    context: Context, opening: Opening, rotates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new beginning counts once, whether it is heard, read from the catalog, or both."""
    monkeypatch.setattr(IntakeLog, "large", lambda _self: rotates)
    person = replace(context, person=True)
    with opening(context) as running:
        if (folder := running.one().in_folder) is not None:
            folder._background.stop()
        ambient = {running.one().sessions.ambient(context)}
        for _ in range(3):
            with opening(context) as other:
                session_fresh(person, other)
            with opening(context) as more:
                remember(replace(context, agent="bob"), more, NewNote("Something else."))
            with opening(context) as third:
                met = [space.met(context, space.one()).session for space in (running, third)]
            assert len(set(met)) == 1 and not ambient & set(met)
            ambient.add(met[0])
