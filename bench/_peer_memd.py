"""Runs inside memd's own environment: adds texts in durable batches, then searches.

Arguments: the folder of Markdown files, a folder for memd, and how it finds: `words` (the offline embedder of the bare
package, with which it ranks by its lexical lanes alone) or `table` (our embedder in the place of a model, its vectors
fused as memd fuses those of any model). Answers on standard output, one JSON object a line: the version, the seconds of
adding, then for each question on standard input the milliseconds of one search and the names of what it found.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))

from _peer_texts import documents  # type: ignore[import-not-found]
from memd import Memory
from memd.engine import memory as engine
from memd.pipeline.embedder import Embedder


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def with_table(directory: str) -> None:
    """Our embedder where memd would load one of its own."""
    from _peer_table import DIMENSIONS, NAME, Table  # type: ignore[import-not-found]

    table = Table(directory)

    class Ours(Embedder):  # type: ignore[misc, unused-ignore]
        name, kind, dim = NAME, "table", DIMENSIONS

        def embed(self, texts: list[str]) -> np.ndarray:
            return np.array(table.texts(texts), dtype=np.float32)

        def embed_one(self, text: str) -> np.ndarray:
            return np.array(table.question(text), dtype=np.float32)

    table.texts(["what is read once is read now"])
    engine.resolve_embedder = lambda _config=None: Ours()


def main() -> None:
    if sys.argv[3] == "table":
        with_table(f"{sys.argv[2]}-table")
    texts = list(documents(Path(sys.argv[1])))
    memory = Memory(sys.argv[2], config={} if sys.argv[3] == "table" else {"embedder": "hash"})
    events = []
    for n, text in enumerate(texts):
        at = int(datetime.fromisoformat(text.date).timestamp() * 1000) if text.date else None
        events.append(
            {"content": text.words, "user_id": "u", "session_id": text.session or f"s{n // 20}", "t_event": at}
        )
    ids: list[str] = []
    started = time.perf_counter()
    for at in range(0, len(events), 1000):
        ids += memory.add_events(events[at : at + 1000])
    if sys.argv[3] == "table":
        memory.flush()  # waits for the vectors
    took = time.perf_counter() - started
    memory.flush()
    names = dict(zip(ids, [text.name for text in texts], strict=True))
    say(version=version("memd-engine"), seconds=took, notes=len(texts))
    for line in sys.stdin:
        started = time.perf_counter()
        found = memory.search(line.strip(), user_id="u", budget_tokens=4000, packing="flat", include_quarantined=True)
        took = (time.perf_counter() - started) * 1000
        say(ms=took, found=[names[item.id] for item in found.items][:10])
    memory.close()


if __name__ == "__main__":
    main()
