"""Fixtures of the tests of storage: a Home with a history, a context of now, a background that hurries."""

from __future__ import annotations

from pathlib import Path

import pytest

from home.tools import assert_sound, fresh_home, note, opened
from memoranda.context import Context
from memoranda.home import background
from memoranda.home.keys import Keys


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that commits and tidies does so at once."""
    monkeypatch.setattr(background, "_SOON", 0.005)
    monkeypatch.setattr(background, "_QUIET", 0.02)
    monkeypatch.setattr(background, "_LATER", 0.05)


@pytest.fixture
def live() -> Context:
    """A context with the real clock, for tests in which file times matter."""
    return Context(user="dana", agent="cleo")


@pytest.fixture
def base(tmp_path: Path, live: Context, quick: None) -> Path:
    """A Home with four notes, each of them committed."""
    root = fresh_home(tmp_path / "home", Keys(tmp_path / "keys"), live)
    with opened(root, live) as space:
        for n in range(4):
            note(live, space, f"base {n}")
            assert space.one().repository.flush() is None
    assert_sound(root)
    return root
