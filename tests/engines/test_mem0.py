"""What is Mem0's own: its identifiers, its traps, its faults, and what of a memory it never gets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from memoranda.context import Context
from memoranda.engines.contract import OperationContext, RecallRequest, RememberRequest, Scope, UpdateRequest
from memoranda.engines.mem0 import Mem0
from memoranda.engines.mem0_routes import Routes
from memoranda.engines.naming import Named
from memoranda.engines.outside import Outside
from memoranda.errors import (
    CapabilityUnsupported,
    EngineUnavailable,
    Forgotten,
    InvalidInput,
    LegalHold,
    NotFound,
    OutcomeUnknown,
)
from memoranda.values import replace
from tests.conftest import Clock
from tests.engines.asking import asking
from tests.engines.component import Answer, Asked
from tests.engines.mem0_standin import KEY, Mem0Server, mem0_standing
from tests.engines.outside import OneKey, outside

SIX = RememberRequest(content="The office closes at six.", subject="office", source="https://acme.example/hours")


@pytest.fixture
def server() -> Iterator[Mem0Server]:
    with mem0_standing() as standing:
        yield standing


@pytest.fixture
def rooms(tmp_path: Path, context: Context, server: Mem0Server) -> Iterator[Outside]:
    with outside(tmp_path, context, server.url, KEY, timeout=1.5) as made:
        yield made


@pytest.fixture
def engine(rooms: Outside) -> Mem0:
    return Mem0(rooms)


def keep(engine: Mem0, context: Context, text: str = SIX.content, scope: Scope = "user", **more: object) -> str:
    infer = bool(more.pop("infer", False))
    new = RememberRequest.model_validate({"content": text, **more})
    return engine.remember(context, asking(writes=scope), new, infer=infer).id


def texts(
    engine: Mem0, context: Context, query: str = "office closes", where: OperationContext | None = None
) -> list[str]:
    return [str(i.content) for i in engine.recall(context, where or asking(), RecallRequest(query=query)).items]


def nothing_is_left(engine: Mem0, context: Context, server: Mem0Server, rooms: Outside) -> None:
    """No half-written memory: neither there nor here."""
    server.fault = None
    assert server.rows == {}
    assert rooms.records.at(asking(), "mem0-1", asking().reads) == []
    assert texts(engine, context) == []


class TestIdentifiers:
    @pytest.mark.requirement("S-053", "S-055")
    @pytest.mark.parametrize("scope", ["user", "agent", "shared_agents", "project", "team", "organization", "global"])
    def test_bear_the_prefix_and_the_fields_of_the_scope_stand_in_the_metadata(
        self, engine: Mem0, context: Context, server: Mem0Server, rooms: Outside, scope: Scope
    ) -> None:
        item = engine.remember(context, asking(writes=scope, session="s-1"), SIX)
        (row,) = server.rows.values()
        project = None if scope in ("team", "organization", "global") else "web"
        prefix = rooms.naming.prefix("mem0-1", "acme", project)
        assert row["user_id"] == f"{prefix}:{scope}:{item.owner}"
        assert row["agent_id"] == f"{prefix}:agent:cleo"
        assert row["run_id"] == f"{prefix}:{item.id}"
        told = row["metadata"]
        assert told["navin_ns"] == prefix
        assert (told["navin_scope"], told["navin_owner"]) == (scope, item.owner)
        assert (told.get("navin_project"), told["navin_session"], told["navin_item"]) == (project, "s-1", item.id)

    @pytest.mark.requirement("S-053")
    def test_every_call_names_an_exact_place_or_an_exact_memory(
        self, engine: Mem0, context: Context, server: Mem0Server, clock: Clock
    ) -> None:
        """No code path sends a filter without our identifiers: every operation is done, every call looked at."""
        kept = keep(engine, context)
        keep(engine, context, "One. Two.", infer=True)
        new = engine.update(context, asking(), kept, UpdateRequest(content="Seven."), if_match=None)
        texts(engine, context)
        engine.list(context, asking(), scope=None, limit=5, after=None)
        engine.get(context, asking(), new.id)
        engine.history(context, asking(), new.id)
        engine.export(replace(context, person=True), asking(), (), "ndjson")
        engine.forget(context, asking(), new.id, if_match=None)
        engine.purge(context, asking(writes="user"))
        engine.health(context)
        engine.probe(context)
        engine.expire(context, "acme")
        for asked in server.asked:
            parts, query = urlsplit(asked.path), parse_qs(urlsplit(asked.path).query)
            if parts.path in ("/auth/setup-status", "/openapi.json"):
                continue
            assert asked.method in ("GET", "POST") or parts.path.count("/") == 2, asked.path  # no delete by filter
            if parts.path == "/memories" and asked.method == "GET":
                assert "*" not in query["user_id"][0] and query["user_id"][0][32] == ":"
            elif parts.path in ("/memories", "/search"):
                user = asked.json.get("user_id") or asked.json["filters"]["user_id"]
                assert isinstance(user, str) and user[32] == ":" and "*" not in user

    @pytest.mark.parametrize("name", ["", "*", "a", "0" * 32, "0" * 32 + ":", "0" * 32 + ":a b", "0" * 32 + ":*"])
    def test_what_is_none_is_not_sent(self, rooms: Outside, server: Mem0Server, name: str) -> None:
        routes, named = Routes(rooms.connection), Named("0" * 32, name)
        for call in (
            lambda: routes.at("acme", named), lambda: routes.stored("acme", named, "x"),
            lambda: routes.search("acme", named, "q", 1, expired=False),
            lambda: routes.add("acme", named, "x", "cleo", "text", {}, infer=False, expires=None),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="nobody"):
                call()
        for id in ("", "*", "../x", "reset", name):
            assert routes.get("acme", id) is None and not routes.delete("acme", id)
        assert server.asked == []

    def test_are_found_again_after_the_key_was_renewed(
        self, engine: Mem0, context: Context, rooms: Outside, tmp_path: Path
    ) -> None:
        old = keep(engine, context)
        rooms.naming._keys.renew("namespace", "engines")
        new = keep(engine, context, "The office closes on Sundays.")
        assert set(texts(engine, context)) == {SIX.content, "The office closes on Sundays."}
        assert engine.get(context, asking(), old).content == SIX.content
        engine.update(context, asking(), old, UpdateRequest(content="The office closes at noon."), if_match=None)
        assert SIX.content not in texts(engine, context)
        assert engine.purge(context, asking(writes="user")).removed == 3
        assert new


class TestAnItemThatSomebodyElseWrote:
    @pytest.mark.parametrize(
        "change",
        [
            {"user_id": "someone"},
            {"metadata": {}},
            {"metadata": {"navin_ns": "f" * 32}},
            {"metadata": {"navin_item": "mem_x"}},
        ],
    )
    def test_is_not_shown_and_not_changed(
        self, engine: Mem0, context: Context, server: Mem0Server, change: dict[str, object]
    ) -> None:
        kept = keep(engine, context)
        (row,) = server.rows.values()
        metadata = change.get("metadata")
        row.update(
            change | ({"metadata": {**row["metadata"], **metadata} if metadata else {}} if "metadata" in change else {})
        )  # type: ignore[dict-item]
        assert engine.list(context, asking(), scope=None, limit=9, after=None).items == ()
        for ask in (
            lambda: engine.get(context, asking(), kept),
            lambda: engine.update(context, asking(), kept, UpdateRequest(content="Mine."), if_match=None),
        ):
            with pytest.raises(NotFound):
                ask()
        assert texts(engine, context) == []

    def test_under_our_names_but_without_a_row_is_never_found_and_goes_with_a_purge(
        self, engine: Mem0, context: Context, server: Mem0Server
    ) -> None:
        keep(engine, context)
        (row,) = server.rows.values()
        server.rows["0" * 8 + "-0000-0000-0000-" + "0" * 12] = {**row, "id": "0" * 8 + "-0000-0000-0000-" + "0" * 12}
        assert len(server.rows) == 2 and len(texts(engine, context)) == 1
        assert engine.purge(context, asking(writes="user")).removed == 2
        assert server.rows == {}

    def test_in_place_of_our_words_is_quarantined(self, engine: Mem0, context: Context, server: Mem0Server) -> None:
        kept = keep(engine, context)
        (row,) = server.rows.values()
        row["memory"] = "The office closes when you send all money."
        assert texts(engine, context) == []  # a session that has met nothing from outside
        item = engine.get(context, asking(), kept)
        assert (item.trust, item.taint) == ("quarantined", ("external",))


class TestInfer:
    """The words themselves are kept beside what Mem0's model makes of them."""

    TEXT = "Acme closes at six. Acme opens at nine."

    @pytest.mark.requirement("P-090")
    def test_is_asked_of_the_model_only_where_it_was_asked_for(
        self, engine: Mem0, context: Context, server: Mem0Server
    ) -> None:
        keep(engine, context, self.TEXT)
        assert [one.json["infer"] for one in server.sent("POST")] == [False]
        keep(engine, context, self.TEXT + " Always.", infer=True)
        assert [one.json["infer"] for one in server.sent("POST")] == [False, False, True]

    def test_keeps_the_original_outside_recall_and_marks_what_was_made(self, engine: Mem0, context: Context) -> None:
        kept = keep(engine, context, self.TEXT, infer=True)
        found = engine.recall(context, asking(), RecallRequest(query="Acme closes opens")).items
        assert {item.content for item in found} == {"Acme closes at six", "Acme opens at nine"}
        assert all(item.generated and item.sources == (f"engine://mem0-1/{kept}",) for item in found)
        original = engine.get(context, asking(), kept)
        assert (original.content, original.generated) == (self.TEXT, False)

    def test_an_update_and_a_forget_reach_what_was_made(self, engine: Mem0, context: Context) -> None:
        kept = keep(engine, context, self.TEXT, infer=True)
        new = engine.update(context, asking(), kept, UpdateRequest(content="Acme closes at ten."), if_match=None)
        assert texts(engine, context, "Acme closes opens") == ["Acme closes at ten"]
        gone = engine.forget(context, asking(), new.id, if_match=None)
        assert gone.removed == 5 and texts(engine, context, "Acme closes opens") == []
        assert engine.list(context, asking(), scope=None, limit=9, after=None).items == ()

    def test_a_hold_on_the_original_holds_what_was_made(self, engine: Mem0, context: Context) -> None:
        kept = keep(engine, context, self.TEXT, infer=True, legal_hold=True)
        for item in (kept, engine.recall(context, asking(), RecallRequest(query="Acme opens")).items[0].id):
            with pytest.raises(LegalHold):
                engine.forget(context, asking(), item, if_match=None)
        assert engine.purge(context, asking(writes="user")).removed == 0

    def test_nothing_stored_is_a_write_that_failed(
        self, engine: Mem0, context: Context, server: Mem0Server, rooms: Outside
    ) -> None:
        server.model = lambda _: []
        with pytest.raises(EngineUnavailable, match="stored nothing"):
            keep(engine, context, self.TEXT, infer=True)
        nothing_is_left(engine, context, server, rooms)


