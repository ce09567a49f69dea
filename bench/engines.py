"""What our side of a call to Mem0 costs, beside the bare call that it stands on, with the same client, in one run.

Mem0 is a stand-in in a process of its own that answers at once, so that what is ours shows. Each number is the median
of the differences within pairs of calls that follow one another; the page of 50 is a ratio, as its bound is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench._common import CACHE, ROOT, Line, Options, at_most, median, pairs, within
from memoranda.context import Context
from memoranda.engines.contract import RecallRequest, RememberRequest
from memoranda.engines.mem0 import Mem0
from memoranda.errors import Unavailable
from tests.engines.asking import asking
from tests.engines.mem0_standin import KEY
from tests.engines.outside import outside

TITLE = "engines: our side of a call to Mem0"
_FOLDER = CACHE / "engines"
_PORT = 18_741
_HEADERS = {"x-api-key": KEY}


def run(options: Options) -> Iterator[Line]:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    times = options.samples(200)
    with _standing() as url, outside(_FOLDER, Context(user="ana", agent="cleo"), url, KEY) as rooms:
        context, engine, target = Context(user="ana", agent="cleo"), Mem0(rooms), rooms.connection.target("bench")
        writes, reads = asking(writes="user"), asking(reads=("user",))
        kept = [
            engine.remember(context, writes, RememberRequest(content=f"The office {n} closes at {n % 24}."))
            for n in range(50)
        ]
        rows = {item.id: str(row.record) for item in kept if (row := rooms.records.get("acme", "mem0-1", item.id))}
        place = rooms.naming.place("mem0-1", writes, writes.writes) if writes.writes else None
        assert place is not None

        def bare_get(n: int) -> None:
            target.request("GET", f"/memories/{rows[kept[n % 50].id]}", headers=_HEADERS)

        def bare_search(n: int) -> None:
            body = {"query": f"office {n % 50}", "filters": {"user_id": place.place}, "top_k": 26}
            target.request("POST", "/search", json=body, headers=_HEADERS)

        def bare_add(n: int) -> None:
            body = {
                "messages": [{"role": "user", "content": f"The shop {n} opens."}], "infer": False,
                "user_id": f"{'0' * 32}:bench", "metadata": {},
            }  # fmt: skip
            target.request("POST", "/memories", json=body, headers=_HEADERS)

        def page(_: int) -> None:
            assert len(engine.list(context, reads, scope=None, limit=50, after=None).items) == 50

        def fifty(_: int) -> None:
            for n in range(50):
                bare_get(n)

        def paged(what: str, times: int) -> Line:
            ours, bare = pairs(page, fifty, times)
            return within(what, median(ours), "50 bare reads by id", median(bare), 1.5)

        yield paged("a page of 50, all of its place", max(10, times // 10))
        yield _over("get", lambda n: engine.get(context, reads, kept[n % 50].id), bare_get, times)
        yield _over(
            "recall of one place",
            lambda n: engine.recall(context, reads, RecallRequest(query=f"office {n % 50}")), bare_search, times,
        )  # fmt: skip
        yield _over(
            "remember",
            lambda n: engine.remember(context, writes, RememberRequest(content=f"The shop {n} {time.time()} opens.")),
            bare_add, times,
        )  # fmt: skip

        yield paged("a page of 50, of many more in one place", max(10, times // 10))


def _over(what: str, ours: Callable[[int], object], bare: Callable[[int], object], times: int) -> Line:
    took, yard = pairs(ours, bare, times)
    more = median([a - b for a, b in zip(took, yard, strict=True)])
    return at_most(f"{what}, more than the bare call", more, 3.0, "ms", "the bare call", median(yard))


@contextmanager
def _standing() -> Iterator[str]:
    code = (
        "import time; from tests.engines.component import standing; from tests.engines.mem0_standin import Mem0Server\n"
        f"server = Mem0Server()\nwith standing(server, port={_PORT}) as server.component: time.sleep(3600)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment)
    try:
        with outside(Path(_FOLDER / "looking"), Context(), f"http://127.0.0.1:{_PORT}", KEY) as rooms:
            for _ in range(200):
                try:
                    rooms.connection.public("GET", "/auth/setup-status")
                    break
                except Unavailable:
                    rooms.connection._breaker.answered()
                    time.sleep(0.1)
        yield f"http://127.0.0.1:{_PORT}"
    finally:
        process.terminate()
        process.wait()
