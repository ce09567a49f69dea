"""The object store in PostgreSQL: Git's objects and refs as rows of the tenant that they belong to.

There is no condition on a tenant in any statement here: row-level security gives a transaction the rows of its tenant
and no others, and a Home's number says which of them are meant.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from memoranda.errors import RefMoved
from memoranda.home.objects import GitObject, object_id, read_tree
from memoranda.home.postgres import packs, trees
from memoranda.home.postgres.ahead import read_ahead
from memoranda.home.postgres.locks import lock, may_lock
from memoranda.home.postgres.rows import Row, Writer, read_rows
from memoranda.home.postgres.standing import BRANCH, STATE, State, state_of
from memoranda.home.postgres.transactions import Cursor, SendOne, Transactions, answered, sending
from memoranda.home.store import LEDGER_REF, RefMove, TreeChange
from memoranda.state.database import Database

_EMPTY_TREE = object_id("tree", b"")
_HELD = 4 << 20  # bytes of trees and commits that are kept at hand
_AT_ONCE = 500  # objects that are asked for in one statement
_SHORTEST = 4  # digits of an id that is told in short
_HEX = frozenset("0123456789abcdef")

# Each step by the key: the planner, which knows nothing of the rows, could choose to read them all.
_OBJECTS = """
WITH RECURSIVE needed AS (
  SELECT oid, kind, base, data FROM memory_objects WHERE home = %(home)s AND oid = ANY(%(names)s)
  UNION ALL
  SELECT below.oid, below.kind, below.base, below.data FROM needed CROSS JOIN LATERAL (
    SELECT oid, kind, base, data FROM memory_objects WHERE home = %(home)s AND oid = needed.base LIMIT 1 OFFSET 0
  ) AS below
) SELECT oid, kind, base, data FROM needed
"""
_FEW = 64  # objects that are asked for by one message
_INSERT = """
INSERT INTO memory_objects (tenant, home, oid, kind, base, data)
SELECT tenant(), %s, oid, kind, base, data FROM unnest(%s::bytea[], %s::smallint[], %s::bytea[], %s::bytea[])
  AS given(oid, kind, base, data)