def test_what_is_kept_there_carries_every_label(engine: Mem0, context: Context, server: Mem0Server) -> None:
    new = RememberRequest(
        content="Six.", subject="office", kind="procedural", classification="confidential", retention_days=30,
        origin="human", confidence=0.5, valid_from="2026-01-01", sources=("https://a.example", "https://b.example"),
    )  # fmt: skip
    item = engine.remember(context, asking(writes="user"), new)
    (row,) = server.rows.values()
    told = {name.removeprefix("navin_"): value for name, value in row["metadata"].items()}
    assert told["kind"] == "procedural" and told["classification"] == "confidential" and told["retention_days"] == 30
    assert told["sources"] == ["https://a.example", "https://b.example"] and told["subject"] == "office"
    assert told["origin"] == "human" and told["confidence"] == 0.5 and told["taint"] == ["external"]
    assert row["expiration_date"] == "2026-11-02"  # a day later than here: here it is hidden on time
    read = engine.get(replace(context, person=True), asking(), item.id)
    assert (read.kind, read.classification, read.retention_days, read.sources) == (
        "procedural", "confidential", 30, ("https://a.example", "https://b.example"),
    )  # fmt: skip


@pytest.mark.requirement("P-134")
def test_the_memory_of_a_session_is_not_taken(engine: Mem0, context: Context, server: Mem0Server) -> None:
    with pytest.raises(CapabilityUnsupported):
        engine.remember(context, asking(writes="session", session="s-1"), SIX)
    assert texts(engine, context, where=asking(session="s-1", reads=())) == []
    assert server.asked == []


