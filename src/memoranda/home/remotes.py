"""Fetches from other clones: objects and where their refs stand. Nothing else of a remote, or of a Home's settings.

The address of a remote is read from the Home's configuration as a text. Git then runs with our own directory and the
settings of the person (credentials, `ssh`, proxies), never with those of the Home, and only over the usual transports.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from memoranda.errors import GitFailed, InvalidInput, NotFound, Unavailable
from memoranda.home.git import Git
from memoranda.home.layout import NESTED, Layout, is_home
from memoranda.home.store import FROM, LEDGER_REF, ObjectStore
from memoranda.values import dataclass

_TRANSPORTS = ("file", "git", "http", "https", "ssh")
_FETCHED = "refs/fetched"  # in our own Git directory, for the time of one fetch
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Remote:
    """Another clone: its address, the name under which it is known here, and what its refs were fetched as."""

    url: str
    name: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where the refs of a remote stand: its branch, and its ledger (None: it has none)."""

    branch: str
    commit: str
    ledger: str | None


def remote_of(layout: Layout, told: str | None, branch: str) -> Remote:
    """The remote that is meant: by its name, by its address, or the one that the branch follows. NotFound."""
    name = told or _setting(layout, f"branch.{branch}.remote") or "origin"
    if _NAME.fullmatch(name) and (url := _setting(layout, f"remote.{name}.url")):
        return Remote(_address(url, layout.root), name)
    if told is None or (_NAME.fullmatch(told) and not Path(told).exists()):
        raise NotFound(
            f"There is no remote {name} here.", remedy="Name another clone by its folder or address: it is taken once."
        )
    url = _address(told, Path.cwd())
    return Remote(url, re.sub(r"[^A-Za-z0-9_-]+", "-", url).strip("-")[-64:] or "clone")


def _address(told: str, base: Path) -> str:
    """An address as Git takes it, whatever folder it is run in; of a project with a Home inside, that Home."""
    if told.startswith("-"):
        raise InvalidInput(f"{told} is no address.", remedy="Name a folder or an address of Git.")
    folder = base / Path(told).expanduser()
    if folder.is_dir():
        inner = folder / NESTED
        return str((inner if is_home(inner) and not is_home(folder) else folder).resolve())
    return told


def _setting(layout: Layout, key: str) -> str | None:
    """One value of the repository's configuration, as a text; what it includes is not read."""
    call = ["git", "config", "--file", str(layout.common_dir / "config"), "--no-includes", "--get", key]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=layout.own, env=_bare())
    return done.stdout.strip() or None if done.returncode == 0 else None


def _bare() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DIR": os.devnull,
    }


def fetch(git: Git, store: ObjectStore, url: str, *, branch: str | None = None, have: str | None = None) -> Fetched:
    """Fetches a branch (the remote's own when none is told) and the ledger; `have` is a commit that is here already.

    Raises:
        NotFound: the remote has no such branch. Unavailable: it cannot be reached.
    """
    refs = _refs(git, url)
    branch = branch if branch is not None and f"refs/heads/{branch}" in refs else refs.get("HEAD", "")
    if f"refs/heads/{branch}" not in refs:
        raise NotFound(f"{url} has no branch to take.", remedy="Look whether something was ever pushed there.")
    wanted = [f"refs/heads/{branch}", *([LEDGER_REF] if LEDGER_REF in refs else [])]
    if any(store.get(refs[name]) is None for name in wanted):
        specs = [f"+{name}:{_FETCHED}/{n}" for n, name in enumerate(wanted)]
        tips = [f"--negotiation-tip={commit}" for commit in (have, store.ref(LEDGER_REF)) if commit is not None]
        options = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "-q")
        try:
            _run(git, "fetch", *options, *tips, "--", url, *specs)
        finally:
            for n in range(len(wanted)):
                git.run("update-ref", "-d", f"{_FETCHED}/{n}", accept=(0, 1, 128))
        git.renew()
    return Fetched(branch, refs[wanted[0]], refs.get(LEDGER_REF))


def _refs(git: Git, url: str) -> dict[str, str]:
    """ref -> commit of a remote; `HEAD` -> the name of its branch."""
    found: dict[str, str] = {}
    out = _run(git, "ls-remote", "--symref", "-q", "--", url, "HEAD", "refs/heads/*", LEDGER_REF)
    for row in out.decode("utf-8", "replace").splitlines():
        value, _, name = row.partition("\t")
        if value.startswith("ref: "):
            found[name] = value.removeprefix("ref: refs/heads/")
        elif name != "HEAD":
            found[name] = value
    heads = sorted(name for name in found if name.startswith("refs/heads/"))
    if "HEAD" not in found and heads:
        found["HEAD"] = heads[0].removeprefix("refs/heads/")
    return found


def _run(git: Git, *words: str) -> bytes:
    """Git with our own directory and the person's own settings, over the usual transports."""
    person = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    asked = {name: os.environ[name] for name in ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS") if name in os.environ}
    ours = git.environment()
    places = ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_SHALLOW_FILE", "GIT_NO_REPLACE_OBJECTS")
    env = {**person, **asked, **{name: ours[name] for name in places}, "LC_ALL": "C"}
    allowed = [word for name in _TRANSPORTS for word in ("-c", f"protocol.{name}.allow=always")]
    safe = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never", *allowed]
    try:
        done = subprocess.run(["git", *safe, *words], capture_output=True, env=env, cwd=ours["GIT_DIR"], check=False)
    except FileNotFoundError as error:
        raise GitFailed("The program `git` was not found.", remedy="Install Git and try again.") from error
    if done.returncode != 0:
        said: Sequence[str] = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Unavailable(
            f"The other clone cannot be reached (git {words[0]}).",
            why=" ".join(line.strip() for line in said[:2]),
            remedy="Look whether the address is right, and whether plain Git reaches it.",
        )
    return done.stdout


def tracking(name: str) -> str:
    """The ref that holds the ledger of a remote as it was fetched last."""
    return f"{FROM}/{name}"
