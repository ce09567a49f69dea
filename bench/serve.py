"""The service: what its guards and HTTP cost beside the same recall in process, and many tenants on one node.

* `recall` over HTTP with every guard on the embedded defaults, beside the same recall in process;
* the guards alone: identity, relation, policy, isolation, secrets in a kilobyte, decision, audit;
* sixteen connections, beside a bare FastAPI route that makes the same recall in process;
* whether a foreign id can be told from a missing one by time (the area under the curve; 0.5: it cannot);
* a thousand tenants with 500 notes each: the first request to a Home that nobody has opened, and the memory of it all.

Server and client share the two processors; both servers of a comparison run one after the other in turns.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path

from bench._common import (
    CACHE,
    ROOT,
    Line,
    Options,
    at_most,
    blocks,
    elapsed,
    median,
    percentile,
    questions,
    tell,
    texts,
    wait_for_calm,
)
from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import OperationContext, Place, RecallRequest, RememberRequest
from memoranda.engines.homes import Homes
from memoranda.engines.placing import circumstances, places_of
from memoranda.errors import NotFound, SecretRefused
from memoranda.notes.ids import new_id
from memoranda.operations import remembering
from memoranda.service import admin, memories
from memoranda.service.caller import Caller, authenticate
from memoranda.service.case import Case
from memoranda.service.desk import Desk
from memoranda.service.opening import open_desk
from memoranda.service.pipeline import perform

TITLE = "service: what guards, HTTP and many tenants cost"
_FOLDER = CACHE / "serve"
_PORT = 18_731
_TENANTS, _EACH = 1_000, 500


def run(options: Options) -> Iterator[Line]:
    size = options.scale or 10_000
    data = _filled(_FOLDER / f"one-{size}", ["acme"], size)
    yield from _guards(data, options)
    yield from _recall(data, size, options)
    yield from _throughput(data, size, options)
    yield from _apart(data, options)
    yield from _tenants(options)


# Data


def _where(tenant: str) -> OperationContext:
    place = Place(scope="user", owner="ana")
    return OperationContext(tenant=tenant, project="shop", user="ana", agent="cleo", reads=(place,), writes=place)


def _filled(folder: Path, tenants: Sequence[str], size: int) -> Path:
    """A service's folder with these tenants, each with `size` notes of ana's in a Home of its own; made once.

    Each note is remembered as any other, by processes side by side: one alone waits for the disk most of the time. What
    is cut short goes on where it was: a tenant whose token stands there has all of its notes.
    """
    missing = [tenant for tenant in tenants if not (folder / f"{tenant}.token").exists()]
    if not missing:
        return folder
    tell(f"remembering {len(missing) * size:,} notes of {len(missing):,} tenants")
    context = Context()
    desk = open_desk(context, folder)
    started = min(len(missing), 2 * (os.cpu_count() or 1))
    with ProcessPoolExecutor(started, mp_context=multiprocessing.get_context("spawn")) as pool:
        work = {pool.submit(_remember, folder, tenant, size, tenants.index(tenant)): tenant for tenant in missing}
        for n, done in enumerate(as_completed(work), 1):
            done.result()
            (folder / f"{work[done]}.token").write_text(_registered(desk, context, work[done]))
            if n % 100 == 0:
                tell(f"{n:,} tenants")
    desk.close()
    wait_for_calm()
    return folder


def _registered(desk: Desk, context: Context, tenant: str) -> str:
    """Enters a tenant with ana and her agent cleo; her token."""
    if tenant not in {one.id for one in desk.registry.tenants()}:
        desk.registry.add_tenant(context, tenant)
        desk.relations.write(add=admin.tuples_of_tenant(tenant))
        desk.registry.add_user(context, tenant, "ana", ("developer",))
        desk.registry.add_agent(context, tenant, "cleo", "shop", "ana")
        desk.relations.write(add=admin.tuples_of_agent(tenant, "cleo", "ana"))
    return desk.tokens.issue(context, tenant, "ana")[1]


def _remember(folder: Path, tenant: str, size: int, seed: int) -> None:
    """One tenant's notes, the indexes at the end of all: what the engine does for each, it does here once."""
    context, where = Context(), _where(tenant)
    own, place = circumstances(context, where), next(iter(places_of(where)))
    with Homes(folder / "homes", context) as homes:
        if (old := homes.root_of(tenant, "shop")).exists():
            shutil.rmtree(old)
        with homes.reading(own, tenant, "shop", (place,), write="project") as space:
            home = space.one()
            home.refresh(own)
            left, more = size, texts(2 * size, seed)
            while left:
                with suppress(SecretRefused):  # in one of 60,000 the mixture looks like a password
                    remembering.remember(own, space, remembering.NewNote(next(more), kind="fact", scope="user"))
                    left -= 1
            home.refresh(own)


