"""The one way Git is run.

The Home's own Git configuration may have been written by anybody who can write a file, so it is never read: Git works
with a private directory whose configuration is ours, and gets the Home's objects, index and working tree by name. No
hook, filter, alias, pager, credential helper or fsmonitor of the Home, the user or the system can therefore run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from memoranda.errors import GitFailed, HomeDamaged
from memoranda.home.layout import Layout

_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tautocrlf = false
\tsafecrlf = false
\tquotePath = false
\tfsync = committed,index
\tpackedGitWindowSize = 16m
\tpackedGitLimit = 64m
[gc]
\tauto = 0
[maintenance]
\tauto = false
[index]
\tversion = 2
[protocol]
\tallow = never
"""
_READ = 1 << 16  # bytes
# Notes have no earlier version to be a delta of, and looking for one is most of what joining packs costs: 5.2 s of CPU
# for 100,000 notes, 0.6 without.
ATTRIBUTES = "attributes"
_ATTRIBUTES = "*.md -delta\nagents/*/journal/*.md delta\n"
_MACOS = "[core]\n\tignorecase = true\n\tprecomposeunicode = true\n"
_AT_ONCE = 64  # objects asked for at once: few enough that neither pipe fills and both sides wait


class Git:
    """Runs Git on one Home without ever reading the Home's configuration."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._private = layout.own / "git"
        self._reader: CatFile | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._ready = False

    def environment(self, index: Path | None = None) -> dict[str, str]:
        """The whole environment of Git; most commands are kept from the index, which they would read for nothing."""
        if not self._ready:
            prepare_private(self._private)
            self._ready = True
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "HOME": str(self._private),
            "GIT_DIR": str(self._private),
            "GIT_OBJECT_DIRECTORY": str(self._layout.objects),
            "GIT_WORK_TREE": str(self._layout.root),
            "GIT_INDEX_FILE": str(index or self._private / "index"),
            "GIT_SHALLOW_FILE": str(self._layout.common_dir / "shallow"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_PAGER": "cat",
        }

    @property
    def attributes(self) -> Path:
        """The file that says which objects are worth a delta."""
        return self._private / ATTRIBUTES

    def run(self, *arguments: str, stdin: bytes = b"", accept: Sequence[int] = (0,)) -> bytes:
        """Standard output of `git <arguments>`; GitFailed for an exit code that is not in `accept`."""
        return self.call(*arguments, stdin=stdin, accept=accept).stdout

    def call(
        self, *arguments: str, stdin: bytes = b"", accept: Sequence[int] = (0,), index: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """The finished process of `git <arguments>`; GitFailed for an exit code that is not in `accept`.

        `index` is the index that the command is about.
        """
        try:
            done = subprocess.run(
                ["git", *arguments],
                input=stdin,
                capture_output=True,
                env=self.environment(index),
                cwd=self._layout.root,
                check=False,
            )
        except FileNotFoundError as error:
            raise _no_git() from error
        if done.returncode not in accept:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise GitFailed(
                f"git {arguments[0]} failed with exit code {done.returncode}.",
                why=said[-1] if said else "",
                remedy="Run `memoranda doctor` to see whether the repository is damaged.",
            )
        return done

    def check(self, commits: Sequence[str]) -> list[str]:
        """What `git fsck --strict` says of all objects and of what these commits reach; empty when all is well."""
        done = self.call(
            "fsck", "--strict", "--no-dangling", "--no-progress", *commits, accept=range(-15, 256)
        )  # its exit code is a set of findings
        lines = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
        return [line for line in lines if not line.startswith(("notice:", "Checking", "dangling", "unreachable"))]

    def fields(self, *arguments: str) -> Iterator[bytes]:
        """What `git <arguments>` puts out, field after field up to each NUL, while it runs: for what is too much to be
        held whole. GitFailed at the end when its exit code is not 0."""
        rest = b""
        with self.begin(*arguments) as process:
            assert process.stdout is not None
            try:
                while data := process.stdout.read(_READ):
                    *whole, rest = (rest + data).split(b"\0")
                    yield from whole
            except BaseException:
                process.kill()  # nobody reads on
                raise
        if process.returncode:
            raise GitFailed(
                f"git {arguments[0]} failed with exit code {process.returncode}.",
                remedy="Run `memoranda doctor` to see whether the repository is damaged.",
            )
        if rest:
            yield rest

    def begin(self, *arguments: str, index: Path | None = None) -> subprocess.Popen[bytes]:
        """`git <arguments>`, running; whoever began it reads its output."""
        try:
            return subprocess.Popen(
                ["git", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self.environment(index),
                cwd=self._layout.root,
            )
        except FileNotFoundError as error:
            raise _no_git() from error

    def get(self, name: str) -> tuple[str, str, bytes] | None:
        """(object id, kind, data) of what `name` names (`<id>` or `<id>:<path>`), or None when it names nothing.

        Asked of a long-lived reader, which the threads of this process share. RuntimeError once it is closed.
        """
        return self._answers([name])[0]

    def get_many(self, names: Sequence[str]) -> Iterator[tuple[str, str, bytes] | None]:
        """As `get` for each of `names`, in their order; who goes through them may ask for others meanwhile."""
        for part in _parts(names):
            yield from self._answers(part)

    def _answers(self, names: Sequence[str]) -> list[tuple[str, str, bytes] | None]:
        while True:
            found = self.objects().answers(names)
            if found is not None:
                return found  # else a fresh one has taken its place

    def objects(self) -> CatFile:
        """The long-lived reader; another one when it has ended or was renewed. RuntimeError once it is closed."""
        with self._lock:
            if self._closed:
                raise RuntimeError("this Home is closed")
            if self._reader is None or not self._reader.alive():
                if self._reader is not None:
                    self._reader.close()  # it ended by itself: its pipes are still ours
                self._reader = CatFile(self._layout.root, self.environment())
            return self._reader

    def reader(self) -> CatFile:
        """Another reader of objects, for a long scan; its caller closes it."""
        return CatFile(self._layout.root, self.environment())

    def renew(self) -> None:
        """The shared reader may hold packs open that are gone: the next question is put to a fresh one."""
        with self._lock:
            old, self._reader = self._reader, None
        if old is not None:
            old.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            old, self._reader = self._reader, None
        if old is not None:
            old.close()


class CatFile:
    """`git cat-file --batch` kept running: one object costs a round trip through a pipe."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        try:
            self._process = subprocess.Popen(
                ["git", "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=root,
            )
        except FileNotFoundError as error:
            raise _no_git() from error
        self._lock = threading.Lock()
        self._closed = False

    def alive(self) -> bool:
        return self._process.poll() is None

    def get_many(self, names: Sequence[str]) -> Iterator[tuple[str, str, bytes] | None]:
        """The objects of `names` in their order, None for each that is missing. RuntimeError once it is closed."""
        for part in _parts(names):
            found = self.answers(part)
            if found is None:
                raise RuntimeError("this reader of objects is closed")
            yield from found

    def answers(self, names: Sequence[str]) -> list[tuple[str, str, bytes] | None] | None:
        """The same of at most `_AT_ONCE` names, at once; None when it is closed."""
        stdin = self._process.stdin
        assert stdin is not None
        with self._lock:
            if self._closed:
                return None
            try:
                stdin.write("".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape"))
                stdin.flush()
                return [self._answer() for _ in names]
            except OSError as error:
                raise HomeDamaged(
                    "Git stopped while it read objects of this Home.",
                    why=str(error),
                    remedy="Run `memoranda doctor`; if it names damage, restore the repository from a clone.",
                ) from error

    def _answer(self) -> tuple[str, str, bytes] | None:
        stdout = self._process.stdout
        assert stdout is not None
        header = stdout.readline()
        if not header:
            raise BrokenPipeError("cat-file ended")
        words = header.split()
        if len(words) != 3 or not words[2].isdigit():
            return None
        data = stdout.read(int(words[2]))
        stdout.read(1)
        return words[0].decode(), words[1].decode(), data

    def close(self) -> None:
        """Ends it, after the answer that another thread is being given."""
        with self._lock:
            self._closed = True
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # it has ended, and something was still on its way
                        pipe.close()
            self._process.wait()


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[at : at + _AT_ONCE] for at in range(0, len(names), _AT_ONCE))


def prepare_private(private: Path) -> None:
    """Lays the private Git directory; safe to repeat, and by several processes at once."""
    config = _CONFIG + (_MACOS if sys.platform == "darwin" else "")
    files = {"HEAD": "ref: refs/heads/none\n", "config": config, ATTRIBUTES: _ATTRIBUTES}
    for folder in ("refs", "objects"):
        (private / folder).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = private / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            fresh = private / f"{name}.{os.getpid()}"
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)


def _no_git() -> GitFailed:
    return GitFailed("The program `git` was not found.", remedy="Install Git 2.25 or newer and try again.")
