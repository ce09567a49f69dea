"""Runs inside memd's own environment: adds notes in one durable batch, then searches.

Arguments: the folder of Markdown files and a folder for memd. Answers on standard output, one JSON object a line: the
version, the seconds of adding, then for each question on standard input the milliseconds of one search and how much it
found. Embeddings are the offline ones that the bare package has; with them it ranks by its lexical lanes alone.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

from memd import Memory


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(sys.argv[1]).rglob("*.md"))]
    memory = Memory(sys.argv[2], config={"embedder": "hash"})
    events = [{"content": text, "user_id": "u", "session_id": f"s{n // 20}"} for n, text in enumerate(texts)]
    started = time.perf_counter()
    for at in range(0, len(events), 1000):
        memory.add_events(events[at : at + 1000])
    took = time.perf_counter() - started
    memory.flush()
    say(version=version("memd-engine"), seconds=took, notes=len(texts))
    for line in sys.stdin:
        started = time.perf_counter()
        found = memory.search(line.strip(), user_id="u", budget_tokens=2000, packing="flat")
        say(ms=(time.perf_counter() - started) * 1000, found=len(found.items))
    memory.close()


if __name__ == "__main__":
    main()
