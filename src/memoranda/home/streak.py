"""Our own groups of commits in a row, with nobody's commit between: who follows the log need not read them again."""

from __future__ import annotations

from collections import deque

from memoranda.home.groups import Group, State

_ROW = 32  # states that a group tells of: for who looks now and then


class Streak:
    """The groups that this process has made or met since somebody else moved the branch or the ledger."""

    def __init__(self) -> None:
        # commit of the branch -> the last record that it holds; the second is another where records changed no file
        self._commits: dict[str | None, tuple[int, int]] = {}
        self._ledgers: dict[str | None, int] = {}
        self._row: deque[State] = deque(maxlen=_ROW)
        self._last: Group | None = None

    def follow(self, group: Group) -> None:
        """A group was made, here or by another process; that its refs have moved, who asks knows from the refs."""
        before, after = group.before.seq, group.after.seq
        if self._commits.get(group.main[0], (0, -1))[1] != before or self._ledgers.get(group.ledger[0]) != before:
            self._row.clear()
            self._commits.clear()
            self._ledgers.clear()
            for state in (*group.row, (group.main[0], group.ledger[0], before)):
                self._take(state)
        self._take((group.main[1] or group.main[0], group.ledger[1], after))
        self._last = group

    def _take(self, state: State) -> None:
        commit, ledger, seq = state
        self._commits[commit] = self._commits.get(commit, (seq, seq))[0], seq
        self._ledgers[ledger] = seq
        if not self._row or self._row[-1] != state:
            self._row.append(state)

    def row(self, state: State) -> tuple[State, ...]:
        """What a group tells that goes on from this state: the last states before it."""
        return tuple(self._row)[:-1] if self._row and self._row[-1] == state else ()

    def leads(self, group: Group | None, commit: str | None) -> bool:
        """Whether from `commit` on only our groups up to `group` came."""
        return group is not None and group == self._last and commit in self._commits

    def held(self, commit: str | None, seq: int) -> bool:
        """Whether `commit` holds the records up to `seq`, and was gone on from as holding just these.

        What else was committed by then is on commits that a person has left: in the ledger, and not in this one.
        """
        first, last = self._commits.get(commit, (0, -1))
        return first <= seq <= last

    def continues(self, group: Group | None, ledger: str | None) -> bool:
        """Whether from this commit of the ledger on only our groups up to `group` came."""
        return group is not None and group == self._last and ledger in self._ledgers
