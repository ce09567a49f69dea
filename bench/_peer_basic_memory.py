"""Runs inside basic-memory's own environment: indexes a project as `bm reindex --full` does, then searches.

Arguments: the folder of the project, a folder of ours, and how it finds: `words` (its full-text search, all of it that
needs no model) or `table` (its hybrid search, our embedder in the place of the model that it would download; nothing is
cut off for its likeness, since its floor was set for that model). Answers on standard output, one JSON object a line:
the version, the seconds of indexing, then for each question on standard input the milliseconds of one search and the
names of what it found.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

_ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the libraries print is no answer
sys.path.append(str(Path(__file__).parent))


def say(**fields: object) -> None:
    print(json.dumps(fields), file=_ANSWERS, flush=True)


def with_table(directory: str) -> dict[str, Any]:
    """Our embedder where basic-memory would call OpenAI's; the settings that choose it."""
    import sqlite3

    if not hasattr(sqlite3.Connection, "enable_load_extension"):  # as pyenv builds Python; vectors are an extension
        import pysqlite3  # type: ignore[import-not-found]

        sys.modules["sqlite3"] = pysqlite3
    from _peer_table import DIMENSIONS, NAME, Table  # type: ignore[import-not-found]
    from basic_memory.repository import openai_provider

    table = Table(directory)

    class Ours(openai_provider.OpenAIEmbeddingProvider):  # type: ignore[misc, unused-ignore]
        async def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return list(table.texts(texts))

        async def embed_query(self, text: str) -> list[float]:
            return list(table.question(text))

    table.texts(["what is read once is read now"])
    openai_provider.OpenAIEmbeddingProvider = Ours
    return {
        "semantic_embedding_provider": "openai", "semantic_embedding_model": NAME,
        "semantic_embedding_dimensions": DIMENSIONS, "semantic_embedding_batch_size": 64,
        "semantic_embedding_sync_batch_size": 64, "semantic_min_similarity": 0.0,
    }  # fmt: skip


async def main() -> None:
    table = sys.argv[3] == "table"
    os.environ |= {f"BASIC_MEMORY_{k.upper()}": str(v) for k, v in (with_table(sys.argv[2]) if table else {}).items()}
    from basic_memory import db
    from basic_memory.config import ConfigManager
    from basic_memory.index.local_project import LocalProjectIndexRuntimeFactory, run_local_project_index_for_project
    from basic_memory.markdown.entity_parser import EntityParser
    from basic_memory.markdown.markdown_processor import MarkdownProcessor
    from basic_memory.repository import EntityRepository, ProjectRepository
    from basic_memory.repository.search_repository import create_search_repository
    from basic_memory.schemas.search import SearchQuery, SearchRetrievalMode
    from basic_memory.services import FileService
    from basic_memory.services.initialization import reconcile_projects_with_config
    from basic_memory.services.search_service import SearchService
    from loguru import logger

    logger.remove()
    config = ConfigManager().config
    await reconcile_projects_with_config(config)
    _, sessions = await db.get_or_create_db(db_path=config.database_path, db_type=db.DatabaseType.FILESYSTEM)
    async with db.scoped_session(sessions) as session:
        project = (await ProjectRepository().get_active_projects(session))[0]
    started = time.perf_counter()
    done = await run_local_project_index_for_project(
        project, runtime_factory=LocalProjectIndexRuntimeFactory(), force_full=True, embeddings=table
    )
    took = time.perf_counter() - started
    say(version=version("basic-memory"), seconds=took, notes=done.total_files)
    folder = Path(project.path)
    files = FileService(folder, MarkdownProcessor(EntityParser(folder), app_config=config), app_config=config)
    service = SearchService(
        create_search_repository(sessions, project_id=project.id, app_config=config),
        EntityRepository(project_id=project.id),
        files,
        session_maker=sessions,
    )
    mode = SearchRetrievalMode.HYBRID if table else SearchRetrievalMode.FTS
    for line in sys.stdin:
        started = time.perf_counter()
        found = await service.search(SearchQuery(text=line.strip(), retrieval_mode=mode), limit=10)
        took = (time.perf_counter() - started) * 1000
        say(ms=took, found=list(dict.fromkeys(Path(row.file_path).stem for row in found)))
    await db.shutdown_db()


if __name__ == "__main__":
    asyncio.run(main())
