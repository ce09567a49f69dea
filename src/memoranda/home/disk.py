"""The object store on a disk: an ordinary Git repository.

Objects are written as one synced pack a batch and read through Git's own `cat-file`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from memoranda.home.durable import FileLock, sync_data, sync_path
from memoranda.home.git import Git
from memoranda.home.layout import Layout
from memoranda.home.objects import GitObject, object_id, write_pack
from memoranda.home.refs import Refs
from memoranda.home.store import RefMove, TreeChange

_EMPTY_TREE = object_id("tree", b"")
_HEAD = 52  # bytes before a path in Git's list of a tree: mode, kind, id
_REGULAR = (b"100644", b"100755")
_MANY_PACKS = 60
_LONG = 3600.0  # seconds


class DiskStore:
    """Implements `ObjectStore` on the repository that `layout` names."""

    def __init__(self, layout: Layout, git: Git, clock: Callable[[], datetime]) -> None:
        self._layout = layout
        self._git = git
        self.refs = Refs(layout, clock)
        self._packing = threading.Lock()
        self._packing_file = FileLock(layout.own / "packing.lock")

    def put(self, objects: Sequence[GitObject]) -> Path | None:
        """Writes one pack, synced with its folder; the pack is held by `.keep` until `release`."""
        if not objects:
            return None
        folder = self._layout.objects / "pack"
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"tmp_memoranda_{os.getpid()}_{objects[0].oid[:12]}"
        try:
            return self._put(objects, folder, fresh)
        except OSError:
            for left in (fresh, fresh.with_suffix(".idx")):
                left.unlink(missing_ok=True)
            raise

    def _put(self, objects: Sequence[GitObject], folder: Path, fresh: Path) -> Path:
        with fresh.open("wb") as file:
            pack = write_pack(objects, file.write, len(objects))
            file.flush()
            sync_data(file.fileno())
        keep = folder / f"pack-{pack.name}.keep"
        with keep.open("wb") as file:
            file.write(f"memoranda {os.getpid()}\n".encode())
            file.flush()
            sync_data(file.fileno())  # an empty one would be taken for a person's, and stay for good
        index = fresh.with_suffix(".idx")
        with index.open("wb") as file:
            file.write(pack.index)
            file.flush()
            sync_data(file.fileno())
        for path in (fresh, index):
            path.chmod(0o444)
        fresh.replace(folder / f"pack-{pack.name}.pack")
        index.replace(folder / f"pack-{pack.name}.idx")  # last: its name makes the pack visible
        sync_path(folder)
        return keep

    def release(self, handle: object) -> None:
        if isinstance(handle, Path):
            handle.unlink(missing_ok=True)

    def get(self, name: str) -> GitObject | None:
        for found in self.get_many([name]):
            return found
        return None

    def get_many(self, names: Sequence[str]) -> Iterator[GitObject | None]:
        """The objects of `names`; a blob whose bytes are not those that its id names is missing.

        Git checks that in `fsck` only, and whoever can write files can put other bytes under a loose object's name.
        """
        for found in self._git.get_many(names):
            if found is None or (found[1] == "blob" and object_id("blob", found[2]) != found[0]):
                yield None
            else:
                yield GitObject(found[1], found[2], found[0])

    def look_again(self) -> None:
        """What is read from now on is looked for anew, also in packs that others have written meanwhile."""
        self._git.renew()

    def ref(self, name: str) -> str | None:
        return self.refs.read(name)

    def move(self, moves: Sequence[RefMove]) -> None:
        self.refs.move(moves)

    def changes(self, old: str | None, new: str) -> list[TreeChange]:
        out = self._git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old or _EMPTY_TREE, new)
        return read_raw(out.split(b"\0")[:-1])

    def files(self, commit: str) -> Iterator[tuple[str, str]]:
        for row in self._git.fields("ls-tree", "-r", "-z", commit):
            mode, _, blob = row[:_HEAD].split(b" ")
            if mode in _REGULAR:
                yield row[_HEAD + 1 :].decode("utf-8", "surrogateescape"), blob.decode()

    def count(self, commit: str) -> int:
        return sum(1 for _ in self._git.fields("ls-tree", "-r", "-z", "--name-only", commit))

    def is_ancestor(self, old: str, new: str) -> bool:
        """False also when `old` does not exist here any more."""
        return old == new or self._git.call("merge-base", "--is-ancestor", old, new, accept=(0, 1, 128)).returncode == 0

    def consolidate(self) -> bool:
        """Joins small packs when there are many; whether it did. Nothing is dropped that is not in another pack."""
        packs = list((self._layout.objects / "pack").glob("pack-*.pack"))
        if len(packs) < _MANY_PACKS or not self._packing.acquire(blocking=False):
            return False
        try:
            if not self._packing_file.try_acquire():
                return False
            try:
                self._git.run(
                    "-c", f"core.attributesFile={self._git.attributes}", "-c", "pack.window=3",
                    "repack", "--geometric=2", "-d", "-q", accept=(0, 128, 129),
                )  # fmt: skip
            finally:
                self._packing_file.release()
        finally:
            self._packing.release()
        return True

    @contextmanager
    def packing(self) -> Iterator[None]:
        """Nobody else of ours writes packs again meanwhile."""
        with self._packing:
            self._packing_file.acquire()
            try:
                yield
            finally:
                self._packing_file.release()

    def erase(self, names: set[bytes], *, hints: Mapping[bytes, bytes], merge: Sequence[str]) -> int:
        from memoranda.home.erasing.purge import purge

        return purge(self._git, self._layout.objects, names, hints, merge)

    def verify(self, heads: Sequence[str]) -> list[str]:
        """What `git fsck --strict` says of all objects and of what these commits reach; empty when all is well."""
        return self._git.check(heads)

    def leftovers(self) -> list[str]:
        """What a killed writer of this Home left half-written in the folder of packs."""
        return [str(path.relative_to(self._layout.common_dir.parent)) for path in self._dead()]

    def sweep(self, *, alone: bool = False, holds: bool = True) -> None:
        """Removes the leftovers; who knows to be `alone` need not ask whether their writers live."""
        for path in self._dead(alone=alone, own=True):
            if holds or path.suffix != ".keep":
                path.unlink(missing_ok=True)

    def _dead(self, *, alone: bool = False, own: bool = False) -> Iterator[Path]:
        folder = self._layout.objects / "pack"
        for path in folder.glob("tmp_memoranda_*"):
            owner = path.name.split("_")[2]
            if alone or not owner.isdigit() or not _lives(int(owner)) or _old(path):
                yield path
        for path in folder.glob("pack-*.keep"):
            try:
                words = path.read_text(encoding="utf-8", errors="replace").split()
            except FileNotFoundError:
                continue  # released by another worktree's committer just now
            ours = len(words) == 2 and words[0] == "memoranda" and words[1].isdigit()
            # Our own: of a group that could not be finished before the Home was closed and opened again.
            if ours and (alone or (own and int(words[1]) == os.getpid()) or not _lives(int(words[1])) or _old(path)):
                yield path

    def close(self) -> None:
        self._packing_file.close()
        self._git.close()


def read_raw(fields: Sequence[bytes]) -> list[TreeChange]:
    """The rows of Git's `--raw -z`, two fields each; only regular files count as present."""
    return [read_row(fields[at], fields[at + 1]) for at in range(0, len(fields), 2)]


def read_row(head: bytes, path: bytes) -> TreeChange:
    """One row of them."""
    before, after, old, new, _ = head.split(b" ")
    return TreeChange(
        path.decode("utf-8", "surrogateescape"),
        old.decode() if before in (b":100644", b":100755") else None,
        new.decode() if after in _REGULAR else None,
    )


def _old(path: Path) -> bool:
    """Whether a file is older than any batch takes: its writer's number is another process's by now."""
    try:
        # The machine's clock and no other: it is compared with a file's time, which the system has set by it.
        return time.time() - path.stat().st_mtime > _LONG
    except FileNotFoundError:
        return False


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:  # one that was killed has a number until its parent has asked for its end, which some never do
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return True  # it ended just now, or this is no Linux
