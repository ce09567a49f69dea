"""One request on its way in: who calls, what the body says, and what it claims without being entitled to.

A route's function runs in a thread of the pool and asks its `Call` for `caller` first: that authenticates, refuses what
is not the caller's to say, and only then is anything of the request looked at.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from memoranda.context import Context, system_clock
from memoranda.errors import InvalidInput, MediaTypeUnknown, TooLarge, Unauthenticated, Unavailable
from memoranda.faces.http.problems import invalid, unknown_field
from memoranda.service.caller import Caller, authenticate, refuse_claims

if TYPE_CHECKING:
    from memoranda.service.desk import Desk

B = TypeVar("B", bound=BaseModel)
_WORDS = {
    "tenant": ("tenant", "tenant_id", "tenantid"),
    "organization": ("organization", "organization_id", "org", "org_id"),
    "project": ("project", "project_id"),
    "user": ("user", "user_id", "userid"),
    "agent": ("agent", "agent_id", "agentid"),
    "team": ("team", "team_id"),
    "session": ("session", "session_id", "sessionid"),
}
_DIGITS = 18  # of a length that is looked at
CLAIMS = {name: word for word, names in _WORDS.items() for name in names}  # a field or parameter -> its word
HEADERS = {
    f"{head}{name.replace('_', '-')}": word for head in ("x-", "x-memoranda-") for name, word in CLAIMS.items()
} | {"x-forwarded-user": "user", "x-remote-user": "user"}  # fmt: skip


class Call(Generic[B]):
    """One request. `desk` is what the operations work with."""

    __slots__ = ("_caller", "_deadline", "_model", "_raw", "desk", "request")

    def __init__(self, request: Request, model: type[B] | None, raw: bytes) -> None:
        self.request = request
        self.desk: Desk = request.app.state.desk
        self._model = model
        self._raw = raw
        self._caller: Caller | None = None
        self._deadline: float = request.state.deadline

    @property
    def caller(self) -> Caller:
        """Who calls, once nothing that was sent contradicts it.

        Raises:
            Unauthenticated: nobody is known by the credential, or none came.
            Forbidden: a header or a parameter names a tenant, user, agent, team or session that is not the caller's.
            InvalidInput: a parameter that nothing knows, or one that came twice.
        """
        if self._caller is None:
            if time.monotonic() > self._deadline:
                raise Unavailable("The request waited too long for its turn.")
            context = Context(user="-", agent="-", clock=system_clock, random=os.urandom, deadline=self._deadline)
            request_id = self.request.state.request_id
            caller = authenticate(self.desk, context, bearer(self.request), request_id)
            refuse_headers(self.desk, caller, self.request)
            refuse_parameters(self.desk, caller, self.request, _parameters(self.request))
            self._caller = caller
        return self._caller

    @property
    def body(self) -> B:
        """What the body says.

        Raises:
            Forbidden: it names a tenant, user, agent, team or session that is not the caller's.
            InvalidInput: it is not JSON, or not of the form that this route takes.
        """
        assert self._model is not None
        caller = self.caller
        try:
            return self._model.model_validate_json(self._raw or b"null", strict=True)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
            for one in found:
                if one["type"] == "extra_forbidden" and str(one["loc"][-1]).lower() in CLAIMS:
                    word = CLAIMS[str(one["loc"][-1]).lower()]
                    refuse_claims(self.desk, caller, {word: str(one["input"])})
            raise invalid(found) from None

    def nothing(self) -> None:
        """InvalidInput for a body where none is taken: what it says would be left out silently."""
        if self._raw:
            raise InvalidInput("This request takes no body.", remedy="Send it without one.")


def refuse_headers(desk: Desk, caller: Caller, request: Request) -> None:
    """Refuses, on record, what a header claims and the credential does not say. Forbidden."""
    for name, value in request.headers.items():
        if name in HEADERS:
            refuse_claims(desk, caller, {HEADERS[name]: value})


def refuse_parameters(desk: Desk, caller: Caller, request: Request, known: frozenset[str]) -> None:
    """Refuses query parameters that are not known, that came twice, or, on record, that claim what is not the caller's.

    Forbidden, InvalidInput.
    """
    sent = [name for name, _ in request.query_params.multi_items()]
    strange = [name for name in sent if name not in known]
    for name in strange:
        if name.lower() in CLAIMS:
            refuse_claims(desk, caller, {CLAIMS[name.lower()]: request.query_params[name]})
    if strange:
        raise unknown_field(strange[0], part="query parameter")
    if len(set(sent)) < len(sent):
        raise InvalidInput("A query parameter came twice.", remedy="Send each once.")


def bearer(request: Request) -> str | None:
    """The token of the request; Unauthenticated for another scheme, or for two credentials."""
    told = request.headers.getlist("authorization")
    if not told:
        return None
    scheme, _, token = told[0].partition(" ")
    if len(told) > 1 or scheme.lower() != "bearer":
        raise Unauthenticated("This credential is not understood.", remedy="Send `Authorization: Bearer …`, once.")
    return token.strip() or None


def _parameters(request: Request) -> frozenset[str]:
    """The query parameters that the route takes."""
    parameters = request.scope["route"].dependant.query_params
    if len(parameters) == 1:  # a model stands for its fields
        fields = getattr(parameters[0].field_info.annotation, "model_fields", None)
        if fields is not None:
            return frozenset(fields)
    return frozenset(parameter.alias for parameter in parameters)


def taking(model: type[B] | None = None, largest: int | None = None) -> Taking[B]:
    """The dependency of a route whose body is a `model`, or that takes none; `largest` bounds it in bytes."""

    return Taking(model, largest)


class Taking(Generic[B]):
    """Makes the `Call` of a request; the OpenAPI document asks it for its `model`."""

    def __init__(self, model: type[B] | None, largest: int | None) -> None:
        self.model = model
        self._largest = largest

    async def __call__(self, request: Request) -> Call[B]:
        if "authorization" in request.headers:
            largest = self._largest or request.app.state.config.body_limit
            return Call(request, self.model, await _read(request, largest))
        return Call(request, self.model, b"")  # nobody: nothing is read for them


async def _read(request: Request, largest: int) -> bytes:
    told = request.headers.get("content-length", "0")
    if not told.isdecimal() or len(told) > _DIGITS or int(told) > largest:
        raise _too_large(largest)
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            raise _too_large(largest)
        pieces.append(piece)
    raw = b"".join(pieces)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if raw and kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise MediaTypeUnknown("The body is not JSON.", remedy="Send it as `Content-Type: application/json`.")
    return raw


def _too_large(largest: int) -> TooLarge:
    return TooLarge("The body is too large.", why=f"It may have {largest:,} bytes.", remedy="Send less at once.")
