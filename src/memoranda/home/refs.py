"""Refs in files, moved under Git's own lock protocol (`<ref>.lock`), so that Git and we never overwrite each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from memoranda.errors import HomeDamaged, HomeFormatUnknown, RefMoved
from memoranda.home.durable import lock_with, sync_data, sync_path, unlock_dead
from memoranda.home.layout import Layout
from memoranda.home.objects import Signature
from memoranda.home.store import RefMove

_ZERO = "0" * 40
_MOST_LINKS = 5
_ELSEWHERE = "ref: refs/heads/.invalid"  # what Git leaves in HEAD for older programs when refs lie in no files

_TWIN = "lock."


def _line(path: str) -> str:
    """The text of a small file; every question reads a dozen of them, and a file object costs three times this."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).decode("utf-8").strip()
    finally:
        os.close(descriptor)


class Refs:
    """The refs of one repository on disk."""

    def __init__(self, layout: Layout, clock: Callable[[], datetime]) -> None:
        self._layout = layout
        self._clock = clock
        self._head, self._folder = f"{layout.git_dir}/HEAD", str(layout.common_dir)

    def head(self) -> str | None:
        """The name of the branch that HEAD stands on, None when HEAD is detached."""
        text = _line(self._head)
        return text.removeprefix("ref: ").strip() if text.startswith("ref: ") else None

    def check_format(self) -> None:
        """HomeFormatUnknown for a repository whose refs lie in a table (`git refs migrate`): nothing could be kept."""
        if _line(self._head) == _ELSEWHERE:
            raise HomeFormatUnknown(
                f"The Home in {self._layout.root} cannot be opened.",
                why="Its repository keeps refs in the format reftable, and a Home needs them as files.",
                remedy="Bring it back: `git refs migrate --ref-format=files`.",
            )

    def head_commit(self) -> str | None:
        """The commit that HEAD stands on, None on a branch without a commit."""
        text = _line(self._head)
        return self.read(text.removeprefix("ref: ").strip()) if text.startswith("ref: ") else text

    def read(self, name: str) -> str | None:
        """The commit that `name` names; HomeDamaged for a ref that is not one."""
        for _ in range(_MOST_LINKS):
            try:
                text = _line(f"{self._folder}/{name}")
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return self._packed().get(name)
            if not text.startswith("ref: "):
                if len(text) != 40 or set(text) - set("0123456789abcdef"):
                    raise HomeDamaged(
                        f"The ref {name} holds no commit id.",
                        remedy="Run `git fsck` in the Home and restore the ref from the reflog or a clone.",
                    )
                return text
            name = text.removeprefix("ref: ").strip()
        raise HomeDamaged(f"The ref {name} leads in a circle.", remedy="Run `git symbolic-ref HEAD` and mend it.")

    def names(self, below: str) -> list[str]:
        """The names of all refs below `refs/…/`, loose and packed, whatever they hold."""
        root = self._layout.common_dir
        loose = (path.relative_to(root).as_posix() for path in sorted((root / below).rglob("*")) if path.is_file())
        return sorted({*loose, *(name for name in self._packed() if name.startswith(f"{below}/"))})

    def _packed(self) -> dict[str, str]:
        try:
            text = (self._layout.common_dir / "packed-refs").read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        rows = (line.split(" ", 1) for line in text.splitlines() if line[:1] not in ("#", "^", ""))
        return {row[1]: row[0] for row in rows if len(row) == 2}

    def move(self, moves: Sequence[RefMove]) -> None:
        """All or none: every lock is taken and every old value checked before the first ref changes; durable."""
        locks: list[Path] = []
        try:
            for move in moves:
                self._write_twin(move)
            sync_path(self._layout.own)  # a lock that survives a loss of power shall be known by its twin
            for move in moves:
                path = self._layout.common_dir / move.ref
                path.parent.mkdir(parents=True, exist_ok=True)
                if not lock_with(_lock_of(path), self._twin(move.ref)):
                    raise RefMoved(f"{move.ref} is locked by another program.", remedy="It is tried again by itself.")
                locks.append(_lock_of(path))
                found = self.read(move.ref)
                if found != move.old:
                    raise RefMoved(
                        f"{move.ref} has moved.", why=f"It stands on {found} and not on {move.old}.",
                        remedy="It is tried again by itself.",
                    )  # fmt: skip
            for move, lock in zip(moves, list(locks), strict=True):
                self._log(move)
                lock.replace(self._layout.common_dir / move.ref)
                locks.remove(lock)
            for move in moves:
                folder = (self._layout.common_dir / move.ref).parent
                sync_path(folder)
                sync_path(folder.parent)
        finally:
            for lock in locks:
                lock.unlink(missing_ok=True)
            for move in moves:
                self._twin(move.ref).unlink(missing_ok=True)

    def _write_twin(self, move: RefMove) -> None:
        """Writes what the lock of a ref will hold, under the name by which `unlock` will know it."""
        twin = self._twin(move.ref)
        twin.unlink(missing_ok=True)
        with twin.open("xb") as file:
            file.write(move.new.encode() + b"\n")
            file.flush()
            sync_data(file.fileno())

    def _twin(self, ref: str) -> Path:
        from urllib.parse import quote  # here: 5 ms that only a writer pays

        return self._layout.own / f"{_TWIN}{quote(ref, safe='')}"

    def unlock(self) -> None:
        """Removes the locks that a killed process of ours left; only for one who knows that no other is at it."""
        for twin in self._layout.own.glob(f"{_TWIN}*"):
            from urllib.parse import unquote

            unlock_dead(_lock_of(self._layout.common_dir / unquote(twin.name.removeprefix(_TWIN))), twin)

    def _log(self, move: RefMove) -> None:
        """Writes the reflog, as Git does for branches; HEAD's too when it stands on the branch."""
        if not move.ref.startswith("refs/heads/"):
            return
        who = Signature("Memoranda", "memoranda@localhost", self._clock()).encode().decode("utf-8")
        line = f"{move.old or _ZERO} {move.new} {who}\t{move.note}\n"
        names = [move.ref, "HEAD"] if self.head() == move.ref else [move.ref]
        for name in names:
            folder = self._layout.git_dir if name == "HEAD" else self._layout.common_dir
            path = folder / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(line)


def _lock_of(ref: Path) -> Path:
    return ref.with_name(ref.name + ".lock")
