"""Runs inside mem0's own environment: adds texts as they are (`infer=False`), then searches.

Arguments: the folder of Markdown files, a folder for mem0, and `table` (it has no mode without vectors). Answers on
standard output, one JSON object a line: the version, the seconds of adding, then for each question on standard input
the milliseconds of one search and the names of what it found. The vector store is Qdrant in a folder, the embedder our
table. Its keyword half is fastembed's BM25 as mem0 calls it; the stop words, which fastembed would download, are ours.
The model of spaCy that lemmas and entities need is no package of the registry, and mem0 does without, as it says.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

_ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the libraries print is no answer
os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none", "MEM0_DIR": sys.argv[2]}
sys.path.append(str(Path(__file__).parent))

from _peer_table import DIMENSIONS, Table  # type: ignore[import-not-found]  # noqa: E402
from _peer_texts import documents  # type: ignore[import-not-found]  # noqa: E402


def say(**fields: object) -> None:
    print(json.dumps(fields), file=_ANSWERS, flush=True)


def keywords(folder: Path) -> Any:
    """fastembed's BM25 from a folder that holds what it would have downloaded."""
    from fastembed.sparse.bm25 import Bm25

    from memoranda.index._stopwords import ENGLISH, ENGLISH_ONLY

    folder.mkdir()
    (folder / "english.txt").write_text("\n".join(sorted(ENGLISH | ENGLISH_ONLY)))
    return Bm25("Qdrant/bm25", specific_model_path=str(folder))


def main() -> None:
    from mem0 import Memory
    from mem0.embeddings.base import EmbeddingBase

    place = Path(sys.argv[2])
    place.mkdir(exist_ok=True)
    table = Table(str(place / "table"))

    class Embedding(EmbeddingBase):  # type: ignore[misc, unused-ignore]
        def embed(self, text: str, memory_action: str | None = None) -> list[float]:
            return list(table.question(text) if memory_action == "search" else table.texts([text])[0])

    store = {"path": str(place / "qdrant"), "embedding_model_dims": DIMENSIONS, "on_disk": True}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": {**store, "collection_name": "bench"}},
            "history_db_path": str(place / "history.db"),
        }
    )
    memory.embedding_model = Embedding()
    memory.vector_store._bm25_encoder = keywords(place / "bm25")
    table.texts(["what is read once is read now"])
    texts = list(documents(Path(sys.argv[1])))
    started = time.perf_counter()
    for text in texts:
        metadata = {"name": text.name, "date": text.date}
        memory.add([{"role": "user", "content": text.words}], user_id="u", metadata=metadata, infer=False)
    say(version=version("mem0ai"), seconds=time.perf_counter() - started, notes=len(texts))
    for line in sys.stdin:
        started = time.perf_counter()
        found = memory.search(line.strip(), filters={"user_id": "u"}, top_k=10)["results"]
        took = (time.perf_counter() - started) * 1000
        say(ms=took, found=[item["metadata"]["name"] for item in found])


if __name__ == "__main__":
    main()