# Rows


def _guards(data: Path, options: Options) -> Iterator[Line]:
    desk, context, token = open_desk(Context(), data), Context(), (data / "acme.token").read_text()
    kilobyte = (next(texts(1)) + " We met and spoke about the renewal of the contract. " * 20)[:1024]
    for writes in (False, True):
        times = []
        for n in range(options.samples(1_000)):
            started = time.perf_counter()
            case = Case(
                desk, authenticate(desk, context, token), "remember" if writes else "recall", "cleo",
                scope="user" if writes else None, kind="fact" if writes else None,
                classification="internal" if writes else None, fields=(("content", f"{n} {kilobyte}"),),
            )  # fmt: skip
            perform(case, lambda _case: None)
            times.append((time.perf_counter() - started) * 1000)
        what = "a change, intent synced" if writes else "a read"
        yield at_most(f"guards alone, {what}, p50", median(times), 1, "ms")
        yield Line(f"guards alone, {what}, p95", percentile(times, 95), "ms")
    desk.close()


def _apart(data: Path, options: Options) -> Iterator[Line]:
    """Times of reading another tenant's id, another user's in the same Home, and ids that are nobody's."""
    context, chance = Context(), random.Random(5)
    desk = open_desk(context, data)
    caller = authenticate(desk, context, (data / "acme.token").read_text())
    theirs = {
        "another tenant's": OperationContext(tenant="globex", project="shop", user="zoe", agent="cleo", writes=_ZOE),
        "another user's": OperationContext(tenant="acme", project="shop", user="zoe", agent="cleo", writes=_ZOE),
    }
    for whose, where in theirs.items():
        new = [RememberRequest(content=text) for text in texts(100, seed=9)]
        ids = [desk.builtin.remember(context, where, one).id for one in new]
        times: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(options.samples(2_000)):
            pair = [(True, chance.choice(ids)), (False, new_id("mem", context.random))]
            chance.shuffle(pair)
            for there, item in pair:
                times[there].append(elapsed(lambda item=item: _missed(desk, caller, item)))
        area = _area(times[True], times[False])
        yield Line(
            f"{whose} id against a missing one, by time: AUC", area, "", bound="0.45 to 0.55", met=0.45 <= area <= 0.55
        )
    desk.close()


_ZOE = Place(scope="user", owner="zoe")


def _missed(desk: Desk, caller: Caller, item: str) -> None:
    with suppress(NotFound):
        memories.get(desk, caller, "cleo", item)


def _area(ones: list[float], others: list[float]) -> float:
    """How often one of `ones` is larger than one of `others`; ties count half."""
    ordered = sorted(others)
    larger = sum(bisect_left(ordered, one) + bisect_right(ordered, one) for one in ones)
    return larger / 2 / len(ones) / len(others)


def _recall(data: Path, size: int, options: Options) -> Iterator[Line]:
    """Fifty over HTTP, fifty in process, in turns, so that a moment in which the machine is slow is slow for both."""
    asked, token = questions(400), (data / "acme.token").read_text()
    with Homes(data / "homes", Context()) as homes, _serving("memoranda", data) as port:
        engine, connection = Builtin(homes), http.client.HTTPConnection("127.0.0.1", port)

        def inside(n: int) -> None:
            engine.recall(Context(), _where("acme"), RecallRequest(query=asked[n % len(asked)], top_k=8))

        def outside(n: int) -> None:
            _ask(connection, "service", token, asked[n % len(asked)])

        for n in range(20):
            inside(n)
            outside(n)
        over, alone = blocks(outside, inside, options.samples(400))
    more = median(over) - median(alone)
    yield at_most(f"recall over HTTP at {size:,}: more than in process, p50", more, 2.5, "ms")
    yield Line("  over HTTP p50", median(over), "ms", "in process", median(alone), median(over) / median(alone))
    yield Line("  over HTTP p95", percentile(over, 95), "ms", "in process", percentile(alone, 95))


