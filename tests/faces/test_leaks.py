"""A planted secret comes out nowhere: every command and every tool, wherever a text goes in, answered or broken.

The commands and their arguments are those of the parsers, so that a new one is tried as soon as it exists.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.faces import local
from memoranda.faces.cli import COMMANDS, find, main
from memoranda.faces.cli.frame import make_parser
from memoranda.faces.mcp.service import Service
from memoranda.faces.mcp.tools import TOOLS
from memoranda.operations.space import Space
from memoranda.trust.secrets import find_secrets

from .conftest import Person

VALUE = "kw7Zq2Lp" + "9XvT4mRs"
TOKEN = "ghp_" + "q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8"
PLANTED = {"prose": f"The password is {VALUE}!", "token": TOKEN}
NEEDLES = tuple(word.encode() for word in (VALUE, VALUE.lower(), TOKEN[4:], TOKEN[4:].lower()))
EVENT = Path(__file__).parent / "data/hooks/session_start.json"


class Place:
    """A Home with a note, and everything that the program may write to, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.home = folder / "home"
        self.planted = folder / "planted"  # what the test itself lays down
        self.planted.mkdir()
        self.note = ""

    def value_for(self, action: argparse.Action) -> str:
        """Something innocent that this argument takes."""
        name = action.dest
        if action.type is int:
            return "3"
        if action.choices:
            return str(next(iter(action.choices)))
        if name in ("id", "ids", "expect", "supersedes"):
            return self.note
        if name in ("file", "folder"):
            return str(self.planted / "fine")
        return "2026-10-02" if name in ("as_of", "known_at", "at", "valid_from", "valid_to") else "fine"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    for name, folder in {"HOME": "user", "XDG_DATA_HOME": "data", "TMPDIR": "tmp"}.items():
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    for name in ("MEMORANDA_HOME", "MEMORANDA_AGENT", "MEMORANDA_SESSION", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    place = Place(tmp_path)
    assert main(["init", str(place.home)]) == 0
    capsys.readouterr()
    assert main(["remember", "The harbour closes at six.", "--home", str(place.home), "--json"]) == 0
    place.note = json.loads(capsys.readouterr().out)["id"]
    return place


def calls(place: Place, name: str, text: str) -> Iterator[tuple[str, list[str]]]:
    """(argument, words) of calls of this command in which one argument after the other holds the text."""
    parser = make_parser(name, find(name))
    actions = [action for action in parser._actions if action.nargs != 0 and action.dest != "home"]
    needed = [action for action in actions if not action.option_strings or action.required]
    for planted in actions:
        words = name.split()
        for action in (*needed, *((planted,) if planted not in needed else ())):
            value = place.value_for(action)
            if action is planted:
                value = str(place.planted / text) if action.dest in ("file", "folder") else text
            words += [action.option_strings[-1], value] if action.option_strings else [value]
        yield planted.dest, [*words, "--home", str(place.home)]


def leaks(said: str) -> bool:
    return any(needle.decode() in said for needle in NEEDLES)


def everything(root: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below, with its name; what Git has packed, unpacked."""
    for file in root.rglob("*"):
        name = file.relative_to(root).as_posix()
        if name.startswith("planted/") or not file.is_file():
            continue
        data = file.read_bytes()
        yield name, name.encode() + b"\0" + data
        if "/objects/" in name and data[:1] == b"x":
            yield name, zlib.decompress(data)
    for git in root.rglob(".git"):
        objects = subprocess.run(
            ["git", "-C", str(git.parent), "cat-file", "--batch-all-objects", "--batch"],
            capture_output=True, check=True,
        )  # fmt: skip
        yield f"{git} objects", objects.stdout


def nowhere(place: Place) -> None:
    for name, data in everything(place.root):
        for needle in NEEDLES:
            assert needle not in data, name


def test_the_planted_texts_are_taken_for_secrets() -> None:
    for text in PLANTED.values():
        assert find_secrets(text)


@pytest.mark.requirement("S-082")
@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("how", ["words", "json", "crash"])
def test_no_command_says_or_keeps_it(
    place: Place,
    kind: str,
    how: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    text = PLANTED[kind]
    monkeypatch.setattr(local, "at_a_terminal", lambda: how == "json")
    if how == "crash":

        def broken(_self: Space) -> Any:
            raise RuntimeError(f"broke at {text}") from KeyError(text)

        for method in ("homes", "writable", "one"):
            monkeypatch.setattr(Space, method, broken)
    tried = 0
    for name in COMMANDS:
        if name == "mcp":
            continue
        for argument, words in calls(place, name, text):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EVENT.read_bytes())))
            code = main([*words, "--json"] if how == "json" else words)
            said = capsys.readouterr()
            assert not leaks(said.out + said.err), f"{name}, {argument}: exit {code}"
            tried += 1
    assert tried > len(COMMANDS)
    assert not leaks(caplog.text)
    nowhere(place)


@pytest.mark.parametrize("kind", PLANTED)
def test_no_text_on_standard_input_is_said_or_kept(
    place: Place, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLANTED[kind]
    sheets: dict[str, dict[str, Any]] = {
        "own": {"text": text}, "speaker": {"text": "Fine.", "speaker": text}, "key": {"text": "Fine.", text: 1},
        "time": {"text": "Fine.", "at": text}, "agent": {"text": "Fine.", "agent": text},
        "session": {"text": "Fine.", "session": text}, "origin": {"text": "Fine.", "origin": text},
        "type": {"type": text}, "claude": {"type": "user", "message": {"content": text}, "sessionId": text},
    }  # fmt: skip
    event = json.loads(EVENT.read_text())
    used = event | {"hook_event_name": "PostToolUse"}
    fetch = {"url": f"https://{TOKEN.replace('_', '-').lower()}.example/?password={VALUE}"}
    command = {"command": f"curl -u dana:{VALUE} https://x.example/{TOKEN}"}
    hook = ["hook", "claude-code"]
    commands: list[tuple[list[str], str]] = [
        (["remember", "-"], text),
        (["update", place.note, "-"], text),
        (["journal", "append", "-"], text),
        *((hook, json.dumps(event | {name: text})) for name in (*event, "tool_name", "tool_input")),
        (hook, text),
        (hook, json.dumps(event | {"hook_event_name": "Stop", "transcript_path": f"/{text}"})),
        (hook, json.dumps(used | {"tool_name": "WebFetch", "tool_input": fetch})),
        (hook, json.dumps(used | {"tool_name": "Bash", "tool_input": command})),
        (hook, json.dumps(used | {"tool_name": f"mcp__{TOKEN}__read", "tool_input": {}})),
    ]
    for name, sheet in sheets.items():
        file = place.planted / f"{name}.jsonl"
        file.write_text(json.dumps(sheet) + "\n")
        commands.append((["journal", "import", str(file)], ""))
    for words, data in commands:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.encode())))
        code = main([*words, "--home", str(place.home)])
        said = capsys.readouterr()
        assert not leaks(said.out + said.err), f"{words}: exit {code}"
    nowhere(place)


@pytest.mark.parametrize("kind", PLANTED)
def test_no_file_is_taken_in_or_named_with_it(place: Place, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = PLANTED[kind]
    vault = place.planted / "vault"
    (vault / text).mkdir(parents=True)
    (vault / f"{text}.md").write_text("Fine.\n")
    (vault / text / "a.md").write_text("Fine.\n")
    (vault / "b.md").write_text(f"# Access\n\n{text}\n")
    named = place.planted / text
    named.mkdir()
    (named / "c.md").write_text("Fine.\n")
    for words in (["import", str(vault)], ["import", str(named)]):
        main([*words, "--home", str(place.home)])
        main([*words, "--home", str(place.home), "--json"])
        said = capsys.readouterr()
        assert not leaks(said.out + said.err)
    nowhere(place)
    # In the Home itself it stays where its author put it, and nowhere else.
    notes = place.home / "memory/notes"
    (notes / f"{text}.md").write_text("Fine.\n")
    (notes / "d.md").write_text(text)
    for words in (["recall", "access harbour"], ["doctor"], ["scan"], ["scan", "--history"], ["list"], ["log"],
                  ["index", "status"], ["context"], ["review", "list"], ["doctor", "--fix"]):  # fmt: skip
        main([*words, "--home", str(place.home)])
        main([*words, "--home", str(place.home), "--json"])
        said = capsys.readouterr()
        assert not leaks(said.out + said.err), words
    (notes / f"{text}.md").unlink()
    (notes / "d.md").unlink()
    nowhere(place)


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("broken", [False, True])
def test_no_tool_says_or_keeps_it(
    place: Place, kind: str, broken: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLANTED[kind]

    def breaks(_self: Space) -> Any:
        raise RuntimeError(text)

    if broken:
        monkeypatch.setattr(Space, "homes", breaks)
        monkeypatch.setattr(Space, "writable", breaks)
    service = Service(str(place.home), None, None)
    innocent = {"text": "Fine.", "query": "harbour", "uri": place.note, "id": place.note}
    for name, tool in TOOLS.items():
        properties = tool.schema()["properties"]
        for planted in (*properties, "unknown"):
            arguments: dict[str, Any] = {key: value for key, value in innocent.items() if key in properties}
            for value in (text, [text], {"x": text}):
                answer = service.call(name, arguments | {planted: value}, text)
                assert not leaks(answer.text + json.dumps(answer.data)), (name, planted)
    answer = service.call(text, {"text": text})
    assert not leaks(answer.text + json.dumps(answer.data))
    service.close()
    said = capsys.readouterr()
    assert not leaks(said.out + said.err)
    nowhere(place)


def test_a_process_of_its_own_says_nothing_either(person: Person) -> None:
    """Standard error of a whole process: threads, the interpreter's own warnings, development mode."""
    home = str(person.home())
    code = (
        "import sys\n"
        "from memoranda.operations.space import Space\n"
        "def broken(self): raise RuntimeError(' '.join(sys.argv))\n"
        "Space.writable = broken\n"
        "from memoranda.faces.cli import main\n"
        "main()\n"
    )
    for words in ([sys.executable, "-X", "dev", "-m", "memoranda"], [sys.executable, "-X", "dev", "-c", code]):
        done = subprocess.run(
            [*words, "remember", PLANTED["prose"], "--subject", TOKEN, "--home", home],
            env=person.env | {"PYTHONASYNCIODEBUG": "1"}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode in (3, 6) and not leaks(done.stdout + done.stderr)


def test_a_server_says_nothing_of_what_it_cannot_understand(person: Person) -> None:
    """Over the protocol itself: what is no request, no known tool or resource, an answer that nobody waits for."""
    prose, place = PLANTED["prose"], ["--home", str(person.home())]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": prose, "version": TOKEN}}
    sent: list[Any] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        prose,
        {"id": 2, "method": "tools/call", "params": {"name": TOKEN, "arguments": prose}},
        {"id": 3, "method": "tools/call", "params": {"name": TOKEN, "arguments": {"text": prose}}},
        {"id": 4, "method": "tools/call", "params": {"name": "nas_remember", "arguments": {"text": prose}}},
        {
            "id": 5,
            "method": "tools/call",
            "params": {"name": "nas_recall", "arguments": {"query": prose, TOKEN: TOKEN}},
        },
        {"id": 6, "method": "resources/read", "params": {"uri": f"nas://{TOKEN}"}},
        {"id": 7, "method": "prompts/get", "params": {"name": TOKEN}},
        {"method": f"notifications/{TOKEN}", "params": {"x": prose}},
        {"id": 8, "result": {"x": prose}},
        {"id": 9, "method": "ping"},
    ]
    lines = [line if isinstance(line, str) else json.dumps({"jsonrpc": "2.0"} | line) for line in sent]
    server = subprocess.Popen(
        [sys.executable, "-X", "dev", "-m", "memoranda", "mcp", *place], env=person.env, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write("".join(f"{line}\n" for line in lines))
    server.stdin.flush()
    said = []
    while not any('"id":9' in line for line in said):
        said.append(server.stdout.readline())
        assert said[-1], "the server ended"
    out, err = server.communicate(timeout=60)
    assert not leaks("".join(said) + out + err)


def committed(place: Place, text: str) -> tuple[str, ...]:
    """A person's own Git brings the secret in: in a note, a name, a journal, a message; all words that lead to it."""
    notes = place.home / "memory/notes"
    (notes / "door.md").write_text(
        f"---\nid: mem_d00r000000000001\nsubject: door\n---\n# Door {text}\n\nAsk for {text}\n"
    )
    (notes / f"{text}.md").write_text("---\nid: mem_d00r000000000002\n---\nFine walnut.\n")
    asked = f"questions:\n  - question: {json.dumps(text)}\n    expect: [{json.dumps(text)}]\n"
    (place.home / "memory/golden.yaml").write_text(asked)
    sheet = place.home / "agents/cleo/journal/2026-10-01.md"
    sheet.parent.mkdir(parents=True)
    sheet.write_text(f"## 2026-10-01T09:00:00Z dana ^j_0123456789abcdef\n\nThe walnut door: {text}\n")
    git = ["git", "-C", str(place.home), "-c", f"user.name={text}", "-c", "user.email=nora@example.org"]
    subprocess.run([*git, "add", "memory", "agents"], check=True)
    subprocess.run([*git, "commit", "-qm", f"By hand: {text}"], check=True)
    told = [*git, "rev-parse", "HEAD", "HEAD:memory/notes/door.md"]
    tip, blob = subprocess.run(told, check=True, capture_output=True, text=True).stdout.split()
    paths = ["memory/notes/door.md", f"memory/notes/{text}.md", "agents/cleo/journal/2026-10-01.md"]
    return (
        "mem_d00r000000000001", "mem_d00r000000000002", "j_0123456789abcdef", "door", "walnut", *paths,
        *(f"nas://home/{path}" for path in paths), *(f"nas://home/{path}@{tip}" for path in paths),
        f"nas://home/{paths[0]}@{blob}#L5-L7", tip, "cleo", place.note,
    )  # fmt: skip


@pytest.mark.requirement("S-082")
@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("how", ["words", "json"])
def test_what_a_person_committed_is_said_by_no_command(
    place: Place, kind: str, how: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    *named, cited = committed(place, PLANTED[kind])
    source = next(word for word in named if word.startswith("nas://") and "@" in word)
    words = ["remember", "The door is of walnut.", "--source", source, "--home", str(place.home), "--json"]
    assert main(words) == 0
    named += [cited, json.loads(capsys.readouterr().out)["id"]]
    monkeypatch.setattr(local, "at_a_terminal", lambda: how == "json")
    for name in COMMANDS:
        if name in ("mcp", "serve"):  # these serve until somebody ends them
            continue
        parser = make_parser(name, find(name))
        takes = [action for action in parser._actions if not action.option_strings and action.nargs != 0]
        for words in [[*name.split(), word] for word in named] if takes else [name.split()]:
            if name == "forget":
                words.append("--dry-run")
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EVENT.read_bytes())))
            code = main([*words, "--home", str(place.home), *(["--json"] if how == "json" else [])])
            said = capsys.readouterr()
            assert not leaks(said.out + said.err), f"{words[:2]}: exit {code}"
            assert "The command broke off" not in said.out + said.err, words[:2]


def test_what_a_person_committed_and_allowed_is_read_as_it_stands(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    committed(place, PLANTED["token"])
    at_home = ["--home", str(place.home), "--json"]
    words = ["read", "agents/cleo/journal/2026-10-01.md", "--lines", "3-3", *at_home]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["text"] == "The walnut door: [github_token]" and (told["first"], told["last"]) == (3, 3)
    assert main(["scan", *at_home]) == 1
    mark = next(spot["hash"] for spot in json.loads(capsys.readouterr().out)["found"] if "journal" in spot["path"])
    monkeypatch.setattr(local, "at_a_terminal", lambda: True)
    assert main(["allow", "add", "text", mark, "--reason", "an example"]) == 0
    capsys.readouterr()
    assert main(words) == 0
    assert TOKEN in json.loads(capsys.readouterr().out)["text"]


@pytest.mark.parametrize("kind", PLANTED)
def test_what_a_person_committed_is_said_by_no_tool(place: Place, kind: str) -> None:
    named = committed(place, PLANTED[kind])
    service = Service(str(place.home), None, None)
    tried = 0
    for name, tool in TOOLS.items():
        properties = tool.schema()["properties"]
        for word in named:
            arguments = {key: word for key in ("uri", "id", "query", "subject") if key in properties}
            answer = service.call(name, arguments | ({"text": "Fine."} if "text" in properties else {}))
            assert not leaks(answer.text + json.dumps(answer.data)), (name, word)
            tried += 1
    assert tried >= len(TOOLS) * len(named)
    service.close()
