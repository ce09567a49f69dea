"""`kill -9` at random moments: nothing acknowledged may be lost, no file torn, no repair by hand needed.

A writer does what people and agents do with a Home (remember, update, journal, import, edit a file, recall, open,
close) and says through a pipe what was acknowledged. It is killed after a random time, alone or with every Git that it
started, often while it opens a Home that the last kill left behind. Then the Home is opened and everything acknowledged
is compared byte by byte. Rotation of the log, joining of packs and bringing Git's index forward come every few writes
instead of every few thousand, so that they are hit as well.

    python -m bench.crash                     # 5,000 kills
    python -m bench.crash --kills 200 --seed 7 --json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from memoranda.context import Context
from memoranda.home import background, committer, disk, log
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.operations import importing, journaling, listing, remembering
from memoranda.operations.space import Space

TITLE = "crash: kills at random moments"
KILLS = 5000
_LONGEST = 0.25  # seconds that a writer lives at most, on a machine that does little else
_SOMETIMES = 0.4  # how often the next writer finds what the last kill left, unseen by anybody
_EVERY = 25  # checked Homes between two runs of `git fsck`
_RENEWED = 400  # kills after which a fresh Home is taken: the last one is checked whole and deleted
_END = " — the end."


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.crash", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(arguments)
    log.ROTATE_AT, disk._MANY_PACKS, committer.GROUP = 64 << 10, 8, 16
    background._SOON, background._QUIET, background._LATER, background._BURST = 0.004, 0.01, 0.05, 5
    tally = run_kills(args.kills, args.seed, quiet=args.json)
    print(json.dumps(tally.json()) if args.json else tally.table())
    return 1 if tally.faults else 0


@dataclass(slots=True)
class Tally:
    """What happened; `faults` is empty when every promise was kept."""

    kills: int = 0
    checked: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    caught: Counter[str] = field(default_factory=Counter)  # at which work a writer was killed
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def json(self) -> dict[str, object]:
        return {
            "kills": self.kills, "checked": self.checked, "acknowledged": dict(self.acknowledged),
            "caught": dict(self.caught), "faults": self.faults, "seconds": round(self.seconds, 1),
        }  # fmt: skip

    def table(self) -> str:
        rows = [
            f"  {'kills':<28}{self.kills:>10,}",
            f"  {'Homes opened and compared':<28}{self.checked:>10,}",
            *(f"  {'acknowledged: ' + what:<28}{n:>10,}" for what, n in sorted(self.acknowledged.items())),
            *(f"  {'killed at: ' + what:<28}{n:>10,}" for what, n in sorted(self.caught.items())),
            f"  {'faults':<28}{len(self.faults):>10,}",
            *(f"      {fault}" for fault in self.faults[:20]),
            f"  ({self.seconds:.0f} s)",
        ]
        return "\n".join(rows)


def run_kills(kills: int, seed: int, *, quiet: bool) -> Tally:
    tally = Tally()
    rng = random.Random(seed)
    started = time.monotonic()
    while tally.kills < kills and not tally.faults:
        folder = Path(tempfile.mkdtemp(prefix="memoranda-crash-"))
        course = Course(folder, rng, tally)
        for _ in range(min(_RENEWED, kills - tally.kills)):
            course.kill_one()
            if tally.faults:
                break
            if not quiet and tally.kills % 100 == 0:
                print(f"  {tally.kills:,} of {kills:,}", end="\r", file=sys.stderr, flush=True)
        course.check(whole=True)
        if tally.faults:
            tally.faults.append(f"The Home was left in {folder} (seed {seed}, kill {tally.kills}).")
        else:
            shutil.rmtree(folder)
    tally.seconds = time.monotonic() - started
    return tally


class Course:
    """One Home on its way through many kills."""

    def __init__(self, folder: Path, rng: random.Random, tally: Tally) -> None:
        self._folder = folder
        self._rng = rng
        self._tally = tally
        self._root = folder / "home"
        self._keys = folder / "keys"
        self._files: dict[str, str] = {}  # path -> SHA-256 of the acknowledged bytes
        self._entries: dict[str, str] = {}  # id -> path of its journal
        self._unsure: set[str] = set()  # paths that an unacknowledged edit may have changed
        context = Context()
        create(self._root, context)
        finish(self._root, context, Keys(self._keys))
        self._checks = 0
        self._slow = 1.0  # how many times as long a writer is let live, so that it gets as far under load

    def kill_one(self) -> None:
        """Starts a writer, kills it after a while, takes note of what it was told."""
        reading, writing = os.pipe()
        seed = self._rng.randrange(1 << 30)
        longest = self._rng.choice((0.01, 0.03, _LONGEST))
        after = longest * self._rng.random() * self._slow
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.close(reading)
            status = 1
            try:
                status = Writer(self._root, self._keys, self._folder, seed, writing).run()
            except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
                os.write(writing, json.dumps(["failed", f"{type(error).__name__}: {error}"]).encode() + b"\n")
            finally:
                os._exit(status)
        os.close(writing)
        time.sleep(after)
        if self._rng.random() < 0.3:
            try:
                os.killpg(child, signal.SIGKILL)  # with every Git that it runs, as when a container is stopped
            except ProcessLookupError:
                os.kill(child, signal.SIGKILL)
        else:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        done = self._take_note(reading)
        if longest == _LONGEST:
            self._slow = min(self._slow * 1.3, 100.0) if done == 0 else max(1.0, self._slow / 1.5)
        self._tally.kills += 1
        if self._rng.random() >= _SOMETIMES:
            _wait_for(child)
            self.check()

    def _take_note(self, reading: int) -> int:
        """Takes note of what a writer has said; returns how much was acknowledged."""
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read()  # ends when the last Git that the writer started has ended, too
        lines = said.split(b"\n")
        doing, done = "opening", 0
        for raw in lines[:-1]:
            what, *rest = json.loads(raw)
            if what == "begin":
                doing = rest[0]
                self._unsure.update(rest[1:])
            elif what == "failed":
                self._tally.faults.append(f"A writer failed: {rest[0]}")
            else:
                doing, done = "between", done + 1
                self._tally.acknowledged[what] += 1
                path, told = rest
                if what == "journal":
                    self._entries[told] = path
                else:
                    self._files[path] = told
                    self._unsure.discard(path)
        self._tally.caught[doing] += 1
        return done

    def check(self, *, whole: bool = False) -> None:
        """Opens the Home and compares everything acknowledged with the working tree, Git, and the list."""
        self._tally.checked += 1
        self._checks += 1
        fault = self._tally.faults.append
        context = Context()
        try:
            with Space(context, Keys(self._keys), self._root, None) as space:
                listed = {item.path for item in listing.list_notes(context, space)}
                if whole or self._checks % _EVERY == 0:
                    before = _rows(space)
                    space.one().indexes.drop()
                    listing.list_notes(context, space)
                    for table, rows in _rows(space).items():
                        if rows != before[table]:
                            fault(f"The rebuilt catalog says otherwise in {table}: {_differ(before[table], rows)}")
        except Exception as error:  # noqa: BLE001 - any error here is a fault
            fault(f"The Home did not open: {type(error).__name__}: {error}")
            return
        journals: dict[str, bytes] = {}
        for path, told in self._files.items():
            file = self._root / path
            if not file.exists():
                fault(f"{path} is lost")
            elif hashlib.sha256(file.read_bytes()).hexdigest() != told and path not in self._unsure:
                fault(f"{path} has other bytes than were acknowledged")
        for entry, path in self._entries.items():
            if path not in journals:
                journals[path] = (self._root / path).read_bytes() if (self._root / path).exists() else b""
            if f"^{entry}\n".encode() not in journals[path]:
                fault(f"the entry {entry} is lost from {path}")
        for file in self._root.rglob("*.md"):
            if not file.read_text(encoding="utf-8").rstrip().endswith((_END, " …")):  # the journal shortens
                fault(f"{file.relative_to(self._root)} is torn")
        missing = {p for p in self._files if p.startswith("memory/notes/import")} - listed
        if missing:
            fault(f"{len(missing)} notes are not listed")
        self._check_git(whole)

    def _check_git(self, whole: bool) -> None:
        fault = self._tally.faults.append
        status = _git(self._root, "status", "--porcelain", "--untracked-files=all")
        if status.stdout or status.returncode:
            fault(f"git status: {(status.stdout + status.stderr).decode()[:300]}")
        locks = [p for p in (self._root / ".git").rglob("*.lock") if p.parent.name != "memoranda"]
        left = [*locks, *(self._root / ".git/objects/pack").glob("tmp_memoranda*"), *self._root.glob("[!.]*/**/*.tmp")]
        if left:
            fault(f"left behind: {', '.join(str(p.relative_to(self._root)) for p in left)}")
        if whole or self._checks % _EVERY == 0:
            done = _git(self._root, "fsck", "--strict", "--full", "--no-dangling")
            if done.returncode or done.stdout.strip() or done.stderr.strip():
                fault(f"git fsck: {(done.stdout + done.stderr).decode()[:300]}")


class Writer:
    """What runs in the process that is killed."""

    def __init__(self, root: Path, keys: Path, folder: Path, seed: int, pipe: int) -> None:
        self._root = root
        self._keys = Keys(keys)
        self._folder = folder
        self._rng = random.Random(seed)
        self._pipe = pipe
        self._context = Context(agent=self._rng.choice(("cleo", "bosun")))

    def run(self) -> int:
        while True:
            with Space(self._context, self._keys, self._root, None) as space:
                for _ in range(self._rng.choice((1, 5, 1000))):
                    self._rng.choice(
                        (self._remember, self._remember, self._remember, self._update, self._journal, self._journal,
                         self._import, self._edit, self._list)
                    )(space)  # fmt: skip
                self._say("begin", "closing")

    def _say(self, *words: str) -> None:
        os.write(self._pipe, json.dumps(words).encode() + b"\n")

    def _words(self) -> str:
        size = self._rng.choice((3, 10, 40, 40, 200, 3000))
        return " ".join(self._rng.choices(("harbour", "tide", "berth", "crew", "été", "船"), k=size)) + _END

    def _kept(self, what: str, path: str) -> None:
        self._say(what, path, hashlib.sha256((self._root / path).read_bytes()).hexdigest())

    def _remember(self, space: Space) -> None:
        self._say("begin", "remember")
        subject = f"port/{self._rng.randrange(6)}"
        self._kept("remember", self._new(space, subject).path)

    def _new(self, space: Space, subject: str) -> remembering.Remembered:
        return remembering.remember(self._context, space, remembering.NewNote(self._words(), subject=subject))

    def _update(self, space: Space) -> None:
        self._say("begin", "update")
        first = self._new(space, "chain")
        self._kept("remember", first.path)
        self._kept("update", remembering.update(self._context, space, first.id, self._words()).path)

    def _journal(self, space: Space) -> None:
        self._say("begin", "journal")
        done = journaling.append(self._context, space, journaling.Turn(self._words(), "dana"))
        self._say("journal", done.path, done.id)

    def _import(self, space: Space) -> None:
        self._say("begin", "import")
        source = self._folder / f"import {self._rng.randrange(1 << 40):x}"
        source.mkdir()
        for n in range(6):
            (source / f"{n}.md").write_text(f"{source.name} {n} {self._words()}\n", encoding="utf-8")
        done = importing.import_folder(self._context, space, source)
        for n in range(done.taken):
            self._kept("import", f"{done.folder}/{n}.md")
        shutil.rmtree(source)

    def _edit(self, space: Space) -> None:
        path = self._root / "memory" / "notes" / f"by hand {self._rng.randrange(4)}.md"
        name = path.relative_to(self._root).as_posix()
        self._say("begin", "edit", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / "edited"
        fresh.write_text(f"# By hand\n\n{self._words()}\n", encoding="utf-8")
        fresh.replace(path)
        listing.list_notes(self._context, space)
        self._kept("edit", name)

    def _list(self, space: Space) -> None:
        self._say("begin", "list")
        listing.list_notes(self._context, space)


def _wait_for(group: int) -> None:
    """A moment for what the killed writer had started to end as well: what it is at work on is no leftover yet."""
    for _ in range(20):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.005)


def _rows(space: Space) -> dict[str, list[tuple[object, ...]]]:
    """What the catalog says of notes and entries, without row numbers."""
    db = space.one().indexes.catalog.db
    found: dict[str, list[tuple[object, ...]]] = {}
    for table in ("files", "notes", "entries"):
        names = [r[1] for r in db.execute(f"PRAGMA table_info({table})") if r[1] != "row"]
        found[table] = sorted(db.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall(), key=repr)
    return found


def _differ(one: list[tuple[object, ...]], other: list[tuple[object, ...]]) -> str:
    ours, theirs = Counter(one), Counter(other)
    return f"{list(ours - theirs)[:3]} against {list(theirs - ours)[:3]}"[:1000]


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *words], cwd=root, env=environment, capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