def _throughput(data: Path, size: int, options: Options) -> Iterator[Line]:
    seconds = 2.0 if options.quick else 8.0
    rates: dict[str, list[float]] = {"memoranda": [], "bare": []}
    for _ in range(2):
        for kind in rates:
            with _serving(kind, data) as port:
                rates[kind].append(_rate(port, kind, data, seconds))
    ours, bare = max(rates["memoranda"]), max(rates["bare"])
    yield Line(
        f"recalls a second at 16 connections, {size:,} notes", ours, "1/s", "a bare FastAPI route", bare, ours / bare,
        "70 % of it", ours >= 0.7 * bare,
    )  # fmt: skip


def _rate(port: int, kind: str, data: Path, seconds: float) -> float:
    asked, token = questions(400), (data / "acme.token").read_text()
    route = "service" if kind == "memoranda" else "bare"
    done = [0] * 16
    end = time.monotonic() + seconds

    def work(which: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while time.monotonic() < end:
            _ask(connection, route, token, asked[(which * 31 + done[which]) % len(asked)])
            done[which] += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / seconds


def _tenants(options: Options) -> Iterator[Line]:
    count = 50 if options.quick else _TENANTS
    data = _filled(_FOLDER / f"many-{count}", [f"t{n}" for n in range(count)], _EACH)
    tokens = {name.stem: name.read_text() for name in data.glob("*.token")}
    with _serving("memoranda", data) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        before = _memory(port)
        first = [elapsed(lambda t=token: _ask(connection, "service", t, "contract")) for token in tokens.values()]
        yield at_most(f"first request to a cold Home of {_EACH}, p95 of {count:,}", percentile(first, 95), 100, "ms")
        yield Line("  p50", median(first), "ms")
        yield at_most(f"memory with {count:,} Homes asked", _memory(port), 1_000, "MB", "before", before)


def _memory(port: int) -> float:
    """Resident megabytes of the process that serves."""
    status = Path(f"/proc/{_PROCESSES[port].pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1000


# Servers


_PROCESSES: dict[int, subprocess.Popen[bytes]] = {}


@contextmanager
def _serving(kind: str, data: Path) -> Iterator[int]:
    environment = {**os.environ, "EAI_ENVIRONMENT": "development", "MEMORANDA_DATA": str(data)}
    words = [sys.executable, "-m", "bench.serve", kind, str(data), str(_PORT)]
    process = _PROCESSES[_PORT] = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", _PORT, timeout=5)
                connection.request("GET", "/healthz")
                if connection.getresponse().status == 200:
                    break
            except OSError:
                time.sleep(0.1)
        else:
            raise RuntimeError(f"the server {kind} did not come up")
        yield _PORT
    finally:
        process.terminate()
        process.wait(30)


def _ask(connection: http.client.HTTPConnection, route: str, token: str, query: str) -> None:
    path = "/v1/memory/agents/cleo/recall" if route == "service" else "/bare"
    body = json.dumps({"query": query, "top_k": 8})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status}")


def _serve(kind: str, data: Path, port: int) -> None:
    import uvicorn

    if kind == "memoranda":
        from memoranda.faces.http import create_app

        app = create_app()
    else:
        from fastapi import FastAPI

        app = FastAPI()
        homes = Homes(data / "homes", Context())
        engine = Builtin(homes)

        @app.get("/healthz")
        def alive() -> dict[str, str]:
            return {}

        @app.post("/bare")
        def bare(asked: RecallRequest) -> dict[str, object]:
            return engine.recall(Context(), _where("acme"), asked).model_dump()

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
