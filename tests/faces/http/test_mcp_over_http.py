"""MCP on the same server: an agent's token, the same operations and guards, and no way around them."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from .standing_in import Events

Header = dict[str, str]
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
PLANTED = "m0sk_planted-9f27"


def rpc(client: TestClient, auth: Header, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = client.post("/mcp", json=message, headers={**auth, **ACCEPT, "mcp-protocol-version": "2025-06-18"})
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def tool(client: TestClient, auth: Header, name: str, **arguments: Any) -> Any:
    return rpc(client, auth, "tools/call", name=name, arguments=arguments)


def test_the_tools_work_on_the_agents_own_memory(client: TestClient, auth: Header, events: Events) -> None:
    names = [one["name"] for one in rpc(client, auth, "tools/list")["tools"]]
    assert names[:3] == ["nas_remember", "nas_recall", "nas_read"]
    made = tool(client, auth, "nas_remember", content="The ferry leaves at noon.")  # a near miss for `text`
    item_id = made["structuredContent"]["id"]
    found = tool(client, auth, "nas_recall", query="When does the ferry leave?")
    text = found["content"][0]["text"]
    assert "<<memo " in text and "The ferry leaves at noon." in text
    assert "ferry" not in str(found["structuredContent"])  # words stand between markers only
    read = tool(client, auth, "nas_read", uri=item_id)
    assert "<<memo " in read["content"][0]["text"] and "ferry" not in str(read["structuredContent"])
    over_http = client.get(f"/v1/memory/agents/cleo/memories/{item_id}", headers=auth)
    assert over_http.json()["content"] == "The ferry leaves at noon."
    assert not tool(client, auth, "nas_forget", id=item_id)["isError"]
    assert client.get(f"/v1/memory/agents/cleo/memories/{item_id}", headers=auth).status_code == 404
    assert {"remember", "recall", "get", "forget"} <= {event.operation for event in events("acme")}


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer nobody"}, {"authorization": "Basic eA=="}])
def test_without_a_token_it_says_where_tokens_come_from(client: TestClient, headers: Header) -> None:
    answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "memory_unauthenticated")
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith('Bearer resource_metadata="http')
    path = "/.well-known/oauth-protected-resource/mcp"
    assert challenge.endswith(f'{path}"')
    told = client.get(path).json()
    assert told["resource"].endswith("/mcp") and told["bearer_methods_supported"] == ["header"]


def test_another_tenant_finds_reads_and_forgets_nothing(
    client: TestClient, auth: Header, tokens: dict[str, Header]
) -> None:
    made = tool(client, auth, "nas_remember", text="The vault opens with the blue key.")
    item_id = made["structuredContent"]["id"]
    other = tokens["cleo of umbrella"]  # an agent of the same name
    assert "vault" not in str(tool(client, other, "nas_recall", query="Which key opens the vault?"))
    for name, arguments in (("nas_read", {"uri": item_id}), ("nas_forget", {"id": item_id})):
        refused = tool(client, other, name, **arguments)
        missing = tool(client, other, name, **{key: "mem_0000000000000000" for key in arguments})
        assert refused["isError"] and refused["content"] == missing["content"]
    assert not tool(client, auth, "nas_read", uri=item_id)["isError"]


def test_an_identity_among_the_arguments_is_refused_on_record(client: TestClient, auth: Header, events: Events) -> None:
    for name, value in (("tenant", "umbrella"), ("user_id", "zoe"), ("agent", "other"), ("Tenant_ID", "umbrella")):
        refused = tool(client, auth, "nas_remember", text="Not kept by anybody.", **{name: value})
        assert refused["isError"] and refused["structuredContent"]["code"] == "memory_forbidden"
        assert (events("acme")[0].operation, events("acme")[0].outcome) == ("claim", "deny")
    spoofed = {**auth, **ACCEPT, "x-tenant-id": "umbrella"}
    answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=spoofed)
    assert (answer.status_code, answer.json()["code"]) == (403, "memory_forbidden")
    assert "Not kept" not in str(tool(client, auth, "nas_recall", query="Not kept by anybody"))


def test_a_person_has_no_agents_tools_and_errors_repeat_nothing(client: TestClient, auth: Header, ana: Header) -> None:
    refused = tool(client, ana, "nas_recall", query="x")
    assert refused["structuredContent"]["code"] == "memory_forbidden"
    for name, arguments in (
        ("nas_remember", {"text": f"The API key is {PLANTED} and the password is hunter2-Zebra!9"}),
        ("nas_remember", {"text": "x", "kind": PLANTED}),
        ("nas_read", {"uri": PLANTED}),
        (PLANTED, {}),
    ):
        failed = tool(client, auth, name, **arguments)
        assert failed["isError"] and PLANTED not in str(failed) and "hunter2" not in str(failed)


@pytest.mark.parametrize("session", ["x" * 129, "a b", "\u0000", ""])
def test_a_session_that_is_none_is_refused(client: TestClient, auth: Header, session: str) -> None:
    for name, arguments in (
        ("nas_read", {"uri": "mem_0000000000000000"}),
        ("nas_forget", {"id": "mem_0000000000000000"}),
    ):
        refused = tool(client, auth, name, session=session, **arguments)
        assert refused["isError"] and refused["structuredContent"]["code"] == "memory_invalid"


def test_an_identity_in_the_address_is_refused_on_record(client: TestClient, auth: Header, events: Events) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for query, code in (
        ("tenant_id=umbrella", "memory_forbidden"),
        ("User=zoe", "memory_forbidden"),
        ("x=1", "memory_invalid"),
    ):
        answer = client.post(f"/mcp?{query}", json=message, headers={**auth, **ACCEPT})
        assert answer.json()["code"] == code
    assert [event.operation for event in events("acme")[:2]] == ["claim", "claim"]


def test_no_stream_is_opened_that_would_outlive_its_token(client: TestClient, auth: Header) -> None:
    for method in ("GET", "DELETE", "PUT", "HEAD"):
        answer = client.request(method, "/mcp", headers={**auth, "accept": "text/event-stream"})
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_an_agent_keeps_episodes_taints_its_session_and_sees_what_waits(client: TestClient, auth: Header) -> None:
    said = tool(client, auth, "nas_journal", text="We chose the oak for the quay.", speaker="dana", at="2026-03-01")
    assert said["structuredContent"]["kind"] == "episodic"
    found = tool(client, auth, "nas_recall", query="Which wood did we choose for the quay?")
    assert "dana: We chose the oak" in found["content"][0]["text"]

    assert tool(client, auth, "nas_review_queue")["structuredContent"]["waiting"] == []
    told = tool(client, auth, "nas_session_taint", reason="read a page of the web", session="run-t")
    assert told["structuredContent"]["taint"] == ["external"]
    item = tool(client, auth, "nas_remember", text="The page praises larch.", session="run-t")["structuredContent"]
    queue = tool(client, auth, "nas_review_queue")
    assert [one["id"] for one in queue["structuredContent"]["waiting"]] == [item["id"]]
    assert "larch" not in str(queue)
    unreviewed = tool(client, auth, "nas_review_queue", state=["unreviewed"])["structuredContent"]["waiting"]
    assert said["structuredContent"]["id"] in {one["id"] for one in unreviewed}


def test_no_tool_reviews_holds_or_ends_and_no_queue_is_anothers(
    client: TestClient, auth: Header, tokens: dict[str, Header]
) -> None:
    listed = client.post(
        "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers={**auth, **ACCEPT}
    ).json()["result"]["tools"]
    assert {one["name"] for one in listed} == {
        "nas_remember", "nas_recall", "nas_read", "nas_forget", "nas_journal", "nas_session_taint", "nas_review_queue",
    }  # fmt: skip
    tool(client, auth, "nas_session_taint", reason="read a page of the web", session="run-u")
    item = tool(client, auth, "nas_remember", text="A page of acme's.", session="run-u")["structuredContent"]["id"]
    assert item not in str(tool(client, tokens["cleo of umbrella"], "nas_review_queue"))
    for name, more in (("nas_session_taint", {"reason": ""}), ("nas_journal", {"text": "x", "origin": "nobody"})):
        assert tool(client, auth, name, **more)["isError"]
    secret = tool(client, auth, "nas_journal", text=f"The API key is {PLANTED} and the password is hunter2-Zebra!9")
    assert secret["isError"] and "hunter2" not in str(secret)
