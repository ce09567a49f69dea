"""Policies: every version stays, the newest within the tenant's floor holds, and what cannot stand is named."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.engines.contract import CLASSIFICATION_ORDER, ISOLATIONS, Policy, PolicyBody
from memoranda.errors import InvalidInput, NotFound, PreconditionFailed
from memoranda.governance.instances import Instances
from memoranda.governance.policies import ENGINE_CHANGE, SHARE, Floor, Policies, audited, bounded, parsed
from memoranda.governance.registry import Registry
from memoranda.state.opening import open_database


@pytest.mark.requirement("P-079")
def test_a_new_agents_policy_shows_the_default_of_every_field(policies: Policies) -> None:
    found = policies.in_force("acme", "cleo").model_dump()
    assert found == {
        "version": 0, "created_at": None, "created_by": None, "restored_from": None,
        "engine": "builtin", "mem0_instance": None, "cognee_instance": None,
        "policy": {
            "modes": ("session", "long_term", "agent"),
            "write_scopes": ("session", "user", "agent"),
            "read_scopes": ("session", "user", "agent"),
            "default_scope": "user",
            "allowed_kinds": ("episodic", "semantic", "procedural", "preference", "fact"),
            "max_classification": "confidential",
            "allow_personal_data": True,
            "retention_days": None, "legal_hold": False, "infer": False,
            "shared_with": (), "teams": (), "global_access": False,
            "required_isolation": "logical",
            "recall_top_k": 8,
        },
    }  # fmt: skip


@pytest.mark.requirement("P-076")
def test_the_body_takes_an_engine_beside_the_policy_and_builtin_without_one(
    policies: Policies, context: Context
) -> None:
    assert policies.put(context, "acme", "cleo", parsed({"policy": {}}), by="ana").engine == "builtin"
    for engine in ("builtin", "mem0", "cognee", "hybrid"):
        assert parsed({"engine": engine}).engine == engine
    with pytest.raises(InvalidInput, match=r"^engine: "):
        parsed({"engine": "other"})


@pytest.mark.requirement("P-081")
def test_there_are_eight_scopes_and_no_other() -> None:
    scopes = ["session", "user", "agent", "shared_agents", "project", "team", "organization", "global"]
    assert list(parsed({"policy": {"read_scopes": scopes, "write_scopes": scopes}}).policy.read_scopes) == scopes
    for wrong in ("tenant", "User", "", "all"):
        for field, value in (("read_scopes", [wrong]), ("write_scopes", [wrong]), ("default_scope", wrong)):
            with pytest.raises(InvalidInput, match=rf"^policy\.{field}"):
                parsed({"policy": {field: value}})


def test_each_put_makes_a_version_and_all_of_them_can_be_read(policies: Policies, context: Context) -> None:
    for top_k in (3, 4, 5):
        policies.put(context, "acme", "cleo", parsed({"policy": {"recall_top_k": top_k}}), by="ana")
    assert policies.current("acme", "cleo").policy.recall_top_k == 5
    told = [(v.version, v.policy.recall_top_k, v.created_by) for v in policies.versions("acme", "cleo")]
    assert told == [(3, 5, "ana"), (2, 4, "ana"), (1, 3, "ana")]
    assert [v.version for v in policies.versions("acme", "cleo", limit=1, before=3)] == [2]
    assert policies.versions("globex", "cleo") == [] and policies.current("globex", "cleo").version == 0


def test_a_restored_version_is_a_new_one_equal_to_the_old(policies: Policies, context: Context) -> None:
    first = policies.put(context, "acme", "cleo", parsed({"policy": {"recall_top_k": 3}}), by="ana")
    policies.put(context, "acme", "cleo", parsed({"policy": {"legal_hold": True}}), by="ana")
    back = policies.restore(context, "acme", "cleo", 1, by="otto")
    assert (back.version, back.restored_from, back.created_by) == (3, 1, "otto")
    assert back.policy == first.policy and policies.current("acme", "cleo") == back
    assert policies.restore(context, "acme", "cleo", 0, by="otto").policy == Policy()
    for missing in (9, -1):
        with pytest.raises(NotFound):
            policies.restore(context, "acme", "cleo", missing, by="ana")


def test_another_tenants_version_cannot_be_restored(policies: Policies, context: Context) -> None:
    policies.put(context, "globex", "cleo", PolicyBody(), by="ana")
    with pytest.raises(NotFound):
        policies.restore(context, "acme", "cleo", 1, by="ana")


def test_a_change_of_what_has_changed_meanwhile_is_refused(policies: Policies, context: Context) -> None:
    policies.put(context, "acme", "cleo", PolicyBody(), by="ana", expected=0)
    with pytest.raises(PreconditionFailed):
        policies.put(context, "acme", "cleo", PolicyBody(), by="otto", expected=0)
    with pytest.raises(PreconditionFailed):
        policies.restore(context, "acme", "cleo", 0, by="otto", expected=0)
    assert policies.current("acme", "cleo").version == 1


def test_of_many_writers_who_saw_the_same_version_one_wins(policies: Policies, context: Context) -> None:
    def put(n: int) -> bool:
        try:
            policies.put(context, "acme", "cleo", PolicyBody(), by=f"u{n}", expected=0)
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(put, range(8))) == 1
    assert len(policies.versions("acme", "cleo")) == 1


def test_there_is_no_policy_of_an_agent_that_is_not_there(policies: Policies, context: Context) -> None:
    with pytest.raises(NotFound):
        policies.put(context, "acme", "nobody", PolicyBody(), by="ana")


def test_an_agent_that_is_made_again_does_not_get_the_old_ones_policy(
    policies: Policies, context: Context, registry: Registry
) -> None:
    policies.put(context, "acme", "cleo", parsed({"policy": {"global_access": True}}), by="ana")
    registry.remove_agent("acme", "cleo")
    registry.add_agent(context, "acme", "cleo", project="atlas", owner="ana")
    assert policies.in_force("acme", "cleo").version == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"policy": {"default_scope": "team"}}, "policy.default_scope"),
        ({"policy": {"default_scope": "everyone"}}, "policy.default_scope"),
        ({"policy": {"recall_top_k": 0}}, "policy.recall_top_k"),
        ({"policy": {"retention_days": -1}}, "policy.retention_days"),
        ({"policy": {"write_scopes": ["user", "world"]}}, "policy.write_scopes.1"),
        ({"policy": {"unknown": 1}}, "policy.unknown"),
        ({"engine": "mem1"}, "engine"),
        ({"engine": "mem0"}, "mem0_instance"),
        ({"engine": "hybrid", "mem0_instance": "mem0-shared"}, "cognee_instance"),
        ({"mem0_instance": "mem0-nowhere"}, "mem0_instance"),
        ({"cognee_instance": "mem0-shared"}, "cognee_instance"),
    ],
)
def test_what_cannot_stand_is_named_and_nothing_is_written(
    policies: Policies, context: Context, body: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"^{field}: "):
        policies.put(context, "acme", "cleo", parsed(body), by="ana")
    assert policies.current("acme", "cleo").version == 0


def test_the_words_of_what_was_refused_are_not_repeated() -> None:
    with pytest.raises(InvalidInput) as refused:
        parsed({"policy": {"recall_top_k": "hunter2", "default_scope": "hunter2"}})
    assert "hunter2" not in str(refused.value)


class TestFloor:
    def test_bounds_what_can_be_set_and_says_so(self, policies: Policies, context: Context) -> None:
        floor = Floor(required_isolation="backend", max_classification="internal", allow_personal_data=False,
                      retention_days=30)  # fmt: skip
        policies.set_floor(context, "acme", floor, by="sam")
        for field, value in (
            ("required_isolation", "logical"),
            ("max_classification", "confidential"),
            ("allow_personal_data", True),
            ("retention_days", 31),
        ):
            with pytest.raises(InvalidInput, match=rf"^policy\.{field}: the tenant's floor"):
                policies.put(context, "acme", "cleo", parsed({"policy": {field: value}}), by="ana")
            policies.put(context, "globex", "cleo", parsed({"policy": {field: value}}), by="ana")

    def test_holds_for_what_was_left_out_written_before_or_restored(self, policies: Policies, context: Context) -> None:
        loose = parsed({"policy": {"max_classification": "restricted", "retention_days": 900}})
        policies.put(context, "acme", "cleo", loose, by="ana")
        floor = Floor(max_classification="internal", retention_days=30)
        policies.set_floor(context, "acme", floor, by="sam")
        held = policies.in_force("acme", "cleo").policy
        assert (held.max_classification, held.retention_days) == ("internal", 30)
        policies.put(context, "acme", "cleo", parsed({"policy": {"retention_days": 7}}), by="ana")
        held = policies.in_force("acme", "cleo").policy
        assert (held.max_classification, held.retention_days) == ("internal", 7)
        policies.restore(context, "acme", "cleo", 1, by="ana")
        assert policies.in_force("acme", "cleo").policy.max_classification == "internal"
        assert policies.current("acme", "cleo").policy.max_classification == "restricted"
        policies.set_floor(context, "acme", Floor(), by="sam")
        assert policies.in_force("acme", "cleo").policy.max_classification == "restricted"

    def test_set_by_another_process_counts_at_once(self, policies: Policies, context: Context, url: str) -> None:
        assert policies.in_force("acme", "cleo").policy.max_classification == "confidential"
        with open_database(url) as other:
            Policies(other, Instances(other)).set_floor(context, "acme", Floor(max_classification="public"), by="sam")
        assert policies.in_force("acme", "cleo").policy.max_classification == "public"


_policies = st.builds(
    Policy,
    required_isolation=st.sampled_from(ISOLATIONS),
    max_classification=st.sampled_from(CLASSIFICATION_ORDER),
    allow_personal_data=st.booleans(),
    retention_days=st.none() | st.integers(1, 100),
)
_floors = st.builds(
    Floor,
    required_isolation=st.sampled_from(ISOLATIONS),
    max_classification=st.sampled_from(CLASSIFICATION_ORDER),
    allow_personal_data=st.booleans(),
    retention_days=st.none() | st.integers(1, 100),
)


@given(_policies, _floors)
def test_a_bounded_policy_is_never_looser_than_either(policy: Policy, floor: Floor) -> None:
    held = bounded(policy, floor)
    for other in (policy, floor):
        assert ISOLATIONS.index(held.required_isolation) >= ISOLATIONS.index(other.required_isolation)
        order = CLASSIFICATION_ORDER.index
        assert order(held.max_classification) <= order(other.max_classification)
        assert held.allow_personal_data <= other.allow_personal_data
        assert (held.retention_days or 999) <= (other.retention_days or 999)
    assert bounded(held, floor) == held


def test_a_change_of_engine_and_a_sharing_are_told() -> None:
    old = parsed({})
    assert audited(old, parsed({"policy": {"recall_top_k": 3}})) == ()
    assert audited(old, parsed({"engine": "mem0", "mem0_instance": "m"})) == (ENGINE_CHANGE,)
    for change in ({"shared_with": ["nell"]}, {"teams": ["sales"]}, {"global_access": True}):
        assert audited(old, parsed({"policy": change})) == (SHARE,)
        assert audited(parsed({"policy": change}), old) == (SHARE,)
