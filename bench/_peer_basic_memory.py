"""Runs inside basic-memory's own environment: indexes a project as `bm reindex --full --search` does, then searches.

Arguments: the folder of the project. Answers on standard output, one JSON object a line: the version, the seconds of
indexing, then for each question on standard input the milliseconds of one search and how much it found.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

_ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the libraries print is no answer


def say(**fields: object) -> None:
    print(json.dumps(fields), file=_ANSWERS, flush=True)


async def main() -> None:
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
        project, runtime_factory=LocalProjectIndexRuntimeFactory(), force_full=True, embeddings=False
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
    for line in sys.stdin:
        started = time.perf_counter()
        found = await service.search(SearchQuery(text=line.strip(), retrieval_mode=SearchRetrievalMode.FTS), limit=8)
        say(ms=(time.perf_counter() - started) * 1000, found=len(found))
    await db.shutdown_db()


if __name__ == "__main__":
    asyncio.run(main())