ON CONFLICT DO NOTHING RETURNING oid
"""
_NEW_REF = "INSERT INTO memory_refs (tenant, home, name, commit) VALUES (tenant(), %s, %s, %s) ON CONFLICT DO NOTHING"
_MOVE_REF = "UPDATE memory_refs SET commit = %s WHERE home = %s AND name = %s AND commit = %s"
_STATE = f"SELECT {STATE} FROM memory_homes WHERE home = %s"

_HOLD = f"SET LOCAL lock_timeout = '10s'; SELECT FROM memory_homes WHERE home = %s FOR UPDATE; {_STATE}"


class PostgresStore(Transactions):
    """Implements `ObjectStore` on the rows of one Home. Threads may share it.

    Args:
        database: the state of the service.
        tenant: whose transactions these are.
        home: the number of the Home.
    """

    def __init__(self, database: Database, tenant: str, home: int) -> None:
        super().__init__(database, tenant)
        self.home = home
        self._held: OrderedDict[str, GitObject] = OrderedDict()  # trees and commits: they hold no text of a note
        self._size = 0
        self._passing: dict[str, GitObject] = {}  # files that others wrote a moment ago, and that are about to be read
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._questions = 0  # that were begun by `look`, and of the last one its number and answer
        self._looked: tuple[int, State | None] = (0, None)
        self._writer = Writer()
        self.seen: State | None = None  # what was read last

    def beside(self, home: int) -> PostgresStore:
        """Another Home of the same tenant's."""
        return PostgresStore(self._database, self.tenant, home)

    def state(self, cursor: Cursor, *, hold: bool = False) -> State:
        """What holds now; with `hold` nobody else writes in the Home until the transaction ends."""
        if not hold:
            return self._told(cursor.execute(_STATE, (self.home,)).fetchone())
        # Held by a statement of its own: what the next one sees is as new as the moment in which it is held.
        told = cursor.connection.execute(_HOLD.replace("%s", str(int(self.home))).encode())
        told.nextset()
        told.nextset()
        return self._told(told.fetchone())

    def _told(self, row: Sequence[Any] | None) -> State:
        if row is None:
            raise RefMoved("The Home is not there any more.", remedy="Somebody has moved or removed it.")
        state = state_of(row)
        self.saw(state)
        return state

    def saw(self, state: State) -> None:
        """What a thread has read, or has written; what is newer than that stays."""
        with self._lock:
            if self.seen is None or state.mark >= self.seen.mark:
                self.seen = state

    def look(self) -> State:
        """What holds at this moment; threads that ask at the same time share one question."""
        own = self._opened()
        if own is not None:
            with answered():
                return self.state(own)
        before = self._questions
        with self._looking:
            number, state = self._looked
            if number > before and state is not None:  # begun after this call was: as new as an answer of our own
                return state
            self._questions += 1
            rows = self.ask(_STATE.replace("%s", str(int(self.home))))
            state = self._told(rows[0] if rows else None)
            self._looked = (self._questions, state)
            return state

    # Objects

    def put(self, objects: Sequence[GitObject]) -> object:
        """Keeps the objects; nothing else is needed until a ref leads to them, since nothing is cleaned up."""
        with self.writing() as cursor:
            self.insert(cursor, objects)
        return None

    def insert(self, cursor: Cursor, objects: Sequence[GitObject]) -> None:
        """Keeps the objects in the transaction of `cursor`."""
        self.send(cursor, objects)()

    def send(self, cursor: Cursor, objects: Sequence[GitObject]) -> Callable[[], None]:
        """As `insert`, which has happened when what is returned was called; that waits for the answer."""
        answer = self._send_rows(cursor, self._writer.rows(objects))

        def done() -> None:
            self._writer.known(answer())
            for item in objects:
                self._keep(item)

        return done

    def insert_rows(self, cursor: Cursor, rows: Sequence[Row]) -> set[bytes]:
        """Adds the rows; the ids of those that were there already, and stay as they are."""
        return self._send_rows(cursor, rows)()

    def _send_rows(self, cursor: Cursor, rows: Sequence[Row]) -> Callable[[], set[bytes]]:
        if not rows:
            return set
        columns = [list(column) for column in zip(*rows, strict=True)]
        told = cursor.connection.cursor(binary=True).execute(_INSERT, (self.home, *columns))
        return lambda: {row.oid for row in rows}.difference(row[0] for row in told.fetchall())

    def undone(self) -> None:
        """A transaction was not committed: what it wrote is not there."""
        self._writer.forget()
        self.rest()

    def rest(self) -> None:
        """Lets go of the objects that are held; they are read again."""
        with self._lock:
            self._held.clear()
            self._passing = {}
            self._size = 0

    def release(self, handle: object) -> None:
        """Nothing is held."""

    def sweep(self, *, alone: bool = False, holds: bool = True) -> None:
        """Whoever is killed leaves nothing: a transaction is there as a whole or not at all."""

    def get(self, name: str) -> GitObject | None:
        start, colon, path = name.partition(":")
        if start.endswith("^{tree}"):
            commit = self.get(start.removesuffix("^{tree}"))
            return self._one(trees.tree_of(commit)) if commit is not None and commit.kind == "commit" else None
        found = self._one(start)
        if not colon or found is None:
            return found
        if found.kind == "commit":
            found = self._one(trees.tree_of(found))
        for step in path.encode("utf-8", "surrogateescape").split(b"/") if path else ():
            if found is None or found.kind != "tree":
                return None
            found = self._one(next((oid for _, entry, oid in read_tree(found.data) if entry == step), None))
        return found

    def _one(self, name: str | None) -> GitObject | None:
        if name is None:
            return None
        return self.get_all([name])[0]

    def get_many(self, names: Sequence[str]) -> Iterator[GitObject | None]:
        for at in range(0, len(names), _AT_ONCE):
            part = list(names[at : at + _AT_ONCE])
            if all(set(name) <= _HEX for name in part):
                yield from self.get_all(part)
            else:
                yield from map(self.get, part)

    def get_all(self, names: Sequence[str]) -> list[GitObject | None]:
        """The objects with these ids, whole or in short, in one question for all that are not at hand."""
        with self._lock:
            found = {name: self._held.get(name) or self._passing[name] for name in names if self._has(name)}
        missing = [name for name in dict.fromkeys(names) if name not in found and name != _EMPTY_TREE]
        if missing:
            ids = {name: self._id(name) for name in missing}
            wanted = [oid for oid in ids.values() if oid is not None]
            rows = {row.oid: row for row in self._asked(wanted)}
            read = dict(zip(wanted, read_rows(rows, wanted), strict=True))
            for name, oid in ids.items():
                if oid is not None and (item := read[oid]) is not None:
                    found[name] = item
                    self._keep(item)
        if _EMPTY_TREE in names:
            found[_EMPTY_TREE] = GitObject("tree", b"", _EMPTY_TREE)
        return [found.get(name) for name in names]

    def _has(self, name: str) -> bool:
        return name in self._held or name in self._passing

    def foresee(self, old: State, new: State) -> None:
        """Reads together what others wrote between these states, for who is about to take it in."""
        refs = (BRANCH, LEDGER_REF)
        with self._lock:
            self._passing = {}
        before, after = ({ref: state.refs.get(ref) for ref in refs} for state in (old, new))
        files = read_ahead(self.get_all, before, after, BRANCH)
        with self._lock:
            self._passing = {item.oid: item for item in files}

    def _asked(self, names: Sequence[bytes]) -> list[Row]:
        """As `rows`, by one message for a few that are in no pack."""
        if not names:
            return []
        if len(names) <= _FEW:
            told = ", ".join(f"'\\x{name.hex()}'" for name in names)
            query = _OBJECTS.replace("= ANY(%(names)s)", f"IN ({told})").replace("%(home)s", str(int(self.home)))
            found = {row[0]: Row(*row) for row in self.ask(query)}
            if not packs.lacking(found, names):
                return list(found.values())
        with self.reading() as cursor:
            return self.rows(cursor, names)

    def rows(self, cursor: Cursor, names: Sequence[bytes]) -> list[Row]:
        """The rows of these objects, and of what they are deltas against."""
        found = self._own_rows(cursor, names)
        while missing := packs.lacking(found, names):
            more = packs.find(cursor, self.home, missing)
            # What is in no pack may have left it meanwhile, or has a row of its own beside the pack of its deltas.
            more |= self._own_rows(cursor, [name for name in missing if name not in more])
            if not more:
                break
            found |= more
        return list(found.values())

    def _own_rows(self, cursor: Cursor, names: Sequence[bytes]) -> dict[bytes, Row]:
        if not names:
            return {}
        cursor.execute(_OBJECTS, {"home": self.home, "names": list(names)})
        return {row[0]: Row(*row) for row in cursor.fetchall()}

    def join(self, *, at_least: int = packs.AT_LEAST) -> int:
        """Joins the rows of objects to packs, as long as there are so many; how many. One at a time does it."""
        done = 0
        while True:
            with self.writing() as cursor:
                if not (packs.allowed(cursor) and may_lock(cursor, self._joining)):
                    return done
                joined = packs.join(cursor, self.home, at_least=at_least)
            if not joined:
                return done
            done += joined

    def part(self, cursor: Cursor) -> int:
        """Gives every object a row of its own, and keeps it so until the transaction ends; how many packs it took."""
        self.join_nothing(cursor)
        return packs.part(cursor, self.home)

    def join_nothing(self, cursor: Cursor) -> None:
        """Nobody joins rows until the transaction ends; waits for whoever does at this moment."""
        lock(cursor, self._joining)

    @property
    def _joining(self) -> str:
        return f"{self.tenant}\n{self.home}\nobjects"

    def every_id(self, cursor: Cursor) -> set[bytes]:
        """The ids of all objects."""
        query = "SELECT oid FROM memory_objects WHERE home = %s"
        own = {row[0] for row in cursor.execute(query, (self.home,)).fetchall()}
        return own.union(packs.every_id(cursor, self.home))

    def _id(self, name: str) -> bytes | None:
        if len(name) == 40 and set(name) <= _HEX:
            return bytes.fromhex(name)
        if not _SHORTEST <= len(name) < 40 or not set(name) <= _HEX:
            return None
        low, high = bytes.fromhex(name.ljust(40, "0")), bytes.fromhex(name.ljust(40, "f"))
        query = "SELECT oid FROM memory_objects WHERE home = %s AND oid BETWEEN %s AND %s LIMIT 2"
        with self.reading() as cursor:
            found = {row[0] for row in cursor.execute(query, (self.home, low, high)).fetchall()}
            found |= packs.alike(cursor, self.home, low, high)
        return next(iter(found)) if len(found) == 1 else None

    def _keep(self, item: GitObject) -> None:
        if item.kind not in ("tree", "commit"):
            return
        with self._lock:
            if item.oid in self._held:
                self._held.move_to_end(item.oid)
                return
            self._held[item.oid] = item
            self._size += len(item.data)
            while self._size > _HELD:
                _, old = self._held.popitem(last=False)
                self._size -= len(old.data)

    # Refs

    def ref(self, name: str) -> str | None:
        """Where a ref stands, by what was read last of the Home; it is read anew with every snapshot."""
        return (self.seen or self.look()).refs.get(name)

    def move(self, moves: Sequence[RefMove]) -> None:
        with self.writing() as cursor:
            self.move_in(cursor, self.state(cursor, hold=True), moves)
        self.seen = None

    def move_in(self, cursor: Cursor, state: State, moves: Sequence[RefMove]) -> None:
        """As `move`, in the transaction of `cursor`, which holds the Home in this state."""
        with sending(cursor) as each_one:
            self.send_moves(each_one, state, moves)

    def send_moves(self, each_one: SendOne, state: State, moves: Sequence[RefMove]) -> None:
        """As `move_in`, by what `sending` gave."""
        for move in moves:
            if state.refs.get(move.ref) != move.old:
                raise RefMoved(
                    f"{move.ref} has moved.", why=f"It stands on {state.refs.get(move.ref)} and not on {move.old}.",
                    remedy="It is tried again by itself.",
                )  # fmt: skip
            if move.old is None:
                each_one(_NEW_REF, (self.home, move.ref, move.new))
            else:
                each_one(_MOVE_REF, (move.new, self.home, move.ref, move.old))

    # What they lead to

    def changes(self, old: str | None, new: str) -> list[TreeChange]:
        return trees.changes(self.get_all, None if old is None else self._tree(old), self._tree(new))

    def _tree(self, name: str) -> str | None:
        (found,) = self.get_all([name])
        return name if found is None or found.kind != "commit" else trees.tree_of(found)

    def files(self, commit: str) -> Iterator[tuple[str, str]]:
        root = self._tree(commit)
        return trees.files(self.get_all, root) if root is not None else iter(())

    def count(self, commit: str) -> int:
        return sum(1 for _ in self.files(commit))

    def is_ancestor(self, old: str, new: str) -> bool:
        return trees.is_ancestor(self.get_all, old, new)

    def erase(self, names: set[bytes], *, hints: Mapping[bytes, bytes], merge: Sequence[str]) -> int:  # noqa: ARG002
        """Removes these objects; what stands as a delta against one of them is written whole before."""
        with self.writing() as cursor:
            return self.erase_in(cursor, names)

    def erase_in(self, cursor: Cursor, names: set[bytes]) -> int:
        self.part(cursor)
        gone = list(names)
        query = "SELECT oid FROM memory_objects WHERE home = %s AND base = ANY(%s) AND oid <> ALL(%s)"
        kept = [row[0] for row in cursor.execute(query, (self.home, gone, gone)).fetchall()]
        for at in range(0, len(kept), _AT_ONCE):
            part = kept[at : at + _AT_ONCE]
            rows = {row.oid: row for row in self.rows(cursor, part)}
            whole = Writer().rows(item for item in read_rows(rows, part) if item is not None)
            update = "UPDATE memory_objects SET base = NULL, data = %s WHERE home = %s AND oid = %s"
            cursor.executemany(update, [(row.data, self.home, row.oid) for row in whole])
        cursor.execute("DELETE FROM memory_objects WHERE home = %s AND oid = ANY(%s)", (self.home, gone))
        self.undone()
        return len(kept)

    def close(self) -> None:
        self.undone()
