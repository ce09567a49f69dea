"""One of many processes that work in one Home at the same time; run as a program by `test_concurrency.py`.

    python crowd.py ROLE HOME KEYS NUMBER ROUNDS

It says in lines of JSON what was acknowledged, and waits for the file `HOME/../go` before it begins.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from memoranda.context import Context
from memoranda.errors import ChainConflict
from memoranda.home.keys import Keys
from memoranda.operations import journaling, listing
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space


def main(role: str, home: str, keys: str, number: int, rounds: int) -> None:
    root = Path(home)
    context = Context(user="dana", agent=f"agent{number % 3}")
    with Space(context, Keys(Path(keys)), root, None) as space:
        space.one()
        say("ready", "")
        while not (root.parent / "go").exists():
            time.sleep(0.005)
        {"write": write, "supersede": supersede, "read": read}[role](context, space, number, rounds)


def say(*words: str) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def write(context: Context, space: Space, number: int, rounds: int) -> None:
    """Notes and journal entries, as fast as it can."""
    for n in range(rounds):
        done = remember(context, space, NewNote(f"note {number} {n}", subject=f"busy/{number % 4}"))
        say("note", done.id, done.path)
        if n % 4 == 0:
            entry = journaling.append(context, space, journaling.Turn(f"said {number} {n}", "dana"))
            say("entry", entry.id, entry.path)


def supersede(context: Context, space: Space, number: int, rounds: int) -> None:
    """Everybody sees the same head and wants to take its place; one wins each round."""
    root = space.one().repository.root
    rng = random.Random(number)
    first = (root.parent / "chain").read_text()
    for _ in range(rounds):
        head = next(link.id for link in listing.history(context, space, first) if link.head)
        time.sleep(rng.random() * 0.01)
        try:
            done = remember(context, space, NewNote(f"by {number}", subject="chain", supersedes=(head,)))
        except ChainConflict as error:
            say("refused", head, str(error))
        else:
            say("won", head, done.id)


def read(context: Context, space: Space, number: int, rounds: int) -> None:
    """Everything acknowledged before a list began is in it."""
    told = space.one().repository.root.parent / "acknowledged"
    space.watch() if number % 2 else None
    for _ in range(rounds):
        before = told.read_text().split() if told.exists() else []
        listed = {item.id for item in listing.list_notes(context, space)}
        missing = [note for note in before if note not in listed]
        say("read", str(len(before)), " ".join(missing))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
