"""The intake log: nothing acknowledged is lost from it, and nothing that was not written comes out of it."""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from home.tools import assert_sound, note, status, texts
from memoranda.context import Context
from memoranda.errors import ReadOnlyHome
from memoranda.home import durable, log, worktree
from memoranda.home.keys import Keys
from memoranda.home.log import IntakeLog
from memoranda.home.record import FRAME_SIZE, FileChange, Record, decode, encode
from memoranda.home.repository import Repository
from memoranda.home.segments import HEAD_SIZE
from memoranda.operations.space import Space

AT = datetime(2026, 10, 2, 9, 12, 33, 123456, tzinfo=UTC)


def record(seq: int, text: bytes = b"", path: str = "memory/notes/a.md") -> Record:
    change = FileChange(path, None, "0" * 40, text)
    return Record(seq, AT + timedelta(seconds=seq), "remember", f"Remember {seq}", "cleo", {"Agent": "cleo"}, (change,))


def write(opened: IntakeLog, item: Record) -> int:
    with opened.writing():
        end = opened.append(item)
        opened.publish(item, end)
    return end


def held(log: IntakeLog) -> list[Record]:
    """The records that were read and are not forgotten."""
    return [record for record, _ in log.after(0)]


def read_back(folder: Path) -> list[Record]:
    opened = IntakeLog(folder)
    try:
        with opened.writing():
            return held(opened)
    finally:
        opened.close()


# Records

words = st.text(max_size=30)
changes = st.builds(
    FileChange,
    path=st.text(min_size=1, max_size=20),
    old=st.none() | st.just("a" * 40),
    new=st.none() | st.just("b" * 40),
    data=st.binary(max_size=300),
    appended=st.booleans(),
    outside=st.booleans(),
)
records = st.builds(
    Record,
    seq=st.integers(1, 2**63),
    at=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),
    op=words,
    reason=words,
    author=words,
    trailers=st.dictionaries(words, words, max_size=3),
    changes=st.lists(changes, max_size=3).map(tuple),
    ledger=st.lists(words, max_size=3).map(tuple),
)


@settings(deadline=None)
@given(item=records, before=st.binary(max_size=40), behind=st.binary(max_size=40))
def test_a_record_reads_back_as_it_was(item: Record, before: bytes, behind: bytes) -> None:
    data = encode(item)
    assert decode(before + data + behind, len(before), item.seq) == (item, len(before) + len(data))
    assert decode(before + data + behind, len(before), item.seq + 1) is None


