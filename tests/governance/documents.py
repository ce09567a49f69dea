"""Input documents for decisions: a plain one, and random ones around it."""

from __future__ import annotations

import copy
import random
from typing import Any

POLICY: dict[str, Any] = {
    "modes": ["session", "long_term", "agent"],
    "write_scopes": ["session", "user", "agent"],
    "read_scopes": ["session", "user", "agent"],
    "default_scope": "user",
    "allowed_kinds": ["episodic", "semantic", "procedural", "preference", "fact"],
    "max_classification": "confidential",
    "allow_personal_data": True,
    "retention_days": None,
    "legal_hold": False,
    "infer": False,
    "shared_with": [],
    "teams": [],
    "global_access": False,
    "required_isolation": "logical",
    "recall_top_k": 8,
}

DOCUMENT: dict[str, Any] = {
    "operation": "remember",
    "tenant": "acme",
    "caller_tenant": "acme",
    "organization": None,
    "project": "main",
    "user": "ana",
    "agent": "cleo",
    "session": None,
    "scope": "user",
    "team": None,
    "owner": "ana",
    "kind": "fact",
    "classification": "internal",
    "roles": ["developer"],
    "actor_kind": "user",
    "engine": "builtin",
    "isolation": "logical",
    "personal_data": False,
    "taint": [],
    "policy": POLICY,
    "frozen": False,
    "size": 100,
    "request_id": "r",
}

_SCOPES = ["session", "user", "agent", "shared_agents", "project", "team", "organization", "global"]
_WRITES = ["remember", "update", "forget", "purge", "ingest", "build_graph", "delete_dataset", "review", "taint"]
_WRITES += ["set_hold", "release_hold", "end_session"]
_READS = ["recall", "search", "list", "get", "export", "history", "search_graph", "get_relations"]
_VALUES: dict[str, list[Any]] = {
    "operation": [*_WRITES, *_READS, "drop"],
    "tenant": ["acme", "globex", ""],
    "caller_tenant": ["acme", "globex", None],
    "scope": [*_SCOPES, None, "galaxy"],
    "scopes": [[], ["user", "agent"], ["session"], ["team", "global"]],
    "team": ["sales", "legal", None],
    "kind": ["fact", "preference", None, "rumour"],
    "classification": ["public", "internal", "confidential", "restricted", None, "secret"],
    "roles": [[], ["developer"], ["tenant_admin"], ["platform_admin"], ["security_officer"]],
    "actor_kind": ["user", "agent", "service", "ghost"],
    "engine": ["builtin", "mem0-eu", None],
    "isolation": ["logical", "backend", "dedicated_instance", None],
    "personal_data": [True, False],
    "frozen": [True, False],
    "legal_hold": [True, False, None],
    "search_type": ["CHUNKS", "GRAPH_COMPLETION"],
    "builds_graph": [True, False],
    "size": [0, 100, 4194304, 4194305, None, "much"],
}
_POLICY_VALUES: dict[str, list[Any]] = {
    "max_classification": ["public", "internal", "confidential", "restricted", "secret"],
    "required_isolation": ["logical", "backend", "dedicated_instance"],
    "allow_personal_data": [True, False],
    "legal_hold": [True, False],
    "global_access": [True, False],
    "teams": [[], ["sales"], ["legal", "sales"]],
    "allowed_kinds": [["fact"], ["fact", "preference"], []],
}
_NONSENSE: list[Any] = [None, 0, "", "x", [], {}, [1], {"a": None}, True, 1.5]


def random_document(rng: random.Random, operations: str) -> dict[str, Any]:
    """A document that differs from the plain one in a few ways; one in six holds nonsense, or lacks a field."""
    policy = dict(POLICY)
    for name in rng.sample(list(_POLICY_VALUES), rng.randint(0, 3)):
        policy[name] = rng.choice(_POLICY_VALUES[name])
    for name, values in (
        ("modes", ["session", "long_term", "agent", "shared", "knowledge_graph"]),
        ("read_scopes", _SCOPES),
        ("write_scopes", _SCOPES),
    ):
        if rng.random() < 0.7:
            policy[name] = rng.sample(values, rng.randint(1, len(values)))
    made = {**DOCUMENT, "operation": rng.choice(_WRITES if operations == "memory.write" else _READS), "policy": policy}
    for name in rng.sample(list(_VALUES), rng.randint(0, 4)):
        made[name] = rng.choice(_VALUES[name])
    if rng.random() < 1 / 6:
        spoilt = rng.choice([made, policy])
        name = rng.choice(list(dict.fromkeys([*spoilt, *(_VALUES if spoilt is made else ())])))
        if rng.random() < 0.4:
            spoilt.pop(name, None)
        else:
            spoilt[name] = copy.deepcopy(rng.choice(_NONSENSE))
    return made
