"""`hook claude-code`, tried with recorded events: what it loads, writes down, taints, and that it blocks nothing.

The events and the transcript are those of Claude Code 2.1 in shape; `tests/faces/data/hooks` holds them.
"""

from __future__ import annotations

import json
import os
import pwd
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import Person
from tests.faces.terminal import typed
from tests.faces.test_mcp import connected

DATA = Path(__file__).parent / "data/hooks"
SESSION = "3f2a6c1e-8b0d-4c7e-9a51-0d2f4e6b8a10"
OTHER = "aaaaaaaa-8b0d-4c7e-9a51-0d2f4e6b8a11"


class Harness:
    """Runs the hook as Claude Code does: the event on standard input, the project in the environment."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.home = person.home()
        self.projects = person.folder / "user/.claude/projects"
        self.transcript = self.projects / "-home-nora-lumen" / f"{SESSION}.jsonl"
        self.transcript.parent.mkdir(parents=True)
        self.env = {"CLAUDE_PROJECT_DIR": str(person.work), "MEMORANDA_HOME": str(self.home)}

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        text = (DATA / f"{name}.json").read_text().replace("/TRANSCRIPTS", str(self.projects))
        event: dict[str, Any] = json.loads(text)
        return event | more

    def run(
        self, name: str, *words: str, env: dict[str, str] | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        return self.raw(json.dumps(self.event(name, **more)), *words, env=env)

    def raw(
        self, data: str | bytes, *words: str, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = self.person.run("hook", "claude-code", *words, input=data, env=self.env | (env or {}))
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 1), "2 would block the agent"
        assert bool(done.stderr) == (done.returncode == 1), "an error is never silent, and nothing else is noise"
        return done

    def quiet(self, name: str, **more: Any) -> None:
        """An event that must succeed and have nothing to say."""
        done = self.run(name, **more)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def says(self, name: str, **more: Any) -> dict[str, Any]:
        done = self.run(name, **more)
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    def story(self, session: str = SESSION) -> dict[str, Any]:
        story: dict[str, Any] = self.person.json("session", "show", session, "--home", str(self.home))
        return story

    def state(self, agent: str = "claude-code", **env: str) -> str:
        """The state of a note that a call without a session writes now, as one over MCP would."""
        note = self.person.json("remember", "A note.", "--agent", agent, "--home", str(self.home), env=env)
        return str(self.person.json("review", "show", note["id"], "--home", str(self.home))["state"])

    def journal(self) -> str:
        pages = sorted((self.home / "agents/claude-code/journal").glob("*.md"))
        return "".join(page.read_text() for page in pages)


@pytest.fixture
def harness(person: Person) -> Iterator[Harness]:
    yield Harness(person)


# What it loads


def test_reviewed_notes_are_loaded_when_a_session_starts_and_after_a_compaction(harness: Harness) -> None:
    person, home = harness.person, str(harness.home)
    read = person.json("remember", "The harbour closes at six.", "--home", home)
    person.json("remember", "Nobody has read this.", "--home", home)
    assert "hookSpecificOutput" not in harness.run("session_start").stdout
    assert typed(person, "review", "accept", read["id"], "--home", home)[0] == 0
    for name in ("session_start", "session_resume", "session_compact"):
        said = harness.says(name)["hookSpecificOutput"]
        assert said["hookEventName"] == "SessionStart"
        assert "harbour closes at six" in said["additionalContext"] and read["id"] in said["additionalContext"]
        assert "Nobody has read" not in said["additionalContext"]
    small = harness.run("session_start", "--budget", "20")
    assert "no room" in json.loads(small.stdout)["systemMessage"]


def test_the_agents_shell_is_told_whose_session_it_is_in(harness: Harness) -> None:
    told = harness.person.folder / "env.sh"
    harness.run("session_start", env={"CLAUDE_ENV_FILE": str(told)})
    assert told.read_text().splitlines() == [
        f"export MEMORANDA_SESSION={SESSION}",
        "export MEMORANDA_AGENT=claude-code",
    ]
    harness.quiet("web_fetch")
    said = harness.person.json(
        "remember", "From the shell.", "--home", str(harness.home),
        env={"MEMORANDA_SESSION": SESSION, "MEMORANDA_AGENT": "claude-code"},
    )  # fmt: skip
    assert said["session"] == SESSION
    shown = harness.person.json("review", "show", said["id"], "--home", str(harness.home))
    assert shown["state"] == "quarantined"


# What it writes down


@pytest.mark.parametrize("name", ["stop", "pre_compact", "session_end", "subagent_stop", "user_prompt"])
def test_the_turns_are_written_once(harness: Harness, name: str) -> None:
    harness.quiet("session_start")
    text = (DATA / "transcript.jsonl").read_text()
    half = text.index('{"parentUuid": "b7e20f11-0000-4000-8000-000000000002"')
    harness.transcript.write_text(text[: half + 40])  # the harness is still writing the last line
    harness.quiet(name)
    assert "files with a BOM?" in harness.journal() and "utf-8-sig" not in harness.journal()
    harness.transcript.write_text(text)
    harness.quiet("stop")
    harness.quiet("session_end")
    journal = harness.journal()
    assert journal.count("skip files with a BOM?") == 1 and journal.count("Open it with utf-8-sig") == 1
    assert journal.count("\n## ") + journal.startswith("## ") == 3
    assert "def read(path)" not in journal, "what a tool brought in is no conversation"
    state = next((harness.person.folder / "data/memoranda/hooks").rglob("*.json"))
    state.unlink()  # the place where the reading ended: losing it writes nothing twice
    harness.quiet("stop")
    assert harness.journal() == journal


def test_entries_stand_in_the_session_of_the_event_and_under_its_agent(harness: Harness) -> None:
    harness.quiet("session_start")
    harness.transcript.write_text((DATA / "transcript.jsonl").read_text().replace(SESSION, OTHER))
    harness.quiet("stop")
    found = harness.person.json("recall", "BOM", "--in", "journal", "--home", str(harness.home))["items"]
    assert found and all("agents/claude-code/journal" in item["uri"] for item in found)
    trace = harness.person.json("trace", SESSION, "--home", str(harness.home))
    assert "entry" in json.dumps(trace)


def test_a_turn_with_a_secret_is_left_out_and_the_person_is_told(harness: Harness) -> None:
    value = "kw7Zq2Lp" + "9XvT4mRs"
    harness.quiet("session_start")
    text = (DATA / "transcript.jsonl").read_text()
    harness.transcript.write_text(
        text.replace("Why does the import job skip files with a BOM?", f"The password is {value}!")
    )
    said = harness.says("stop")["systemMessage"]
    assert "1 turn was not written" in said and "password" in said and value not in said
    assert "Open it with utf-8-sig" in harness.journal() and value not in harness.journal()
    for file in harness.person.folder.rglob("*"):
        assert file == harness.transcript or not file.is_file() or value.encode() not in file.read_bytes(), file
    # A person who says that it is none brings the turn in afterwards.
    mark = said.split("memoranda allow add text ")[1].split()[0]
    assert typed(harness.person, "allow", "add", "text", mark, "--reason", "an example")[0] == 0
    harness.person.json("journal", "import", str(harness.transcript), "--home", str(harness.home))
    pages = (harness.home / "agents").rglob("*.md")
    assert any(value in page.read_text() for page in pages)


# What it taints


def test_outside_content_taints_the_session_and_what_is_written_without_one(harness: Harness) -> None:
    harness.quiet("session_start")
    assert harness.state() == "unreviewed"
    harness.quiet("web_fetch")
    story = harness.story()
    assert story["tainted"] and story["events"][-1]["what"] == "tool"
    assert harness.state() == "quarantined"
    opened = story["events"][0]
    note = harness.person.json("remember", "Once more.", "--agent", "claude-code", "--home", str(harness.home))
    assert opened["event"] == "open" and opened["reason"].endswith(note["session"]), "where to look for such notes"
    harness.transcript.write_text((DATA / "transcript.jsonl").read_text())
    harness.quiet("stop")
    reader = {"MEMORANDA_AGENT": "reader"}  # the other one was shown a quarantined note above
    found = harness.person.json("recall", "BOM", "--in", "journal", "--home", str(harness.home), env=reader)
    assert not found["items"] and found["coverage"]["withheld"], "the turns are of a session that met something"
    harness.quiet("session_end")
    harness.quiet("session_start", session_id=OTHER)
    assert harness.state() == "unreviewed", "the next session starts clean"


def test_every_kind_of_outside_content_taints_and_is_named(harness: Harness) -> None:
    sources = {
        "web_search": "WebSearch", "mail": "mcp__mail__read_message", "bash_curl": "Bash pastes.example",
        "bash_curl_failed": "Bash pastes.example",
    }  # fmt: skip
    for number, (name, source) in enumerate(sources.items()):
        session = f"{OTHER[:-1]}{number}"
        harness.quiet("session_start", session_id=session)
        harness.quiet(name, session_id=session)
        story = harness.story(session)
        assert story["tainted"] and story["events"][-1]["source"] == source


def test_what_stays_on_this_machine_taints_nothing(harness: Harness) -> None:
    harness.quiet("session_start")
    harness.transcript.write_text((DATA / "transcript.jsonl").read_text())
    for name in ("read", "bash_ls", "own_recall", "user_prompt", "stop"):
        harness.quiet(name)
    assert not harness.story()["tainted"] and harness.state() == "unreviewed"


def test_what_the_person_trusts_taints_nothing_and_only_a_person_trusts(harness: Harness) -> None:
    person = harness.person
    for words in (("server", "mail"), ("domain", "blog.example"), ("tool", "WebSearch")):
        refused = person.refused("allow", "add", *words, "--reason", "ours", code=3)
        assert refused["code"] == "memory_confirmation_required"
    harness.quiet("session_start")
    for words in (("server", "mail"), ("domain", "blog.example"), ("tool", "WebSearch")):
        assert typed(person, "allow", "add", *words, "--reason", "ours")[0] == 0
    for name in ("mail", "web_fetch", "web_search"):
        harness.quiet(name)
    assert not harness.story()["tainted"]
    listed = person.json("allow", "list")["allowed"]
    assert [(item["kind"], item["value"], item["reason"]) for item in listed] == [
        ("server", "mail", "ours"), ("domain", "blog.example", "ours"), ("tool", "WebSearch", "ours"),
    ]  # fmt: skip
    # A line that this installation did not write trusts nobody, nor does one that was copied to another name.
    settings = person.folder / "data/memoranda/settings/person.jsonl"
    settings.write_text(settings.read_text().replace('"mail"', '"bank"') + '{"kind": "server"}\nnonsense\n')
    assert [item["value"] for item in person.json("allow", "list")["allowed"]] == ["blog.example", "WebSearch"]
    harness.quiet("mail")
    assert harness.story()["tainted"]
    assert typed(person, "allow", "revoke", "domain", "blog.example")[0] == 0
    assert person.refused("allow", "revoke", "domain", "blog.example", code=4)


def test_a_tool_that_no_event_told_of_is_found_in_the_transcript(harness: Harness) -> None:
    """The hook was set up in the middle of a session, or its harness did not call it."""
    harness.transcript.write_text((DATA / "transcript.jsonl").read_text())
    harness.quiet("stop")
    assert not harness.story()["tainted"]
    with harness.transcript.open("a") as file:
        file.write((DATA / "transcript_fetched.jsonl").read_text())
    harness.quiet("user_prompt")
    assert harness.story()["tainted"] and harness.state() == "quarantined"


def test_the_ambient_taint_and_that_of_the_session_are_one(harness: Harness) -> None:
    """A call over MCP reads a quarantined note: the turns that follow are tainted as well."""
    person, home = harness.person, str(harness.home)
    person.json("session", "taint", "--reason", "mail", "--agent", "eve", "--home", home)
    note = person.json("remember", "Pay Eve.", "--agent", "eve", "--home", home)
    harness.quiet("session_start")
    person.json("read", note["id"], "--home", home, env={"MEMORANDA_AGENT": "claude-code"})
    harness.quiet("user_prompt")
    assert harness.story()["tainted"]


@pytest.mark.requirement("A-051")
def test_the_taint_is_in_the_home_and_every_program_that_opens_it_gets_it(harness: Harness) -> None:
    """A server that was open before the hook ran, a command after it, and a Python program."""
    person, home = harness.person, str(harness.home)
    for name in ("USER", "LOGNAME"):  # a host starts a server without them
        person.env[name] = pwd.getpwuid(os.getuid()).pw_name
    harness.quiet("session_start")
    states: dict[str, str] = {}

    def state_of(what: str, note_id: str) -> None:
        states[what] = person.json("review", "show", note_id, "--home", home)["state"]

    async def talk(client: Any) -> None:
        before = await client.call_tool("nas_remember", {"text": "Before the page was read."})
        state_of("before", before.structured_content["id"])
        harness.quiet("web_fetch")
        after = await client.call_tool("nas_remember", {"text": "After the page was read."})
        state_of("mcp", after.structured_content["id"])
        found = await client.call_tool("nas_recall", {"query": "page read"})
        said = {item["id"]: item for item in found.structured_content["items"]}
        assert said[after.structured_content["id"]]["taint"] == ["external"]

    connected(person, talk, "--home", home, "--agent", "claude-code")
    states["command"] = harness.state()
    program = (
        "import sys; from memoranda import Home\n"
        "with Home.open(sys.argv[1]) as home, home.session(agent='claude-code') as session:\n"
        "    print(session.remember('From a program.').id)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, home], env=person.env, capture_output=True, text=True, check=True
    )
    state_of("python", ran.stdout.strip())
    assert states == {"before": "unreviewed"} | dict.fromkeys(("mcp", "command", "python"), "quarantined")


def test_hooks_that_run_at_once_write_each_turn_once(harness: Harness) -> None:
    harness.quiet("session_start")
    harness.transcript.write_text((DATA / "transcript.jsonl").read_text())
    command = [sys.executable, "-m", "memoranda", "hook", "claude-code"]
    running = [
        subprocess.Popen(command, env=harness.person.env | harness.env, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for process, name in zip(running, ("stop", "subagent_stop", "pre_compact", "user_prompt"), strict=True):
        assert process.stdin is not None
        process.stdin.write(json.dumps(harness.event(name)).encode())
        process.stdin.close()
    for process in running:
        assert process.wait(60) == 0, process.stderr
        assert process.stderr is not None
        process.stderr.close()
    assert harness.journal().count("skip files with a BOM?") == 1
    assert harness.journal().count("Open it with utf-8-sig") == 1


def test_a_session_that_is_resumed_brings_its_taint_along(harness: Harness) -> None:
    harness.quiet("session_start")
    harness.quiet("web_fetch")
    harness.quiet("session_end")
    assert harness.state() == "unreviewed"
    harness.quiet("session_resume")
    assert harness.state() == "quarantined"


def test_another_open_session_keeps_the_ambient_one_tainted(harness: Harness) -> None:
    harness.quiet("session_start")
    harness.quiet("web_fetch")
    harness.quiet("session_start", session_id=OTHER)
    assert harness.state() == "quarantined", "nobody knows in which of the two it was written"
    assert not harness.story(OTHER)["tainted"]
    assert typed(harness.person, "session", "fresh", "--agent", "claude-code", "--home", str(harness.home))[0] == 0
    assert harness.state() == "unreviewed"
    harness.quiet("user_prompt")  # the tainted session goes on
    assert harness.state() == "quarantined"


# What an agent makes up


def test_an_event_from_the_agents_own_shell_opens_nothing_clean_and_closes_nothing(harness: Harness) -> None:
    harness.quiet("session_start")
    harness.quiet("web_fetch")
    for env in ({"CLAUDECODE": "1"}, {"CLAUDE_PROJECT_DIR": ""}):
        assert "does not start clean" in harness.run("session_start", session_id=OTHER, env=env).stdout
        harness.run("session_end", env=env)
        assert harness.state() == "quarantined"
        assert harness.state(MEMORANDA_SESSION=OTHER) == "quarantined"


def test_a_forged_session_id_is_refused(harness: Harness) -> None:
    for session in ("", "ses_0123456789abcdef", "../../etc", "x" * 4000, f"{SESSION}\n", f"{SESSION[:-1]}\x00"):
        done = harness.run("session_start", session_id=session)
        assert done.returncode == 1 and "cannot be understood" in done.stderr and not done.stdout


def test_a_transcript_elsewhere_is_not_read(harness: Harness, tmp_path: Path) -> None:
    outside = tmp_path / "talk.jsonl"
    outside.write_text((DATA / "transcript.jsonl").read_text())
    link = harness.transcript.with_name("link.jsonl")
    link.symlink_to(outside)
    folder = harness.projects / "linked"
    folder.symlink_to(tmp_path)
    pipe = harness.transcript.with_name("pipe.jsonl")
    os.mkfifo(pipe)
    climbing = harness.transcript.parent / "../../../../talk.jsonl"
    named = harness.transcript.with_suffix(".txt")
    named.write_text(outside.read_text())
    paths = [outside, link, folder / "talk.jsonl", pipe, climbing, named, tmp_path, Path("talk.jsonl"),
             Path("/dev/stdin"), Path("/etc/passwd"), tmp_path / "none.jsonl"]  # fmt: skip
    for path in paths:
        started = time.monotonic()
        done = harness.run("stop", transcript_path=str(path))
        assert done.returncode == 1 and "transcript" in done.stderr, path
        assert time.monotonic() - started < 20, "it waited for somebody to write"
    assert harness.journal() == ""


def test_the_conversation_of_another_folder_stays_out_of_this_home(harness: Harness) -> None:
    env = {"MEMORANDA_HOME": "", "CLAUDE_PROJECT_DIR": str(harness.home)}
    harness.transcript.write_text((DATA / "transcript.jsonl").read_text())
    done = harness.run("stop", env=env)
    assert "belongs to another folder" in done.stdout and harness.journal() == ""
    own = harness.projects / "".join(c if c.isalnum() else "-" for c in str(harness.home)) / f"{SESSION}.jsonl"
    own.parent.mkdir()
    own.write_text(harness.transcript.read_text())
    done = harness.run("stop", env=env, transcript_path=str(own))
    assert done.stdout == "" and "BOM" in harness.journal()
    # The folder that the event names chooses no Home: the agent may have gone into somebody else's.
    other = harness.person.home("theirs")
    harness.run("bash_curl", env=env, cwd=str(other))
    assert harness.story()["tainted"]


def test_what_is_no_event_is_told_and_blocks_nothing(harness: Harness) -> None:
    deep = b"[" * 100_000
    for data in (b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", deep, b'{"hook_event_name": 3}', b"{}" * 9):
        done = harness.raw(data)
        assert done.returncode == 1 and "cannot be understood" in done.stderr


def test_a_huge_event_taints_and_ends(harness: Harness) -> None:
    harness.quiet("session_start")
    event = harness.event("mail", tool_response="x" * (33 << 20))
    assert harness.raw(json.dumps(event)).returncode == 0
    assert harness.story()["tainted"]
    huge = harness.event("user_prompt", prompt='", "session_id": "' + OTHER + "x" * (33 << 20))
    assert harness.raw(json.dumps(huge)).returncode == 0


@pytest.mark.parametrize(
    "answer", ["[" * 50_000 + "]" * 50_000, "1" * 5000, "{" * 9], ids=["brackets", "a long number", "torn"]
)
def test_an_answer_that_no_parser_takes_hides_no_tool(harness: Harness, answer: str) -> None:
    harness.quiet("session_start")
    event = json.dumps(harness.event("mail", tool_response=0))
    head, _, _ = event.rpartition('"tool_response": 0')
    assert harness.raw(f'{head}"tool_response": {answer}}}').returncode == 0
    assert harness.story()["tainted"]


@pytest.mark.parametrize("path", ["/tmp/a\0b.jsonl", "/tmp/\ud800.jsonl"])
def test_the_name_of_no_file_is_no_transcript(harness: Harness, path: str) -> None:
    done = harness.raw(json.dumps(harness.event("stop", transcript_path=path)))
    assert done.returncode == 1 and "is not read" in done.stderr and "defect" not in done.stderr


def test_a_transcript_with_nonsense_is_taken_as_far_as_it_goes(harness: Harness) -> None:
    harness.quiet("session_start")
    text = (DATA / "transcript.jsonl").read_text()
    long = json.dumps({"type": "user", "message": {"content": "y" * (17 << 20)}})
    harness.transcript.write_bytes(b"\xff\x00\n{not json\n" + long.encode() + b"\n\n" + text.encode() + b"[1]\n")
    said = harness.says("stop")
    assert "could not be read" in said["systemMessage"]
    assert "Open it with utf-8-sig" in harness.journal() and "yyyy" not in harness.journal()


def test_wrong_words_block_nothing_either(harness: Harness) -> None:
    for words in (("--nonsense",), ("--budget", "x"), ("--home", "/nowhere")):
        done = harness.run("session_start", *words, env={"MEMORANDA_HOME": ""})
        assert done.returncode == 1 and done.stderr
    assert harness.person.run("hook").returncode == 1
    assert harness.person.run("hook", "cursor").returncode == 1


def test_an_unknown_event_and_a_place_without_a_home_are_no_errors(harness: Harness) -> None:
    harness.quiet("stop", hook_event_name="EventOfTomorrow")
    nowhere = {"MEMORANDA_HOME": "", "CLAUDE_PROJECT_DIR": str(harness.person.work)}
    assert "no Home" in harness.run("session_start", env=nowhere).stdout
    assert harness.run("web_fetch", env=nowhere).stdout == ""
    assert not (harness.person.folder / "data/memoranda/home").exists()


def test_the_configuration_is_one_that_the_harness_reads(harness: Harness) -> None:
    home = str(harness.home)
    config = harness.person.json("hook", "claude-code", "--print-config", "--home", home)
    assert set(config["hooks"]) >= {"SessionStart", "PostToolUse", "PreCompact", "Stop", "SessionEnd"}
    for name, groups in config["hooks"].items():
        (hook,) = groups[0]["hooks"]
        assert hook["type"] == "command" and hook["timeout"] > 0 and hook["command"].endswith(f"--home {home}")
        assert ("matcher" in groups[0]) == name.startswith("PostToolUse")


def test_a_hook_that_starts_python_takes_no_code_from_the_project(harness: Harness, tmp_path: Path) -> None:
    """Hooks run in the folder of the project, and a cloned project may hold a package of our name."""
    config = harness.person.json("hook", "claude-code", "--print-config", env={"PATH": str(tmp_path / "nothing")})
    (hook,) = config["hooks"]["SessionStart"][0]["hooks"]
    project = tmp_path / "cloned"
    (project / "memoranda").mkdir(parents=True)
    (project / "memoranda" / "__init__.py").write_text("raise SystemExit('taken from the project')\n")
    event = (DATA / "session_start.json").read_bytes()
    words = shlex.split(hook["command"])
    done = subprocess.run(words, cwd=project, env=harness.person.env, input=event, capture_output=True)
    assert b"taken from the project" not in done.stderr
    assert words[1] == "-P" and done.returncode == 0, done.stderr


def test_a_tool_that_stays_here_costs_little(person: Person) -> None:
    """No Home is opened, nothing of operations but the event is imported."""
    code = (
        "import io, json, sys\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO(open(sys.argv[1], 'rb').read()))\n"
        "from memoranda.faces.cli import main\n"
        "assert main(['hook', 'claude-code']) == 0\n"
        "print(json.dumps([m for m in sys.modules if m.startswith(('memoranda.operations', 'memoranda.home.repo',"
        " 'sqlite3', 'memoranda.index'))]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(DATA / "read.json")], env=person.env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["memoranda.operations", "memoranda.operations.hook_events"]


def test_a_page_that_a_hook_told_of_can_be_traced_and_rolled_back(harness: Harness) -> None:
    """To the notes that were remembered over MCP, which name no session, and from them."""
    person, home = harness.person, ("--home", str(harness.home))
    harness.quiet("session_start")
    before = person.json("remember", "The quay is open.", "--agent", "claude-code", *home)
    harness.quiet("web_fetch")
    (tainted,) = (event for event in harness.story()["events"] if event["event"] == "taint")
    after = person.json("remember", "The quay is closed.", "--agent", "claude-code", *home)
    page = person.json("trace", tainted["source"], *home)
    assert {step["name"] for step in page["downstream"] if step["kind"] == "note"} == {after["id"]}
    up = person.json("trace", after["id"], *home)["upstream"]
    assert ("source", tainted["source"]) in {(step["kind"], step["name"]) for step in up}
    host = tainted["source"].split()[-1]
    problem = person.refused("trace", f"https://{host}/another/page", *home, code=4)
    assert repr(tainted["source"]) in problem["remedy"]

    whole = person.json("trace", SESSION, *home)
    assert {step["name"] for step in whole["downstream"] if step["kind"] == "note"} == {before["id"], after["id"]}
    assert person.json("rollback", tainted["source"], "--dry-run", *home)["removed"] == [after["id"]]
    code, said = typed(person, "rollback", SESSION, *home)
    assert code == 0 and before["id"] in said and after["id"] in said
    assert person.json("list", *home)["notes"] == []


def test_forgetting_a_session_of_the_harness_reaches_its_calls_over_mcp(harness: Harness) -> None:
    """They name no session; what others of the agent wrote before stays."""
    person, home = harness.person, ("--home", str(harness.home))
    elsewhere = person.json("remember", "The crane is red.", "--agent", "other", *home)
    harness.quiet("session_start")
    harness.quiet("user_prompt")
    mine = person.json("remember", "The quay is open.", "--agent", "claude-code", *home)
    gone = person.json("forget", "--session", SESSION, "--dry-run", *home)
    assert {item["id"] for item in gone["removed"] if item["kind"] == "note"} == {mine["id"]}
    code, said = typed(person, "forget", "--session", SESSION, *home)
    assert code == 0 and mine["id"] in said
    assert [note["id"] for note in person.json("list", *home)["notes"]] == [elsewhere["id"]]


def test_forgetting_a_session_takes_no_calls_that_others_share(harness: Harness) -> None:
    person, home = harness.person, ("--home", str(harness.home))
    harness.quiet("session_start")
    harness.quiet("session_start", session_id=OTHER)
    note = person.json("remember", "Whose is it?", "--agent", "claude-code", *home)
    problem = person.refused("forget", "--session", SESSION, "--dry-run", *home, code=4)
    assert note["session"] in problem["remedy"]
    own = person.json("remember", "This one is mine.", "--agent", "claude-code", "--session", SESSION, *home)
    told = person.json("forget", "--session", SESSION, "--dry-run", *home)
    assert {item["id"] for item in told["removed"] if item["kind"] == "note"} == {own["id"]}
    assert any(note["session"] in item["what"] for item in told["remains"])


def test_an_ambient_session_that_others_share_is_named_and_not_followed(harness: Harness) -> None:
    """Else a rollback of one session would take the notes of another away."""
    home = ("--home", str(harness.home))
    harness.quiet("session_start")
    harness.quiet("session_start", session_id=OTHER)
    note = harness.person.json("remember", "Whose is it?", "--agent", "claude-code", *home)
    for session in (SESSION, OTHER):
        steps = harness.person.json("trace", session, *home)["downstream"]
        assert [step["kind"] for step in steps] == ["shared session"]
        assert steps[0]["name"] == note["session"]
        assert harness.person.json("rollback", session, "--dry-run", *home)["removed"] == []
