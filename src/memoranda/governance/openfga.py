"""Relations asked of an OpenFGA server, by its HTTP interface.

The model is pinned by its id and compared with the shipped one when readiness is asked for; every question asks for the
higher consistency, so that a relation that was taken away is gone at once. No answer, or one that says neither yes nor
no, is ComponentUnavailable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from memoranda.engines.egress import Egress
from memoranda.errors import ComponentUnavailable, ConfigRefused
from memoranda.governance.credentials import Secret
from memoranda.governance.relation_model import (
    Computed,
    Direct,
    Exclusion,
    From,
    Intersection,
    Model,
    Rewrite,
    Union,
    defines,
)
from memoranda.governance.relations import Tuple, asked_for, checked, one_tenant, shipped_model, together

_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_PAGE = 100
_PAGES = 100  # at most: an answer that never ends is none
_CONSISTENCY = "HIGHER_CONSISTENCY"


class OpenFga:
    """One store of an OpenFGA server; `token` gives the bearer token for each call, where one is asked for."""

    def __init__(
        self,
        egress: Egress,
        url: str,
        store_id: str,
        model_id: str,
        *,
        token: Callable[[], Secret] | None = None,
        timeout: float = 2.0,
    ) -> None:
        for name, value in (("store", store_id), ("model", model_id)):
            if not _ID.fullmatch(value):
                raise ConfigRefused(f"The id of OpenFGA's {name} is none.", why="It is a ULID of 26 characters.")
        self._target = egress.to(url, name="OpenFGA", timeout=timeout, failing=ComponentUnavailable)
        self._store, self._model, self._token = f"/stores/{store_id}", model_id, token

    def check(self, user: str, relation: str, object: str, held: Sequence[Tuple] = ()) -> bool:
        """As `Relations.check`."""
        checked(held)
        defines(shipped_model(), user, relation, object)
        if not one_tenant(user, object, *(one.object for one in held)):
            return False
        body: dict[str, Any] = {
            "tuple_key": Tuple(user, relation, object)._asdict(),
            "authorization_model_id": self._model,
            "consistency": _CONSISTENCY,
        }
        if held:
            body["contextual_tuples"] = {"tuple_keys": [one._asdict() for one in held]}
        allowed = self._asked("POST", "/check", body).get("allowed")
        if not isinstance(allowed, bool):
            self._target.fail("It answered neither yes nor no.")
        return allowed

    def write(self, add: Sequence[Tuple] = (), remove: Sequence[Tuple] = ()) -> None:
        """As `Relations.write`."""
        checked(add)
        together(add, remove)
        gone = [one for one in dict.fromkeys(remove) if one not in add]
        body: dict[str, Any] = {"authorization_model_id": self._model}
        if add:
            keys = [one._asdict() for one in dict.fromkeys(add)]
            body["writes"] = {"tuple_keys": keys, "on_duplicate": "ignore"}
        if gone:
            body["deletes"] = {"tuple_keys": [one._asdict() for one in gone], "on_missing": "ignore"}
        if len(body) > 1:
            self._asked("POST", "/write", body)

    def read(self, *, object: str | None = None, user: str | None = None) -> list[Tuple]:
        """As `Relations.read`."""
        asked_for(object, user)
        # Without an object OpenFGA wants to know its type.
        objects = [object] if object else [f"{kind}:" for kind, relations in shipped_model().items() if relations]
        found: set[Tuple] = set()
        for one in objects:
            found.update(self._pages({"object": one, **({"user": user} if user else {})}))
        return sorted(found)

    def ready(self) -> None:
        """As `Relations.ready`; also ComponentUnavailable where the pinned model is not the one that is shipped."""
        answer = self._asked("GET", f"/authorization-models/{self._model}", None)
        try:
            theirs = model_of(answer["authorization_model"])
        except (KeyError, TypeError, ValueError):
            self._target.fail("It answered with something that is no relation model.")
        for kind, relations in shipped_model().items():
            if theirs.get(kind) != relations:
                raise ComponentUnavailable(
                    "The relation model that OpenFGA is asked by is not the one that is shipped.",
                    why=f"It defines {kind!r} otherwise.",
                    remedy="Write policies/relations.fga to the store, and pin the id of that model.",
                )

    def _pages(self, key: Mapping[str, str]) -> Iterator[Tuple]:
        token = ""
        for _ in range(_PAGES):
            body: dict[str, Any] = {"tuple_key": key, "page_size": _PAGE, "consistency": _CONSISTENCY}
            if token:
                body["continuation_token"] = token
            answer = self._asked("POST", "/read", body)
            try:
                page = [
                    Tuple(str(one["key"]["user"]), str(one["key"]["relation"]), str(one["key"]["object"]))
                    for one in answer["tuples"]
                ]
                token = str(answer["continuation_token"])
            except (KeyError, TypeError):
                self._target.fail("It answered with something that are no relations.")
            yield from page
            if not token:
                return
        self._target.fail("Its answer has no end.")

    def _asked(self, method: str, path: str, body: Any) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self._token().reveal()}"} if self._token else {}
        reply = self._target.request(method, self._store + path, json=body, headers=headers)
        if reply.status != 200:
            self._target.fail(f"It answered with status {reply.status}.")
        answer = self._target.answer(reply)
        if not isinstance(answer, dict):
            self._target.fail("It answered something that is no object.")
        return answer


def model_of(document: Mapping[str, Any]) -> Model:
    """The model that OpenFGA's JSON says; KeyError, TypeError or ValueError when it says none that we evaluate."""
    if document["schema_version"] != "1.1":
        raise ValueError("another schema")
    model: dict[str, dict[str, Rewrite]] = {}
    for definition in document["type_definitions"]:
        told = (definition.get("metadata") or {}).get("relations") or {}
        relations = definition.get("relations") or {}
        model[definition["type"]] = {
            name: _rewrite(rewrite, _kinds((told.get(name) or {}).get("directly_related_user_types") or ()))
            for name, rewrite in relations.items()
        }
    return model


def _kinds(told: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    kinds = []
    for one in told:
        if one.get("condition"):
            raise ValueError("a condition")
        relation = f"#{one['relation']}" if one.get("relation") else ""
        kinds.append(one["type"] + (":*" if one.get("wildcard") is not None else relation))
    return frozenset(kinds)


def _rewrite(told: Mapping[str, Any], kinds: frozenset[str]) -> Rewrite:
    ((what, inner),) = told.items()
    if what == "this":
        return Direct(kinds)
    if what == "computedUserset":
        return Computed(inner["relation"])
    if what == "tupleToUserset":
        return From(inner["computedUserset"]["relation"], inner["tupleset"]["relation"])
    if what in ("union", "intersection"):
        parts = tuple(_rewrite(part, kinds) for part in inner["child"])
        return Union(parts) if what == "union" else Intersection(parts)
    if what == "difference":
        return Exclusion(_rewrite(inner["base"], kinds), _rewrite(inner["subtract"], kinds))
    raise ValueError(what)