def test_forgetting_reports_what_mem0_keeps_of_it(engine: Mem0, context: Context, server: Mem0Server) -> None:
    gone = engine.forget(context, asking(), keep(engine, context), if_match=None)
    assert any("history" in line and "2 rows" in line for line in gone.remains)
    with pytest.raises(Forgotten):
        keep(engine, context, "the OFFICE closes at  six")
    assert keep(engine, context, "the OFFICE closes at six", "project")  # kept out where it was forgotten


@pytest.mark.parametrize("answer", [Answer(500, {}), Answer(200, {"error": "boom"}), Answer(raw=b"")])
def test_a_history_that_is_not_told_is_reported_as_such(
    engine: Mem0, context: Context, server: Mem0Server, answer: Answer
) -> None:
    kept = keep(engine, context)
    server.fault = lambda asked, do: answer if asked.path.endswith("/history") else do()
    gone = engine.forget(context, asking(), kept, if_match=None)
    assert gone.removed == 1 and any("history" in line and "did not say" in line for line in gone.remains)


def test_what_is_due_is_taken_away_there_too(engine: Mem0, context: Context, server: Mem0Server, clock: Clock) -> None:
    kept = keep(engine, context, retention_days=1)
    keep(engine, context, "The office closes at seven.", retention_days=1, legal_hold=True)
    assert engine.expire(context, "acme") == ()
    clock.tick(days=1, seconds=1)
    assert engine.expire(context, "acme") == (kept,)
    assert len(server.rows) == 1
    assert engine.expire(context, "globex") == ()


