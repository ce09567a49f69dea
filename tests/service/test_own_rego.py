"""A tenant's own Rego: what a decision is told of personal data and of taint is so, and rules on it fire."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.engines.contract import RecallRequest, RememberRequest, UpdateRequest
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import Forbidden, PersonalDataRefused
from memoranda.governance.decisions import EmbeddedDecisions, Opa, shipped_policies
from memoranda.service import memories
from memoranda.service.answers import TaintRequest
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.values import replace
from tests.engines.component import Answer, standing

Made = Callable[..., Caller]
PLAIN = RememberRequest(content="The roof was mended in May.")
PERSON = RememberRequest(content="Write to nadia.benali@example.org about the roof.")
ASKED = RecallRequest(query="roof")
OWN = """package memory.{package}
import rego.v1
deny contains "no_personal_data" if input.personal_data
deny contains "no_outside" if "external" in input.taint
deny contains "no_hold" if input.legal_hold
"""


@pytest.fixture
def own(desk: Desk, tmp_path: Path) -> Desk:
    """The service with a Rego file of the tenant's own beside those that are shipped."""
    for name, text in shipped_policies().items():
        (tmp_path / name).write_text(text)
    same = EmbeddedDecisions(tmp_path)
    assert same.shipped and EmbeddedDecisions().shipped
    for package in ("write", "search"):
        (tmp_path / f"own_{package}.rego").write_text(OWN.format(package=package))
    decisions = EmbeddedDecisions(tmp_path)
    assert not decisions.shipped
    return replace(desk, decisions=decisions)


def test_a_rule_on_personal_data_fires_on_what_would_be_kept_and_on_nothing_else(own: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    kept = memories.remember(own, ana, "cleo", PLAIN)
    with pytest.raises(Forbidden, match=r"memory\.write") as refused:
        memories.remember(own, ana, "cleo", PERSON)
    assert "no_personal_data" in refused.value.why
    with pytest.raises(Forbidden, match=r"memory\.write"):
        memories.update(own, ana, "cleo", kept.id, UpdateRequest(content=PERSON.content))
    assert [item.id for item in memories.list_items(own, ana, "cleo").items] == [kept.id]


def test_a_rule_on_taint_fires_for_a_session_that_met_something_and_for_what_says_so(own: Desk, caller: Made) -> None:
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    memories.remember(own, ana, "cleo", PLAIN)
    memories.search(own, ana, "cleo", ASKED)
    with pytest.raises(Forbidden, match=r"memory\.write") as refused:
        memories.remember(own, ana, "cleo", PLAIN.model_copy(update={"origin": "external"}))
    assert "no_outside" in refused.value.why

    memories.taint(own, ana, "cleo", "s1", TaintRequest(reason="a page of the web"))
    for call in (
        lambda: memories.remember(own, ana, "cleo", PLAIN.model_copy(update={"session_id": "s1"})),
        lambda: memories.search(own, ana, "cleo", ASKED.model_copy(update={"session_id": "s1"})),
        lambda: memories.search(own, ana, "cleo", ASKED),  # leaving the session out launders nothing
    ):
        with pytest.raises(Forbidden) as refused:
            call()
        assert "no_outside" in refused.value.why
    memories.remember(own, bob, "max", PLAIN)  # nobody else's session has met it


def test_a_rule_on_holds_fires(own: Desk, caller: Made) -> None:
    with pytest.raises(Forbidden) as refused:
        memories.remember(own, caller("acme", "ana"), "cleo", PLAIN.model_copy(update={"legal_hold": True}))
    assert "no_hold" in refused.value.why


def test_an_opa_is_told_the_same_and_never_a_word(desk: Desk, caller: Made) -> None:
    egress = Egress(EgressSettings(environment="development"))
    yes: dict[str, Any] = {"result": {"allow": True, "deny": []}}
    try:
        with standing(lambda _: Answer(body=yes)) as server:
            asked = replace(desk, decisions=Opa(egress, server.url))
            ana = caller("acme", "ana")
            memories.remember(asked, ana, "cleo", PLAIN)
            memories.remember(asked, ana, "cleo", PERSON)
            memories.taint(asked, ana, "cleo", "s1", TaintRequest(reason="a page of the web"))
            memories.search(asked, ana, "cleo", ASKED.model_copy(update={"session_id": "s1"}))
            told = [one.json["input"] for one in server.asked]
        assert [(one["personal_data"], one["taint"]) for one in told] == [
            (False, []), (True, []), (False, []), (False, ["external"]),
        ]  # fmt: skip
        assert all(b"nadia" not in one.body and b"roof" not in one.body for one in server.asked)
    finally:
        egress.close()


def test_what_the_agents_policy_refuses_is_refused_before_any_rule(
    own: Desk, caller: Made, set_policy: Callable[..., None]
) -> None:
    set_policy("acme", "cleo", allow_personal_data=False)
    with pytest.raises(PersonalDataRefused):
        memories.remember(own, caller("acme", "ana"), "cleo", PERSON)
