"""A durable `remember` in process, until it is acknowledged, beside a synced append of the same bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bench._common import (
    CACHE,
    SIZES,
    Line,
    Options,
    context,
    home_of,
    median,
    opened,
    pairs,
    percentile,
    subject,
    texts,
    wait_for_calm,
    within,
)
from memoranda.notes.pointers import parse_pointer
from memoranda.operations.remembering import NewNote, Remembered, remember

TITLE = "remember: one note in process, acknowledged when durable"
_PAUSE = 0.05  # seconds before each measurement of a lone note: the commit of the one before is done by then


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(*SIZES):
        yield from _at(size, options)


def _at(size: int, options: Options) -> Iterator[Line]:
    root = home_of(size)
    written = iter(list(texts(2_000, seed=23)))  # all made before the clock runs: mixing one takes 10 µs, cold 30
    who = context()
    with opened(root) as (space, _), (CACHE / "append").open("wb") as file:

        def ours(n: int) -> Remembered:
            return remember(who, space, NewNote(next(written), subject=subject(n % 40)))

        data = _bytes(root, ours(0))
        wait_for_calm()

        def yard(_: int) -> None:
            os.write(file.fileno(), data)
            os.fdatasync(file.fileno())

        for name, samples, pause in (("alone", 200, _PAUSE), ("one after another", 1000, 0.0)):
            times, synced = pairs(ours, yard, options.samples(samples), pause)
            yield within(f"p50 {name}, {size:,} notes", median(times), "synced append", median(synced), 4)
            yield within(
                f"p95 {name}, {size:,} notes", percentile(times, 95), "synced append", percentile(synced, 95), 8
            )


def _bytes(root: Path, done: Remembered) -> bytes:
    """What one note adds to the files of a Home: itself, and the journal entry that records the call."""
    source = parse_pointer(done.sources[0])
    assert source.start is not None and source.end is not None
    lines = (root / source.path).read_bytes().splitlines(keepends=True)
    return (root / done.path).read_bytes() + b"".join(lines[source.start - 1 : source.end])