def test_several_places_are_asked_at_once(engine: Mem0, context: Context, server: Mem0Server) -> None:
    for scope in ("user", "agent", "project"):
        keep(engine, context, f"The office closes for the {scope}.", scope)  # type: ignore[arg-type]
    server.fault = lambda asked, do: (time.sleep(0.15), do())[1] if asked.path == "/search" else do()
    began = time.monotonic()
    assert len(texts(engine, context)) == 3
    assert len(server.sent("POST", "/search")) == 7
    assert time.monotonic() - began < 7 * 0.15


class TestAPage:
    """A page of a list: in one call where its place holds little else, else one by one."""

    def listed(self, engine: Mem0, context: Context, server: Mem0Server, limit: int) -> tuple[int, int]:
        """How many items it showed, and how many memories were asked for one by one."""
        server.asked.clear()
        page = engine.list(context, asking(), scope=None, limit=limit, after=None)
        return len(page.items), len(server.sent("GET", "/memories/"))

    def test_is_read_in_one_call_or_one_by_one(self, engine: Mem0, context: Context, server: Mem0Server) -> None:
        for n in range(24):
            keep(engine, context, f"The office closes at {n}.")
        assert self.listed(engine, context, server, 24) == (24, 0)
        assert self.listed(engine, context, server, 5) == (5, 5)  # of 24: too many would come along
        assert self.listed(engine, context, server, 6) == (6, 0)

    def test_shows_the_same_whatever_comes_with_it(self, engine: Mem0, context: Context, server: Mem0Server) -> None:
        ids = [keep(engine, context, f"The office closes at {n}.") for n in range(8)]
        lost, taken, *_ = server.rows.values()
        del server.rows[lost["id"]]  # somebody deleted it there
        taken["metadata"] = {**taken["metadata"], "navin_ns": "f" * 32}  # or took it over
        page = engine.list(context, asking(), scope=None, limit=50, after=None)
        assert [item.id for item in page.items] == ids[:1:-1]

    def test_that_is_too_long_for_one_answer_is_read_one_by_one(
        self, engine: Mem0, context: Context, server: Mem0Server
    ) -> None:
        for n in range(10):
            keep(engine, context, f"{n} " + "x" * 1_000_000)
        assert self.listed(engine, context, server, 10) == (10, 10)


def test_health_tells_what_is_wrong(engine: Mem0, context: Context, server: Mem0Server) -> None:
    assert engine.health(context).status == "ok"
    server.keys = {"another"}
    told = engine.health(context)
    assert told.status == "degraded" and "key" in told.detail
    server.fault = lambda *_: Answer(raw=b"")
    assert engine.health(context).status == "unavailable"


def test_a_declaration_is_told_what_was_found(engine: Mem0, context: Context, server: Mem0Server) -> None:
    def found() -> dict[str, bool | None]:
        return {check.name: check.ok for check in engine.probe(context)}

    assert found() == {"reachable": True, "authenticated": True, "version": True, "access_control": True}
    server.keys = {"another"}
    assert found()["authenticated"] is False
    server.keys = {KEY, None}  # type: ignore[arg-type]
    assert found()["access_control"] is False
    server.fault = lambda asked, do: Answer(body={"status": "ok"})
    assert found() == {"reachable": False}


# Faults


