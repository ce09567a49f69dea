"""Git's comparison of the working tree with its index: what a question in a fresh process waits for longest.

It runs in a process of its own, so it may begin while the interpreter still imports what the question needs.
"""

from __future__ import annotations

from memoranda.home.git import Git
from memoranda.home.layout import Layout


class Comparison:
    """One comparison that is under way."""

    def __init__(self, layout: Layout, git: Git) -> None:
        self._process = git.begin("diff-files", "--name-only", "-z", index=layout.index)

    @property
    def running(self) -> bool:
        """Whether Git is still at it."""
        return self._process.poll() is None

    def differing(self) -> list[str] | None:
        """The tracked files whose state is not what the index holds; None when Git cannot read the index."""
        told, _ = self._process.communicate()
        if self._process.returncode:
            return None
        return [row.decode("utf-8", "surrogateescape") for row in told.split(b"\0") if row]

    def end(self) -> None:
        """Waits for no answer any more, when nobody has."""
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()


def begin(layout: Layout) -> Comparison | None:
    """Begins one; None when there is no index to compare with."""
    return Comparison(layout, Git(layout)) if layout.index.exists() else None
