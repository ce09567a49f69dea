"""What a Home whose objects are rows holds and held, and what of a Home in a folder it has none of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.home.draft import Snapshot
from memoranda.home.history import Step
from memoranda.home.holding import Holding
from memoranda.home.objects import GitObject
from memoranda.home.outside import Found
from memoranda.home.postgres import copying, trees
from memoranda.home.postgres.heads import read_heads
from memoranda.home.postgres.standing import BRANCH, State
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.store import TreeChange

if TYPE_CHECKING:
    from memoranda.home.inventory import Text


class PostgresContents(Holding):
    """The half of a Home in PostgreSQL that only reads."""

    store: PostgresStore

    @abstractmethod
    def _now(self) -> State:
        """What holds at this moment."""

    def branch(self) -> str | None:
        return BRANCH

    # What it holds and held

    def history(self, old: str | None, new: str, *, newest: int | None = None) -> Iterator[Step]:
        return trees.walk(self.store.get_all, old, new, newest)

    def told(self, new: str) -> Iterator[Step | TreeChange]:
        return copying.told(self.store, self.layout, new)

    def verify(self) -> list[str]:
        return copying.verify(self.store, self.layout, list(self._now().refs.values()))

    @contextmanager
    def whole(self) -> Iterator[Path]:
        with copying.objects_in_folder(self.store, self.layout) as layout:
            yield layout.root

    def texts(self, *, history: bool = False) -> Iterator[Text]:
        return copying.texts(self.store, self, history=history)

    def guarded(self, blobs: Iterable[str]) -> Mapping[str, bytes]:
        wanted = list(dict.fromkeys(blobs))
        found = read_heads(self.store, wanted) if wanted else {}
        if missing := [blob for blob in wanted if blob not in found]:
            found |= {item.oid: item.data for item in self.store.get_all(missing) if item is not None}
        return found

    # The ledger

    def keep_ledger(self) -> str | None:
        """Nobody can cut it who is not the service: its refs are rows."""
        return None

    @property
    def ledger_lost(self) -> str | None:
        return None

    # Outside edits: there are no files that anybody could edit

    def look(self, context: Context) -> list[Found]:  # noqa: ARG002
        return []

    def sight(self, context: Context) -> tuple[list[Found], Snapshot | None]:  # noqa: ARG002
        return [], self.snapshot()

    def watch(self) -> None:
        """There is nothing to watch: what others write is seen at the next question."""

    def _object(self, name: str) -> GitObject | None:
        return self.store.get(name)

    # Nothing lies between what is written and what is committed, and no file is beside it

    @property
    def comparing(self) -> bool:
        return False

    def settled(self) -> bool:
        return True

    def make_durable(self) -> None:
        """What can be read is committed."""

    def may_append(self, path: str) -> bool:  # noqa: ARG002
        return True

    def is_being_written(self, path: str) -> bool:  # noqa: ARG002
        return False

    def flush(self, *, wait: bool = True) -> str | None:  # noqa: ARG002
        return None