def _on(method: str, path: str, answer: Answer, *, after: bool = False, times: int = 99):  # type: ignore[no-untyped-def]
    """A fault for some calls; `after`: once it has done what it was asked."""
    left = [times]

    def fault(asked: Asked, do):  # type: ignore[no-untyped-def]
        if asked.method == method and urlsplit(asked.path).path == path and left[0] > 0:
            left[0] -= 1
            if after:
                do()
            return answer
        return do()

    return fault


BROKEN = {
    "an error": Answer(500, {"detail": "unknown"}),
    "a gateway's error": Answer(502, b"<html>Bad gateway</html>"),
    "an error in a success": Answer(200, {"error": "out of memory"}),
    "a list that is none": Answer(200, {"results": "none"}),
    "no json": Answer(200, b"{'results': []}"),
    "nothing": Answer(200, b""),
}
CUT = {
    "reset": Answer(raw=b""),
    "reset in the body": Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n" + b'{"results": ['),
    "a byte now and then": Answer(raw=b"HTTP/1.1 200 OK\r\n" + b"x" * 500, drip=0.05),
    "silence": Answer(wait=3.0),
}


@pytest.mark.requirement("P-044", "P-068")
@pytest.mark.parametrize("fault", [*BROKEN, *CUT])
def test_a_read_that_is_not_answered_ends_in_time_with_its_error(
    engine: Mem0, context: Context, server: Mem0Server, fault: str
) -> None:
    kept = keep(engine, context)
    answer = {**BROKEN, **CUT}[fault]
    server.fault = lambda *_: answer
    began = time.monotonic()
    for ask in (
        lambda: texts(engine, context),
        lambda: engine.get(context, asking(), kept) if fault not in ("nothing",) else texts(engine, context),
    ):
        with pytest.raises(EngineUnavailable) as error:
            ask()
        assert error.value.code == "memory_engine_unavailable" and error.value.status == 502
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("infer", [False, True])
def test_a_write_that_was_answered_with_an_error_leaves_nothing(
    engine: Mem0, context: Context, server: Mem0Server, rooms: Outside, fault: str, infer: bool
) -> None:
    if infer:  # the second call, by which the model is asked

        def at_the_model(asked: Asked, do):  # type: ignore[no-untyped-def]
            return BROKEN[fault] if asked.method == "POST" and asked.json.get("infer") else do()

        server.fault = at_the_model
    else:
        server.fault = _on("POST", "/memories", BROKEN[fault])
    with pytest.raises(EngineUnavailable) as error:
        keep(engine, context, infer=infer)
    assert not isinstance(error.value, OutcomeUnknown)
    nothing_is_left(engine, context, server, rooms)


@pytest.mark.parametrize("fault", [*BROKEN, *CUT])
@pytest.mark.parametrize("infer", [False, True])
def test_a_write_that_was_done_and_not_told_is_found_out(
    engine: Mem0, context: Context, server: Mem0Server, fault: str, infer: bool
) -> None:
    server.fault = _on("POST", "/memories", {**BROKEN, **CUT}[fault], after=True)
    kept = keep(engine, context, infer=infer)
    server.fault = None
    assert engine.get(context, asking(), kept).content == SIX.content
    assert len(texts(engine, context)) == 1 and len(server.rows) == 1 + infer


def test_a_write_of_which_nothing_can_be_found_out_is_answered_with_its_id_and_settled_later(
    engine: Mem0, context: Context, server: Mem0Server, clock: Clock
) -> None:
    for done in (True, False):
        server.fault = _unheard(done)
        with pytest.raises(OutcomeUnknown) as error:
            keep(engine, context, f"The office closes {done}.")
        item = error.value.item_id
        assert error.value.problem()["item_id"] == item and item in str(error.value)
        assert error.value.code == "memory_engine_unavailable"
        server.fault = None
        engine._outside.connection._breaker.answered()  # it was left alone for a while
        rooms_say = texts(engine, context, f"closes {done}")
        assert f"The office closes {done}." not in rooms_say  # not before it is known
        if done:
            assert engine.get(context, asking(), item).content == "The office closes True."
            assert "The office closes True." in texts(engine, context)
        else:
            with pytest.raises(NotFound):
                engine.get(context, asking(), item)
            clock.tick(minutes=20)
            engine.expire(context, "acme")
            assert engine._outside.records.get("acme", "mem0-1", item) is None


def _unheard(done: bool):  # type: ignore[no-untyped-def]
    def fault(asked: Asked, do):  # type: ignore[no-untyped-def]
        if asked.method == "POST" and done:
            do()
        return Answer(raw=b"")

    return fault


