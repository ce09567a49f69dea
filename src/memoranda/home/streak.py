"""Our own groups of commits in a row, with nobody's commit between: who follows the log need not read them again."""

from __future__ import annotations

from memoranda.home.groups import Group


class Streak:
    """The groups that this process has made or met since somebody else moved the branch or the ledger."""

    def __init__(self) -> None:
        self._commits: dict[str | None, int] = {}  # commit of the branch -> the last record that it holds
        self._ledgers: dict[str | None, int] = {}
        self._last: Group | None = None

    def follow(self, group: Group) -> None:
        """A group was made, here or by another process; that its refs have moved, who asks knows from the refs."""
        before, after = group.before.seq, group.after.seq
        if self._commits.get(group.main[0]) != before or self._ledgers.get(group.ledger[0]) != before:
            self._commits, self._ledgers = {group.main[0]: before}, {group.ledger[0]: before}
        head = group.main[1] if group.main[1] is not None else group.main[0]
        self._commits[head] = self._ledgers[group.ledger[1]] = after
        self._last = group

    def held(self, group: Group | None, commit: str | None) -> int | None:
        """The last record that `commit` holds, when from there on only our groups up to `group` came."""
        return self._commits.get(commit) if group is not None and group == self._last else None

    def continues(self, group: Group | None, ledger: str | None) -> bool:
        """Whether from this commit of the ledger on only our groups up to `group` came."""
        return group is not None and group == self._last and ledger in self._ledgers
