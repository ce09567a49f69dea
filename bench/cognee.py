"""What our side of a call to Cognee costs, beside the bare call that it stands on, with the same client, in one run.

Cognee is a stand-in in a process of its own, so that what is ours shows. Each number is the median of the differences
within pairs of calls that follow one another.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench._common import CACHE, ROOT, Line, Options, at_most, median, pairs
from memoranda.context import Context
from memoranda.engines.cognee import Cognee
from memoranda.engines.contract import GraphSearchRequest, IngestRequest
from tests.engines.asking import asking
from tests.engines.outside import outside

TITLE = "cognee: our side of a call to Cognee"
_FOLDER = CACHE / "cognee"
_USER = "bench@users.example:a-long-password"


def run(options: Options) -> Iterator[Line]:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    times = options.samples(200)
    context = Context(user="ana", agent="cleo")
    with _standing() as url, outside(_FOLDER, context, url, _USER) as rooms:
        engine, target = Cognee(rooms), rooms.connection.target("bench")
        writes, reads = asking(writes="user"), asking(reads=("user",))
        texts = tuple(f"The office of Ana {n} closes at {n}." for n in range(5))
        made = engine.ingest(context, writes, IngestRequest(texts=texts, scope="user", build_graph=True))
        engine.datasets(context, reads, scope=None, limit=9, after=None)
        (row,) = rooms.records.datasets.some(reads, rooms.instance, [made.id])
        headers = {"authorization": f"Bearer {engine._routes._session(_USER, anew=False)}"}

        def bare_search(n: int) -> None:
            body = {"query": f"office {n % 50}", "searchType": "CHUNKS", "datasetIds": [row.record], "topK": 10}
            assert target.request("POST", "/api/v1/search", json=body, headers=headers).status == 200

        def bare_graph(_: int) -> None:
            assert target.request("GET", f"/api/v1/datasets/{row.record}/graph", headers=headers).status == 200

        def search(n: int) -> object:
            return engine.search_graph(context, reads, GraphSearchRequest(query=f"office {n % 50}"))

        yield _over("search of one dataset", search, bare_search, times)
        yield _over("relations", lambda _: engine.relations(context, reads, made.id), bare_graph, times)


def _over(what: str, ours: Callable[[int], object], bare: Callable[[int], object], times: int) -> Line:
    took, yard = pairs(ours, bare, times)
    more = median([a - b for a, b in zip(took, yard, strict=True)])
    return at_most(f"{what}, more than the bare call", more, 3.0, "ms", "the bare call", median(yard))


@contextmanager
def _standing() -> Iterator[str]:
    code = (
        "import time; from tests.cognee_standin import Cognee, serving_cognee\n"
        f"cognee = Cognee()\ncognee.register(*{_USER!r}.split(':'))\n"
        "with serving_cognee(cognee) as server: print(server.url, flush=True); time.sleep(3600)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
