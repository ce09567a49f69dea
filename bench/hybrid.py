"""What an agent on `hybrid` waits for a recall, beside the slower one of its engines alone, in one run.

Mem0 and Cognee are stand-ins in processes of their own. Each pair is a recall of hybrid and the same question to Mem0
and to Cognee, one after the other, of which the slower counts.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

from bench._common import CACHE, Line, Options, at_most, median
from bench.cognee import _USER
from bench.cognee import _standing as cognee_standing
from bench.engines import _standing as mem0_standing
from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.cognee import Cognee
from memoranda.engines.contract import GraphSearchRequest, IngestRequest, RecallRequest, RememberRequest
from memoranda.engines.hybrid import Hybrid
from memoranda.engines.mem0 import Mem0
from tests.engines.asking import asking
from tests.engines.mem0_standin import KEY
from tests.engines.outside import beside, outside

TITLE = "hybrid: a recall of three engines"
_FOLDER = CACHE / "hybrid"


def run(options: Options) -> Iterator[Line]:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    context = Context(user="ana", agent="cleo")
    with (
        mem0_standing() as memories,
        cognee_standing() as documents,
        outside(_FOLDER, context, memories, KEY) as rooms,
        beside(rooms, documents, _USER, instance="cognee-1") as also,
    ):
        mem0, cognee, sessions = Mem0(rooms), Cognee(also), Builtin(rooms.company.homes)
        hybrid = Hybrid(mem0, sessions, cognee)
        writes, reads = asking(writes="user"), asking(reads=("user",))
        passing = asking(reads=(), writes="session", session="s-1")
        for n in range(50):
            mem0.remember(context, writes, RememberRequest(content=f"The office {n} closes at {n % 24}."))
            if n < 10:
                sessions.remember(context, passing, RememberRequest(content=f"Of this session: office {n}."))
        texts = tuple(f"The office of Ana {n} closes at {n}." for n in range(5))
        cognee.ingest(context, writes, IngestRequest(texts=texts, scope="user", build_graph=True))
        cognee.datasets(context, reads, scope=None, limit=9, after=None)
        everywhere = asking(reads=("user",), session="s-1")
        took: list[tuple[float, float]] = []
        for n in range(-3, options.samples(200)):
            query = f"office {n % 50}"
            asked = RecallRequest(query=query)
            alone = (
                lambda asked=asked: mem0.recall(context, reads, asked),
                lambda query=query: cognee.search_graph(context, reads, GraphSearchRequest(query=query)),
            )
            slower = max(_timed(call) for call in alone)
            ours = _timed(lambda asked=asked: hybrid.recall(context, everywhere, asked))
            if n >= 0:
                took.append((ours, slower))
        more, slower = median([a - b for a, b in took]), median([b for _, b in took])
        yield at_most("recall, more than the slower engine", more, 5.0, "ms", "the slower engine", slower)


def _timed(call: object) -> float:
    began = time.perf_counter()
    call()  # type: ignore[operator]
    return (time.perf_counter() - began) * 1000
