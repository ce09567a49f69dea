"""What the rows share: the texts, the questions, the Homes, pairs of measurements, and the lines that are printed.

Everything that is made lies under `.bench/` beside this folder, on the disk of the checkout: a synced write means
nothing on a file system in memory.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from memoranda.context import Context
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.operations.importing import import_folder
from memoranda.operations.open_home import OpenHome
from memoranda.operations.space import Space

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".bench"
DATA = ROOT.parent / "shared" / "data" / "locomo10.json"
SIZES = (1_000, 10_000, 100_000)
_QUICKLY = 0.2  # milliseconds in which an empty file is made
_GROWN = 1.05  # a Home that rows have written to is made again when it holds more than this many times its size


@dataclass(frozen=True, slots=True)
class Options:
    """`scale` is the number of notes, None for the sizes of the row; `quick` takes few samples (a look, no result)."""

    scale: int | None = None
    quick: bool = False

    def sizes(self, *usual: int) -> tuple[int, ...]:
        return (self.scale,) if self.scale else usual

    def samples(self, usual: int) -> int:
        return max(20, usual // 5) if self.quick else usual


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement: ours, the yardstick of the same run, their ratio, the bound, and whether it is met.

    `ratio` is what `bound` speaks of: ours divided by the yardstick for times, so less is better, and the other way
    round for rates. A line without a bound is shown for its own sake.
    """

    what: str
    ours: float
    unit: str
    yardstick: str = ""
    yard: float | None = None
    ratio: float | None = None
    bound: str = ""
    met: bool | None = None
    note: str = ""

    def json(self, row: str) -> str:
        return json.dumps({"row": row, **asdict(self)}, ensure_ascii=False)


def within(what: str, ours: float, yardstick: str, yard: float, times: float, *, unit: str = "ms") -> Line:
    """Ours may be at most `times` the yardstick."""
    ratio = ours / yard
    return Line(what, ours, unit, yardstick, yard, ratio, f"within {times:g} times", ratio <= times)


def faster(what: str, ours: float, yardstick: str, yard: float, times: float, *, unit: str) -> Line:
    """Ours has to be at least `times` the yardstick (both are rates)."""
    ratio = ours / yard
    return Line(what, ours, unit, yardstick, yard, ratio, f"{times:g} times", ratio >= times)


def at_most(what: str, ours: float, most: float, unit: str, yardstick: str = "", yard: float | None = None) -> Line:
    """Ours may be at most `most`, whatever the yardstick took."""
    ratio = None if yard is None else ours / yard
    return Line(what, ours, unit, yardstick, yard, ratio, f"at most {most:g} {unit}", ours <= most)


# Measuring


def pairs(
    ours: Callable[[int], object], yard: Callable[[int], object], times: int, pause: float = 0.0
) -> tuple[list[float], list[float]]:
    """Milliseconds of `ours(n)` and `yard(n)`, alternating, each first in every second pair; two pairs go before."""
    found: tuple[list[float], list[float]] = ([], [])
    for n in range(-2, times):
        for which in (0, 1) if n % 2 else (1, 0):
            if pause:
                time.sleep(pause)
            work = (ours, yard)[which]
            started = time.perf_counter()
            work(n)
            took = (time.perf_counter() - started) * 1000
            if n >= 0:
                found[which].append(took)
    return found


def blocks(
    ours: Callable[[int], object], yard: Callable[[int], object], times: int, each: int = 50
) -> tuple[list[float], list[float]]:
    """As `pairs`, but `each` of ours follow one another, then as many of the yardstick's, in turns.

    For what is asked again and again: between two calls of ours nothing else empties the processor's caches.
    """
    found: tuple[list[float], list[float]] = ([], [])
    for first in range(0, times, each):
        for which in (0, 1):
            work = (ours, yard)[which]
            for n in range(first, min(times, first + each)):
                started = time.perf_counter()
                work(n)
                found[which].append((time.perf_counter() - started) * 1000)
    return found


def elapsed(work: Callable[[], object]) -> float:
    """How many milliseconds `work` takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def tell(text: str) -> None:
    """A word about what is going on, for who waits."""
    print(f"  … {text}", file=sys.stderr, flush=True)


# Texts


@cache
def _conversations() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(things said, questions of four to ten words) of LoCoMo, or of the example Home where LoCoMo is missing."""
    if not DATA.exists():
        tell("shared/data/locomo10.json is not there: the texts are those of examples/, which are few")
        files = sorted((ROOT / "examples" / "home").rglob("*.md"))
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        said = tuple(line for line in lines if len(line.split()) > 6)
        return said, tuple(" ".join(line.split()[:7]) for line in said)
    turns: list[str] = []
    asked: list[str] = []
    for one in json.loads(DATA.read_text(encoding="utf-8")):
        for value in one["conversation"].values():
            if isinstance(value, list):
                turns += [turn["text"].replace("\n", " ") for turn in value]
        asked += [qa["question"] for qa in one["qa"] if 4 <= len(qa["question"].split()) <= 10]
    return tuple(turns), tuple(asked)


