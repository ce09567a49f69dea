"""Whether the service lives, whether it can work, and its numbers: for the machines that watch it, without a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from memoranda.engines.contract import Model
from memoranda.errors import MemorandaError
from memoranda.faces.http.metrics import MEDIA_TYPE
from memoranda.faces.http.problems import RETRY_AFTER

router = APIRouter(tags=["standing"])
State = Literal["ok", "unavailable"]


class Alive(Model):
    """That the process answers."""

    status: Literal["ok"] = "ok"


class Making(Model):
    """How far the caches are that this node is making: `done` of `all` notes or words, of all these Homes together."""

    homes: int
    done: int
    all: int


class Readiness(Model):
    """Whether requests can be served, and by name which part is in the way. While a node makes caches of memories,
    `making` says how far it is; who asks for those memories waits, and is answered in full."""

    status: State
    components: dict[str, State]
    making: Making | None = None


@router.get("/healthz", summary="Alive")
async def healthz() -> Alive:
    """The process answers; nothing else is asked."""
    return Alive()


@router.get("/readyz", summary="Ready")
def readyz(request: Request, response: Response) -> Readiness:
    """Asks every component; 503 while one does not answer."""
    components = {name: _state(ask) for name, ask in checks(request.app.state.desk).items()}
    status: State = "ok" if set(components.values()) <= {"ok"} else "unavailable"
    if status != "ok":
        response.status_code = 503
        response.headers["retry-after"] = RETRY_AFTER
    homes, done, everything = request.app.state.desk.homes.shelf.made_of()
    making = Making(homes=homes, done=done, all=everything) if homes else None
    return Readiness(status=status, components=components, making=making)


@router.get("/metrics", summary="Metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """For Prometheus: requests by route template and status, how long they took, decisions, engine errors."""
    return Response(request.app.state.metrics.text(), media_type=MEDIA_TYPE)


def checks(desk: Any) -> dict[str, Callable[[], object]]:
    """What is asked of each component."""
    return {
        "state": desk.database.ready,
        "relations": desk.relations.ready,
        "decisions": desk.decisions.ready,
        "injection": desk.injection.ready,
        "audit": desk.audit.ready,
        "credentials": desk.credentials.ready,
    }


def _state(ask: Callable[[], object]) -> State:
    try:
        ask()
    except (MemorandaError, OSError):
        return "unavailable"
    return "ok"
