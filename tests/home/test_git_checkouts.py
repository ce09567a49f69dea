"""Clones of which only a part is here: a sparse checkout deletes no memory, a partial clone is no damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from home.tools import assert_sound, bodies, git, head, note, opened, status
from memoranda.context import Context
from memoranda.errors import InvalidInput
from memoranda.home.create import create
from memoranda.operations.doctor import doctor
from memoranda.operations.space import Space

pytestmark = pytest.mark.usefixtures("quick")


def said(live: Context, space: Space) -> set[str]:
    """The notes but for those that the Home began with."""
    return {text for text in bodies(live, space) if not text.startswith("base ")}


def two_notes(base: Path, live: Context) -> tuple[Path, Path]:
    with opened(base, live) as space:
        here = note(live, space, "Acme renewed", subject="customer/acme")
        there = note(live, space, "Brook left", subject="customer/brook")
    return base / here.path, base / there.path


def test_a_sparse_checkout_deletes_no_memory(base: Path, live: Context) -> None:
    here, there = two_notes(base, live)
    git(base, "sparse-checkout", "set", "--no-cone", "/memory/notes/customer/acme/", "/memory/home.yaml")
    assert here.exists() and not there.exists()
    before = head(base)
    for _ in range(2):
        with opened(base, live) as space:
            assert said(live, space) == {"Acme renewed", "Brook left"}
    assert head(base) == before
    with opened(base, live) as space:
        note(live, space, "Brook came back", subject="customer/brook")
        assert said(live, space) == {"Acme renewed", "Brook left", "Brook came back"}
    assert_sound(base)
    git(base, "sparse-checkout", "disable")
    assert there.exists() and status(base) == ""
    there.unlink()  # this is a person's
    with opened(base, live) as space:
        assert said(live, space) == {"Acme renewed", "Brook came back"}


def test_what_a_person_deletes_in_a_sparse_checkout_is_deleted(base: Path, live: Context) -> None:
    here, _ = two_notes(base, live)
    git(base, "sparse-checkout", "set", "--no-cone", "/memory/notes/customer/acme/", "/memory/home.yaml")
    here.unlink()
    with opened(base, live) as space:
        assert said(live, space) == {"Brook left"}


def test_a_partial_clone_is_no_damage(base: Path, live: Context, tmp_path: Path) -> None:
    two_notes(base, live)
    with opened(base, live) as space:
        note(live, space, "Acme left", subject="customer/acme")
    git(base, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{base}", "part")
    part = tmp_path / "part"
    with opened(part, live) as space:
        assert "Acme left" in bodies(live, space)
        note(live, space, "written here")
        codes = {finding.code for finding in doctor(live, space).findings}
    assert "clone_partial" in codes and "repository_damaged" not in codes
    alone = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")  # nothing packs behind our back while it is looked at
    git(part, *alone, "-c", "protocol.file.allow=always", "fetch", "-q", "--refetch", "--no-filter")
    with opened(part, live) as space:
        assert not {"clone_partial", "repository_damaged"} & {finding.code for finding in doctor(live, space).findings}


def test_a_bare_repository_is_no_place_for_a_home(base: Path, live: Context, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(base), "bare")
    before = sorted((tmp_path / "bare").iterdir())
    with pytest.raises(InvalidInput, match="bare"):
        create(tmp_path / "bare", live)
    assert sorted((tmp_path / "bare").iterdir()) == before
