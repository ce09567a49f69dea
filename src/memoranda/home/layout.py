"""Where the parts of a Home lie on the disk.

A Home is the working tree of a Git repository. What is ours and must not be lost (the intake log, locks, our private
Git settings) lies under its Git directory; what may be deleted at any moment lies in `.memoranda/`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from memoranda.errors import HomeDamaged, HomeNotFound
from memoranda.values import dataclass

MARKER = "memory/home.yaml"
NESTED = ".memory"
CACHE = ".memoranda"
_READ_BY_GIT = (".gitattributes", ".gitignore", "memory/.gitattributes", "memory/.gitignore", "agents/.gitattributes",
                "memory/golden.yaml")  # fmt: skip
_REFS = ("refs", "logs")


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one Home: `root` is the working tree, `git_dir` and `common_dir` what Git calls so."""

    root: Path
    git_dir: Path
    common_dir: Path

    @property
    def own(self) -> Path:
        """Log, locks and private Git settings; lost only with the repository."""
        return self.git_dir / "memoranda"

    @property
    def cache(self) -> Path:
        """Catalog and indexes; deleting it loses nothing."""
        return self.root / CACHE

    @property
    def objects(self) -> Path:
        return self.common_dir / "objects"

    @property
    def index(self) -> Path:
        return self.git_dir / "index"


def layout_of(root: Path) -> Layout:
    """The layout of the repository whose working tree is `root`; HomeNotFound, HomeDamaged.

    A pipe or a device in the place of a file of ours or of Git's is refused here, before anything reads it: that would
    wait, or fill the memory, without end.
    """
    dot_git = root / ".git"
    try:
        if dot_git.is_dir():
            git_dir = dot_git
        else:
            _refuse_endless(root, [".git"] if is_endless(dot_git) else [])
            text = dot_git.read_text(encoding="utf-8").strip()
            if not text.startswith("gitdir: "):
                raise HomeDamaged(f"{dot_git} is not a Git directory.", remedy="Restore it, or clone the Home again.")
            git_dir = (root / text.removeprefix("gitdir: ")).resolve()
    except FileNotFoundError:
        raise HomeNotFound(
            f"{root} is not a Git repository.", remedy=f"Make a Home of it with `memoranda init {root}`."
        ) from None
    common = git_dir
    pointer = git_dir / "commondir"
    if pointer.exists():
        _refuse_endless(git_dir, ["commondir"] if is_endless(pointer) else [])
        common = (git_dir / pointer.read_text(encoding="utf-8").strip()).resolve()
    layout = Layout(root, git_dir, common)
    if layout.cache.is_symlink():
        _unlink_cache(layout.cache)
    _refuse_endless(root, sorted({os.path.relpath(path, root) for path in _endless(layout)}))
    return layout


def _refuse_endless(root: Path, found: list[str]) -> None:
    if found:
        raise HomeDamaged(
            f"In the place of a file there is a pipe or a device: {', '.join(found)}.",
            why="Whoever reads it waits without end.",
            remedy=f"Look who made it, and remove it in {root}.",
        )


def _endless(layout: Layout) -> Iterator[str]:
    """Pipes and devices where files of ours, or of Git's, are read. Sockets are none: nobody can open them."""
    for name in _READ_BY_GIT:
        if is_endless(layout.root / name):
            yield str(layout.root / name)
    flat = {layout.git_dir, layout.common_dir, layout.common_dir / "info"}
    deep = {layout.own, layout.cache, *(part / name for part in (layout.git_dir, layout.common_dir) for name in _REFS)}
    stack = [(str(folder), folder in deep) for folder in flat | deep]
    while stack:
        folder, below = stack.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if below:
                            stack.append((entry.path, True))
                    elif not entry.is_file(follow_symlinks=False) and is_endless(entry.path):
                        yield entry.path
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # not made yet, just removed, or told by whoever needs it


def is_endless(path: Path | str) -> bool:
    """Whether a pipe or a device stands there, or a link leads to one."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - asked at every start, of texts and of paths
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _unlink_cache(cache: Path) -> None:
    """A commit can bring a link: into another Home's `.memoranda/`, or to where our files are in somebody's way."""
    try:
        cache.unlink(missing_ok=True)
    except OSError as error:
        raise HomeDamaged(
            f"{cache} is a link, and cannot be taken away: {error.strerror}.",
            remedy="Remove it; what lay there is made again.",
        ) from error


def make_cache(cache: Path) -> None:
    """Makes `.memoranda/` where it is missing, and keeps Git from seeing it."""
    if not (cache / ".gitignore").exists():
        cache.mkdir(exist_ok=True)
        (cache / ".gitignore").write_bytes(b"*\n")


def is_home(folder: Path) -> bool:
    """Whether a Home's marker lies in `folder`."""
    return (folder / MARKER).is_file()


def nearest_home(start: Path) -> Path | None:
    """The root of the nearest Home at or above `start`, nested Homes of a project included."""
    for folder in (start, *start.parents):
        if is_home(folder):
            return folder
        if is_home(folder / NESTED):
            return folder / NESTED
    return None
