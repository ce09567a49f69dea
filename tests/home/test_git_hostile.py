"""A Home that carries hostile Git configuration: nothing of it runs, and nothing breaks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from home.tools import assert_sound, bodies, git, note, opened, quiet, texts
from memoranda.context import Context
from memoranda.operations import journaling, listing
from memoranda.operations.remembering import update

pytestmark = pytest.mark.usefixtures("quick")


@contextmanager
def canary(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Gives a command that leaves a file when it runs; at the end none may have."""
    script = tmp_path / "canary"
    script.write_text(f'#!/bin/sh\necho "$0 $@" >> {tmp_path}/sang\ncat\n')
    script.chmod(0o755)
    yield lambda name: f"{script} {name}"
    assert not (tmp_path / "sang").exists(), (tmp_path / "sang").read_text()


HOSTILE = [
    ("core.fsmonitor", "{}"), ("core.pager", "{}"), ("core.editor", "{}"), ("core.sshCommand", "{}"),
    ("core.askPass", "{}"), ("core.gitProxy", "{}"), ("alias.status", "!{}"), ("alias.diff-files", "!{}"),
    ("alias.cat-file", "!{}"), ("alias.update-index", "!{}"), ("diff.external", "{}"), ("diff.evil.textconv", "{}"),
    ("diff.evil.command", "{}"), ("filter.evil.clean", "{}"), ("filter.evil.smudge", "{}"),
    ("filter.evil.process", "{}"), ("filter.evil.required", "true"), ("merge.evil.driver", "{}"),
    ("credential.helper", "!{}"), ("gpg.program", "{}"), ("commit.gpgSign", "true"),
    ("uploadpack.packObjectsHook", "{}"),
    ("core.attributesFile", "{root}/attributes"), ("include.path", "{root}/included"), ("core.untrackedCache", "true"),
    ("core.worktree", "/tmp"), ("core.bare", "true"), ("core.ignoreCase", "true"), ("core.autocrlf", "true"),
    ("core.eol", "crlf"), ("core.safecrlf", "true"), ("core.symlinks", "false"), ("core.fileMode", "false"),
    ("core.commitGraph", "false"), ("core.preloadIndex", "true"), ("extensions.worktreeConfig", "true"),
    ("log.showSignature", "true"), ("gc.auto", "1"), ("gc.autoDetach", "false"), ("core.logAllRefUpdates", "false"),
    ("core.abbrev", "4"), ("core.quotePath", "true"), ("diff.renames", "copies"), ("diff.noprefix", "true"),
    ("i18n.commitEncoding", "latin1"), ("i18n.logOutputEncoding", "utf-16"), ("log.date", "relative"),
    ("log.decorate", "full"), ("format.pretty", "oneline"), ("core.hooksPath", "{root}/hooks"), ("color.ui", "always"),
]  # fmt: skip


def test_hostile_configuration_runs_nothing_and_breaks_nothing(base: Path, live: Context, tmp_path: Path) -> None:
    with canary(tmp_path) as command:
        (tmp_path / "hooks").mkdir()
        names = "post-index-change pre-commit post-commit reference-transaction post-checkout pre-auto-gc post-rewrite"
        for folder in (base / ".git" / "hooks", tmp_path / "hooks"):
            folder.mkdir(exist_ok=True)
            for name in [*names.split(), "fsmonitor-watchman", "pre-push", "post-merge", "prepare-commit-msg"]:
                (folder / name).write_text(f"#!/bin/sh\n{command('hook')}\n")
                (folder / name).chmod(0o755)
        (tmp_path / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
        (tmp_path / "included").write_text(f"[core]\n\tfsmonitor = {command('included')}\n")
        for key, value in HOSTILE:
            filled = value.replace("{root}", str(tmp_path)).replace("{}", command(key))
            git(base, "config", "--file", str(base / ".git/config"), key, filled)
        (base / ".gitattributes").write_text("* filter=evil diff=evil merge=evil text eol=crlf ident\n")
        (base / ".git/info").mkdir(exist_ok=True)
        (base / ".git/info/attributes").write_text("* filter=evil diff=evil text=auto eol=crlf\n")
        (base / ".git/info/grafts").write_text(f"{'0' * 40}\n")
        (base / ".git/objects/info").mkdir(exist_ok=True)
        (base / ".git/objects/info/alternates").write_text("/nonexistent/objects\n# x\n../../../../..\n")
        (base / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {command('worktree')}\n")
        with opened(base, live) as space:
            for n in range(3):
                done = note(live, space, f"hostile {n}")
            journaling.append(live, space, journaling.Turn("said", "dana"))
            update(live, space, done.id, "hostile update")
            (base / "memory/notes/crlf.md").write_bytes(b"# CRLF\r\n\r\n$Id$ line\r\n")
            assert "hostile update" in bodies(live, space)
            assert len(listing.log(live, space)) > 5
            space.one().indexes.drop()
            assert "hostile 1" in bodies(live, space)
            assert not [line for line in space.one().repository.verify() if "alternate" not in line]
            quiet(space)
        with opened(base, live) as space:
            assert "hostile update" in bodies(live, space)
    (base / ".git/config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    for path in (".gitattributes", ".git/info/attributes", ".git/info/grafts", ".git/objects/info/alternates"):
        (base / path).unlink()
    shutil.rmtree(base / ".git/hooks")
    assert git(base, "show", "HEAD:memory/notes/crlf.md", accept=(0,)).startswith("# CRLF\r\n")
    assert_sound(base)


def test_replaced_objects_are_not_taken_for_the_truth(base: Path, live: Context) -> None:
    """`git replace` shows another content under an id; what we read are the objects themselves."""
    with opened(base, live) as space:
        path = next(iter(texts(live, space)))
    blob = git(base, "rev-parse", f"HEAD:{path}").strip()
    other = git(base, "hash-object", "-w", "--stdin", stdin=b"forged\n").strip()
    git(base, "replace", blob, other)
    git(base, "replace", "--graft", "HEAD", accept=(0,))
    with opened(base, live) as space:
        space.one().indexes.drop()
        assert bodies(live, space) == {f"base {n}" for n in range(4)}
        assert len(listing.log(live, space, limit=50)) > 4


def test_the_environment_of_the_caller_changes_nothing(base: Path, live: Context, tmp_path: Path) -> None:
    """Called from a hook of another repository, GIT_DIR and its like point elsewhere."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    code = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[2].split(':')\n"
        "from memoranda.context import Context; from memoranda.home.keys import Keys\n"
        "from memoranda.operations.space import Space; from memoranda.operations.remembering import NewNote, remember\n"
        "root = Path(sys.argv[1]); ctx = Context()\n"
        "with Space(ctx, Keys(root.parent / 'keys'), root, None) as space:\n"
        "    remember(ctx, space, NewNote('from a hook'))\n"
    )
    lies = {
        "GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/nonexistent",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": f"touch {tmp_path}/sang",
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor=touch {tmp_path}/sang'", "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_NAMESPACE": "x", "GIT_PREFIX": "y/", "GIT_EXTERNAL_DIFF": f"touch {tmp_path}/sang",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code, str(base), ":".join(sys.path)],
        env={**os.environ, **lies},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "sang").exists()
    assert not (other / "index").exists()
    assert "from a hook" in git(base, "log", "-1", "--format=%s")
    assert_sound(base)