def questions(count: int) -> list[str]:
    """Real questions of four to ten words, no two alike, always the same ones."""
    asked = list(dict.fromkeys(_conversations()[1]))
    random.Random(11).shuffle(asked)
    return [asked[n % len(asked)] for n in range(count)]


def texts(count: int, seed: int = 7) -> Iterator[str]:
    """Texts of about 80 words, sentences of real conversations mixed, each with a rare word of its own."""
    said = _conversations()[0]
    chance = random.Random(seed)
    for n in range(count):
        pieces: list[str] = []
        words = 0
        while words < 78:
            piece = said[int(chance.random() * len(said))]
            pieces.append(piece)
            words += len(piece.split())
        yield " ".join(" ".join(pieces).split()[:90]) + f" item{seed}x{n}"


def subject(n: int) -> str:
    return f"topic{n % 300}/part{n % 7}"


def files(count: int) -> Path:
    """A folder of `count` Markdown files with front matter, made once."""
    folder = CACHE / f"files-{count}"
    done = folder / ".done"
    if done.exists():
        return folder
    tell(f"writing {count:,} files")
    discard(folder)
    for n, text in enumerate(texts(count)):
        place = folder / f"topic{n % 300}"
        if n < 300:
            place.mkdir(parents=True)
        (place / f"note-{n}.md").write_text(note_text(n, text), encoding="utf-8")
    done.touch()
    return folder


def note_text(n: int, text: str) -> str:
    """The file of note `n`: front matter and text."""
    return (
        f"---\nid: mem_{n:016d}\nkind: fact\nsubject: {subject(n)}\nscope: user\n"
        f"valid_from: 2026-0{1 + n % 9}-1{n % 9}\nvalid_to: null\nconfidence: 0.8\norigin: human\n---\n{text}\n"
    )


# Homes


def context() -> Context:
    return Context(user="bench", agent="bench", session="ses_bench")


def keys() -> Keys:
    return Keys(CACHE / "data" / "memoranda" / "keys")


def environment() -> dict[str, str]:
    """The environment of a fresh process: the same keys, and compiled modules as an installed program has them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"XDG_DATA_HOME": str(CACHE / "data")}


def command() -> list[str]:
    """How a person calls `memoranda` with the interpreter of this run."""
    script = Path(sys.executable).with_name("memoranda")
    return [str(script)] if script.exists() else [sys.executable, "-m", "memoranda"]


def discard(path: Path) -> None:
    """Puts a folder out of the way; it is deleted when all rows are through.

    Deleting thousands of files at once would spoil what is measured next: for minutes ext4 passes over the inodes that
    it has just freed one by one, and making a file costs ten times as much.
    """
    if path.exists():
        heap = CACHE / "discarded"
        heap.mkdir(exist_ok=True)
        path.rename(heap / f"{path.name}-{time.time_ns()}")


def wait_for_calm() -> None:
    """Returns when a file is made as quickly as usual, after a minute at the latest.

    Where others have deleted thousands a moment ago, ext4 without a journal passes over each of their inodes: a file
    costs twenty times as much for half a minute, and no yardstick that only appends knows of it.
    """
    for waited in range(0, 60, 5):
        probes = [CACHE / f"probe-{n}" for n in range(5)]
        took = median([elapsed(probe.touch) for probe in probes])
        for probe in probes:
            probe.unlink()
        if took < _QUICKLY:
            return
        if not waited:
            tell("waiting for the file system: many files were deleted just now")
        time.sleep(5)


def clean_up() -> None:
    shutil.rmtree(CACHE / "discarded", ignore_errors=True)


def new_home(name: str) -> Path:
    """An empty Home under `.bench/`; what lay there is out of the way."""
    root = CACHE / name
    discard(root)
    create(root, context())
    finish(root, context(), keys())
    return root


@contextmanager
def opened(root: Path) -> Iterator[tuple[Space, OpenHome]]:
    """The Home at `root`, open."""
    space = Space(context(), keys(), root, None)
    try:
        yield space, space.one()
    finally:
        space.close()


def home_of(count: int) -> Path:
    """A Home with `count` notes, imported once; its indexes are brought up to the program as it is now."""
    root = CACHE / f"home-{count}"
    done = CACHE / f"home-{count}.done"
    if done.exists():
        with opened(root) as (_, home):
            home.repository.look(context())
            home.indexes.catch_up()
            if home.indexes.catalog.count_notes() <= count * _GROWN:
                return root
    done.unlink(missing_ok=True)
    source = files(count)
    tell(f"making a Home of {count:,} notes")
    new_home(root.name)
    with opened(root) as (space, _):
        import_folder(context(), space, source)
    done.touch()
    return root