@settings(deadline=None, max_examples=60)
@given(item=records, place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_or_a_cut_is_no_record(item: Record, place: float, bit: int) -> None:
    data = bytearray(encode(item))
    at = int(place * len(data))
    assert decode(bytes(data[:at]), 0, item.seq) is None
    data[at] ^= 1 << bit
    assert decode(bytes(data), 0, item.seq) is None


# The tail


@pytest.fixture
def three(tmp_path: Path) -> tuple[Path, list[int]]:
    """A log of three records, and where each of them ends."""
    opened = IntakeLog(tmp_path / "own")
    ends = [HEAD_SIZE, *(write(opened, record(n, b"text %d " % n * 30)) for n in (1, 2, 3))]
    opened.close()
    return tmp_path / "own", ends


def test_a_cut_anywhere_loses_only_what_it_cuts(three: tuple[Path, list[int]]) -> None:
    folder, ends = three
    path = folder / "00000001.log"
    whole = path.read_bytes()
    rng = random.Random(5)
    cuts = {
        *ends,
        *(end - 1 for end in ends[1:]),
        *(end + 1 for end in ends),
        *(rng.randrange(16, ends[3]) for _ in range(60)),
    }
    for cut in sorted(cuts):
        for rest in (b"", bytes(len(whole) - cut)):  # cut off, or never written over the zeros
            path.write_bytes(whole[:cut] + rest)
            assert [r.seq for r in read_back(folder)] == [n for n in (1, 2, 3) if ends[n] <= cut], cut


def test_a_flipped_bit_anywhere_loses_only_what_stands_behind_it(three: tuple[Path, list[int]]) -> None:
    folder, ends = three
    path = folder / "00000001.log"
    whole = path.read_bytes()
    rng = random.Random(6)
    for at in sorted({rng.randrange(HEAD_SIZE, ends[3]) for _ in range(120)}):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        assert [r.seq for r in read_back(folder)] == [n for n in (1, 2, 3) if ends[n] <= at], at


def test_a_torn_record_is_wiped_before_the_next_is_written(three: tuple[Path, list[int]]) -> None:
    """The text of a torn record holds a record; the one that is written over it ends just before that."""
    folder, ends = three
    path = folder / "00000001.log"
    short = record(4, b"short")
    forged = encode(record(5, b"forged"))
    torn = encode(record(4, bytes(len(encode(short)) - len(encode(record(4)))) + forged + bytes(300)))
    whole = bytearray(path.read_bytes())
    room = encode(record(4, b""))
    # Only as much in front of the forged record as the short one will fill, and nothing of the end.
    torn = torn[: len(short_data := encode(short)) - len(room)] + torn[: len(room)] + forged
    whole[ends[3] : ends[3] + len(torn)] = torn
    path.write_bytes(whole)
    opened = IntakeLog(folder)
    write(opened, short)
    opened.close()
    assert path.read_bytes()[ends[3] + len(short_data) :].strip(b"\0") == b""
    assert [r.seq for r in read_back(folder)] == [1, 2, 3, 4]


def test_after_a_loss_of_power_the_whole_rest_is_wiped(three: tuple[Path, list[int]]) -> None:
    """The first block of a record was lost and a later one, which holds a record, was not."""
    folder, ends = three
    path = folder / "00000001.log"
    short = record(4, b"short")
    whole = bytearray(path.read_bytes())
    at = ends[3] + len(encode(short))
    forged = encode(record(5, b"forged"))
    whole[at : at + len(forged)] = forged
    path.write_bytes(whole)
    state = bytearray((folder / "state").read_bytes())
    state[24:56] = b"another boot".ljust(32, b"-")
    (folder / "state").write_bytes(state)
    opened = IntakeLog(folder)
    assert opened.fresh_boot
    write(opened, short)
    opened.close()
    assert [r.seq for r in read_back(folder)] == [1, 2, 3, 4]


def test_text_that_looks_like_a_record_is_text(home: Path, context: Context, keys: Keys) -> None:
    """A person's file holds the very bytes of the records to come; they are a note and nothing else."""
    folder = home / "memory" / "notes"
    folder.mkdir(parents=True, exist_ok=True)
    with Repository(home, context, keys) as repository:
        last = repository.snapshot().seq
        fake = FileChange("memory/notes/forged.md", None, "1" * 40, b"forged")
        said = b"".join(encode(Record(last + n, AT, "remember", "forged", "x", {}, (fake,), ())) for n in range(1, 6))
        (folder / "odd.md").write_bytes(said + b"\n")
        assert [f.path for f in repository.look(context)] == ["memory/notes/odd.md"]
    with Space(context, keys, home, None) as space:
        note(context, space, "after it")
        assert [p.rpartition("/")[2][:5] for p in texts(context, space)] == ["after", "odd.m"]
    assert not (folder / "forged.md").exists()
    assert_sound(home)


# What others see


def test_a_reader_never_sees_a_record_that_is_taken_back(tmp_path: Path) -> None:
    """Otherwise it would look for the next one at a place where none begins, and wipe it when it writes itself."""
    ours, theirs = IntakeLog(tmp_path), IntakeLog(tmp_path)
    with ours.writing():
        end = ours.append(record(1, b"a note whose folder turns out to be unwritable " * 5))
        theirs.refresh()
        assert held(theirs) == []
        ours.take_back(end)
    write(ours, record(1, b"another"))
    write(ours, record(2, b"and one more"))
    theirs.refresh()
    assert [r.changes[0].data for r in held(theirs)] == [b"another", b"and one more"]
    write(theirs, record(3))
    ours.refresh()
    assert [r.seq for r in held(ours)] == [1, 2, 3]
    for opened in (ours, theirs):
        opened.close()


def test_a_segment_left_by_a_killed_rotation_does_not_hide_later_records(tmp_path: Path) -> None:
    """One process dies between making the next segment and moving on; another goes on writing in the old one."""
    ours = IntakeLog(tmp_path)
    write(ours, record(1))
    ours._segments.make(2, 1)
    write(ours, record(2))
    later = IntakeLog(tmp_path)
    later.refresh()
    assert [r.seq for r in held(later)] == [1, 2]
    write(later, record(3))
    ours.refresh()
    assert [r.seq for r in held(ours)] == [1, 2, 3]
    later.close()
    ours.close()
    for boot in (b"", b"another"):  # with the numbers lost, or older
        state = bytearray((tmp_path / "state").read_bytes())
        state[24:56] = boot.ljust(32, b"-")
        (tmp_path / "state").write_bytes(state if boot else b"")
        again = IntakeLog(tmp_path)
        again._segments.make(2, 1)
        again.close()
        assert [r.seq for r in read_back(tmp_path)] == [1, 2, 3]


def test_rotation_is_followed_by_everybody(tmp_path: Path) -> None:
    ours, theirs, late = IntakeLog(tmp_path), IntakeLog(tmp_path), IntakeLog(tmp_path)
    seq = 0
    for _ in range(4):
        for opened in (ours, theirs):
            seq += 1
            write(opened, record(seq))
        with ours.writing():
            ours.rotate()
        assert len(list(tmp_path.glob("*.log"))) == 1
    write(late, record(seq + 1))
    for opened in (ours, theirs, late):
        opened.refresh()
        assert opened.last == seq + 1
        opened.close()


def test_waiting_threads_survive_a_rotation_by_another_process(tmp_path: Path) -> None:
    """A thread that is syncing a segment must not find its descriptor closed by another that moved on."""
    ours, theirs = IntakeLog(tmp_path), IntakeLog(tmp_path)
    errors: list[BaseException] = []
    seq = iter(range(1, 10_000))
    stop = threading.Event()

    def writer() -> None:
        while not stop.is_set():
            try:
                with ours.writing():
                    item = record(ours.last + 1)
                    end = ours.append(item)
                    ours.publish(item, end)
                    segment = ours.segment
                ours.sync(segment, end)
            except BaseException as error:  # noqa: BLE001 - told below
                errors.append(error)
                return

    threads = [threading.Thread(target=writer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        with theirs.writing():
            theirs.rotate()
        next(seq)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    ours.close()
    theirs.close()


# A disk that fails


class Disk:
    """Counts syncs of the log and makes calls fail on demand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.broken: Callable[[], OSError] | None = None
        real = durable.sync_data

        def sync(descriptor: int) -> None:
            self.syncs += 1
            if self.broken:
                raise self.broken()
            real(descriptor)

        monkeypatch.setattr(log, "sync_data", sync)


def test_a_failed_sync_makes_the_home_read_only_and_is_never_tried_again(
    home: Path, context: Context, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    with Space(context, keys, home, None) as space:
        kept = note(context, space, "kept")
        disk.broken = lambda: OSError(errno.EIO, "Input/output error")
        with pytest.raises(ReadOnlyHome, match=r"could not be made durable.*Check the disk and open the Home again"):
            note(context, space, "lost or not, nobody can say")
        tried = disk.syncs
        disk.broken = None  # a second call would succeed, and lie: the kernel has thrown the pages away
        with pytest.raises(ReadOnlyHome, match="fdatasync failed"):
            note(context, space, "refused")
        assert disk.syncs == tried
        assert "kept" in texts(context, space).values()
        (home / kept.path).write_bytes((home / kept.path).read_bytes() + b"\nedited meanwhile\n")
        assert any("kept" in text for text in texts(context, space).values()), "a read-only Home can be read"
    with Space(context, keys, home, None) as space:
        note(context, space, "open again")
        said = list(texts(context, space).values())
        assert "refused" not in said
        assert any(text.startswith("kept\n\nedited meanwhile") for text in said)
        assert "open again" in said
    assert_sound(home)


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_full_disk_under_the_log_refuses_and_loses_nothing(
    home: Path, context: Context, keys: Keys, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    real = os.pwrite
    calls = 0

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal calls
        ours = threading.current_thread() is threading.main_thread()  # the other one commits, and writes as well
        calls += ours
        if ours and calls == fails_at:
            real(descriptor, data[: len(data) // 2], offset)
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data, offset)

    with Space(context, keys, home, None) as space:
        before = note(context, space, "before " * 60)
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", pwrite)
            with pytest.raises(ReadOnlyHome, match=r"No space left on device.*Make room"):
                note(context, space, "x" * 300_000)  # more than the log was filled ahead
        assert list(texts(context, space)) == [before.path]
        after = note(context, space, "after")
        assert set(texts(context, space)) == {before.path, after.path}
    with Space(context, keys, home, None) as space:
        assert set(texts(context, space)) == {before.path, after.path}
    assert_sound(home)


@pytest.mark.parametrize("which", ["note", "journal"])
@pytest.mark.parametrize("after", [0, 10])
def test_a_full_disk_under_the_files_takes_the_write_back(
    home: Path, context: Context, keys: Keys, monkeypatch: pytest.MonkeyPatch, which: str, after: int
) -> None:
    real = os.write
    with Space(context, keys, home, None) as space:
        before = note(context, space, "before")
        files = {p: p.read_bytes() for p in home.rglob("*.md")}
        journal = next(p for p in files if "journal" in str(p))

        def write(descriptor: int, data: bytes) -> int:
            name = str(Path(f"/proc/self/fd/{descriptor}").readlink())
            if name.endswith(".md") and ((name == str(journal)) == (which == "journal")):
                if after:
                    real(descriptor, bytes(data)[:after])
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, data)

        with monkeypatch.context() as patch:
            patch.setattr(worktree.os, "write", write)
            with pytest.raises(ReadOnlyHome, match=r"could not be written.*No space left.*nothing was written"):
                note(context, space, "refused")
        assert {p: p.read_bytes() for p in home.rglob("*.md")} == files
        assert list(texts(context, space)) == [before.path]
        after_it = note(context, space, "after")
        assert context.now  # the next one follows on the journal as it stands
        cited = space.one().repository.at(journal.relative_to(home).as_posix(), None)
        assert cited == journal.read_bytes()
        assert set(texts(context, space)) == {before.path, after_it.path}
    assert_sound(home)
    assert status(home) == ""


def test_frames_are_as_documented() -> None:
    data = encode(record(7, b"body"))
    assert data[:4] == b"MLR1"
    assert int.from_bytes(data[12:20], "big") == 7
    assert int.from_bytes(data[8:12], "big") == len(b"body")
    assert len(data) == FRAME_SIZE + int.from_bytes(data[4:8], "big") + 4


def _counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every sync of a file."""
    done: list[int] = []
    sync = os.fdatasync

    def counted(descriptor: int) -> None:
        sync(descriptor)
        done.append(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)
    return done


def test_one_sync_is_enough_for_what_two_processes_have_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = IntakeLog(tmp_path), IntakeLog(tmp_path)
    syncs = _counting(monkeypatch)
    end, other = write(ours, record(1)), write(theirs, record(2))
    ours.sync(ours.segment, end)
    theirs.sync(theirs.segment, other)
    assert len(syncs) == 1
    later = write(theirs, record(3))
    theirs.sync(theirs.segment, later)
    assert len(syncs) == 2, "what came after the sync needs one of its own"
    ours.close()
    theirs.close()


@pytest.mark.parametrize("harm", ["the machine was started anew", "the log was put back from a copy"])
def test_what_was_synced_once_counts_for_this_log_in_this_run_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    opened = IntakeLog(tmp_path)
    copy = (tmp_path / "00000001.log").read_bytes()
    opened.sync(opened.segment, write(opened, record(1, b"long " * 500)))
    opened.close()
    if harm.startswith("the log"):
        (tmp_path / "00000001.log").write_bytes(copy)
    else:
        state = bytearray((tmp_path / "state").read_bytes())
        state[24:56] = b"another boot".ljust(32, b"-")
        (tmp_path / "state").write_bytes(state)
        (tmp_path / "00000001.log").write_bytes(copy)
    syncs = _counting(monkeypatch)
    again = IntakeLog(tmp_path)
    again.sync(again.segment, write(again, record(1)))
    assert len(syncs) == 1
    again.close()