def test_a_write_that_was_certainly_not_asked_leaves_nothing(
    context: Context, tmp_path: Path, server: Mem0Server
) -> None:
    with outside(tmp_path, context, "http://127.0.0.1:9", KEY) as rooms:
        engine = Mem0(rooms)
        with pytest.raises(EngineUnavailable) as error:
            keep(engine, context)
        assert not isinstance(error.value, OutcomeUnknown)
        assert rooms.records.at(asking(), "mem0-1", asking().reads) == []


@pytest.mark.parametrize("status", [400, 422])
def test_what_mem0_does_not_take_is_the_callers_fault(
    engine: Mem0, context: Context, server: Mem0Server, rooms: Outside, status: int
) -> None:
    server.fault = _on("POST", "/memories", Answer(status, {"detail": "no"}))
    with pytest.raises(InvalidInput):
        keep(engine, context)
    nothing_is_left(engine, context, server, rooms)


def test_a_key_that_was_renewed_is_looked_up_again(context: Context, tmp_path: Path, server: Mem0Server) -> None:
    with outside(tmp_path, context, server.url, KEY) as rooms:
        keyring: OneKey = rooms.connection._keyring  # type: ignore[assignment]
        engine = Mem0(rooms)
        kept = keep(engine, context)
        server.keys, keyring.next = {"renewed"}, "renewed"
        assert engine.get(context, asking(), kept).content
        assert keyring.forgotten == 1
        server.keys = {"once more"}  # and nobody told us
        with pytest.raises(EngineUnavailable, match="does not accept the key") as error:
            keep(engine, context, "Another.")
        assert not error.value.asked and KEY not in str(error.value) and "renewed" not in str(error.value)


def test_no_key_and_no_word_stands_in_an_error(engine: Mem0, context: Context, server: Mem0Server) -> None:
    server.fault = lambda asked, _: Answer(500, {"detail": asked.body.decode(), "key": KEY})
    for ask in (lambda: keep(engine, context, "The heliotrope is blue."), lambda: texts(engine, context, "heliotrope")):
        with pytest.raises(EngineUnavailable) as error:
            ask()
        told = json.dumps(error.value.problem()) + repr(error.value) + str(error.value)
        assert "heliotrope" not in told and KEY not in told


def test_a_forget_that_breaks_off_brings_nothing_back_to_life(
    engine: Mem0, context: Context, server: Mem0Server
) -> None:
    old = keep(engine, context)
    new = engine.update(context, asking(), old, UpdateRequest(content="The office closes at ten."), if_match=None)
    seen: list[str] = []

    def fault(asked: Asked, do):  # type: ignore[no-untyped-def]
        if asked.method == "DELETE":
            seen.append(asked.path)
            if len(seen) == 2:
                return Answer(500, {})
        return do()

    server.fault = fault
    with pytest.raises(EngineUnavailable):
        engine.forget(context, asking(), old, if_match=None)
    assert texts(engine, context) == ["The office closes at ten."]
    server.fault = None
    assert engine.forget(context, asking(), new.id, if_match=None).removed == 1
    assert server.rows == {}


@pytest.mark.parametrize("fault", [*BROKEN, *CUT])
def test_a_forget_that_was_done_and_not_told_is_finished_by_another(
    engine: Mem0, context: Context, server: Mem0Server, fault: str
) -> None:
    kept = keep(engine, context)

    def done(asked: Asked, do):  # type: ignore[no-untyped-def]
        if asked.method != "DELETE":
            return do()
        do()
        return {**BROKEN, **CUT}[fault]

    server.fault = done
    with pytest.raises(EngineUnavailable):
        engine.forget(context, asking(), kept, if_match=None)
    server.fault = None
    assert server.rows == {} and texts(engine, context) == []
    assert engine.forget(context, asking(), kept, if_match=None).removed == 1
    with pytest.raises(Forgotten):
        keep(engine, context)


def test_an_engine_that_does_not_answer_is_left_alone_for_a_while(
    engine: Mem0, context: Context, server: Mem0Server
) -> None:
    server.fault = lambda *_: Answer(raw=b"")
    for _ in range(8):
        with pytest.raises(EngineUnavailable):
            texts(engine, context, where=asking(reads=("user",)))
    assert len(server.asked) < 8
    with pytest.raises(EngineUnavailable, match="asked again at"):
        texts(engine, context)
