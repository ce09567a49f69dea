"""The command line at its limits: bad input, exit codes, streams, signals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Person, git


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (["remember", ""], 2, "memory_invalid_note"),
        (["remember", "x", "--kind", "gossip"], 2, "memory_invalid_note"),
        (["remember", "x", "--scope", "galaxy"], 2, "memory_invalid_note"),
        (["remember", "x", "--origin", "hearsay"], 2, "memory_invalid_note"),
        (["remember", "x", "--valid-from", "2026-02-30"], 2, "memory_invalid_time"),
        (["remember", "x", "--valid-from", "soon"], 2, "memory_invalid_time"),
        (["remember", "x", "--valid-from", "2026-02-03", "--valid-to", "2026-02-02"], 2, "memory_invalid_time"),
        (["remember", "x", "--confidence", "2"], 2, "memory_invalid_note"),
        (["remember", "x", "--confidence", "sure"], 2, "memory_invalid"),
        (["remember", "x", "--supersedes", "mem_unknown"], 4, "memory_unknown_note"),
        (["remember", "x", "--source", "nas://box/../etc/passwd"], 2, "memory_invalid_pointer"),
        (["remember", "x", "--source", "hearsay"], 2, "memory_invalid_note"),
        (["remember", "x", "--agent", "../../etc"], 2, "memory_invalid"),
        (["remember", "x", "--session", "a b"], 2, "memory_invalid"),
        (["remember"], 2, "memory_invalid"),
        (["update", "mem_unknown", "x"], 4, "memory_unknown_note"),
        (["history", "mem_unknown"], 4, "memory_unknown_note"),
        (["read", "mem_unknown"], 4, "memory_not_found"),
        (["read", "../../etc/passwd"], 2, "memory_invalid_pointer"),
        (["read", "nas://"], 2, "memory_invalid_pointer"),
        (["read", "mem_x", "--view", "poster"], 2, "memory_invalid"),
        (["read", "mem_x", "--lines", "many"], 2, "memory_invalid"),
        (["recall", "x", "--k", "0"], 2, "memory_invalid"),
        (["recall", "x", "--budget", "-5"], 2, "memory_invalid"),
        (["recall", "x", "--budget", "much"], 2, "memory_invalid"),
        (["recall", "x", "--in", "attic"], 2, "memory_invalid"),
        (["recall", "x", "--as-of", "yesterday"], 2, "memory_invalid_time"),
        (["journal", "append", " "], 2, "memory_invalid_note"),
        (["journal"], 2, "memory_invalid"),
        (["jornal"], 2, "memory_invalid"),
        (["golden", "run", "--k", "0"], 2, "memory_invalid"),
        (["recall", "x", "--bogus"], 2, "memory_invalid"),
        ([], 2, "memory_invalid"),
    ],
)
def test_bad_input_gets_a_named_error_and_writes_nothing(
    person: Person, words: list[str], code: int, name: str
) -> None:
    home = person.home()
    before = git(home, "rev-parse", "HEAD")
    problem = person.json(*words, code=code, env={"MEMORANDA_HOME": str(home)})
    assert problem["code"] == name and problem["detail"] and problem["remedy"]
    told = person.run(*words, env={"MEMORANDA_HOME": str(home)})
    assert told.returncode == code and told.stdout == "" and f"memoranda: {problem['detail']}" in told.stderr
    assert git(home, "rev-parse", "HEAD") == before and git(home, "status", "--porcelain") == ""


def test_a_text_that_is_too_large_or_not_text_is_refused(person: Person) -> None:
    home = ["--home", str(person.home())]
    assert person.refused("remember", "-", *home, code=2, input="x" * 5_000_000)["code"] == "memory_invalid_note"
    assert person.refused("remember", "-", *home, code=2, input="a\x00b")["code"] == "memory_invalid_note"
    done = person.run("remember", os.fsdecode(b"caf\xe9"), "--json", *home)
    assert done.returncode == 2 and json.loads(done.stdout)["code"] == "memory_invalid"


def test_a_conflict_exits_with_five(person: Person) -> None:
    home = ["--home", str(person.home())]
    old = person.json("remember", "One.", *home)
    person.json("update", old["id"], "Two.", *home)
    problem = person.refused("remember", "Three.", "--supersedes", old["id"], *home, code=5)
    assert problem["code"] == "memory_chain_conflict" and problem["status"] == 409


def test_a_home_of_another_format_opens_read_only(person: Person) -> None:
    home = person.home()
    person.json("remember", "Still readable.", "--home", str(home))
    marker = home / "memory/home.yaml"
    marker.write_text(marker.read_text().replace("format: 1", "format: 99"))
    assert person.json("recall", "readable", "--home", str(home))["items"]
    assert person.refused("remember", "x", "--home", str(home), code=6)["code"] == "memory_home_format_unknown"


def test_a_damaged_home_is_unavailable(person: Person) -> None:
    home = person.home()
    (home / "memory/home.yaml").write_text("][")
    assert person.refused("recall", "x", "--home", str(home), code=6)["code"] == "memory_home_damaged"


def test_help_and_version(person: Person) -> None:
    from memoranda import __version__

    assert person.says("--version") == f"memoranda {__version__}\n"
    overview = person.says("--help")
    assert "journal append" in overview and "remember" in overview
    assert "journal append" in person.says("journal", "--help") and "recall" not in person.says("journal", "--help")
    assert "example:\n  memoranda recall " in person.says("recall", "--help")
    assert "Did you mean `memoranda recall`" in person.run("recal", "x").stderr


@pytest.mark.parametrize(
    "command",
    [("engine", "install", "cognee", "--models", "http://127.0.0.1:1/v1"), ("engine", "status"),
     ("engine", "down", "cognee"), ("admin", "tenant", "list"), ("audit", "verify"), ("serve",)],
    ids=" ".join,
)  # fmt: skip
def test_where_the_service_is_not_installed_that_is_what_is_said(person: Person, command: tuple[str, ...]) -> None:
    less = person.folder / "less"
    less.mkdir()
    absent = ("alembic", "fastapi", "httpcore2", "jwt", "prometheus_client", "psycopg", "regorus", "sqlalchemy")
    (less / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n")
    env = {"PYTHONPATH": os.pathsep.join([str(less), *filter(None, [person.env.get("PYTHONPATH")])])}
    told = person.refused(*command, code=2, env=env)
    assert told["detail"].startswith("The service is not installed") and "memoranda[service]" in told["remedy"]
    person.json("remember", "Notes need none of it.", env=env)


def test_nobody_listens_any_more(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "-", "--home", str(home), input="a long line\n" * 50_000)
    command = [sys.executable, "-m", "memoranda", "read", note["id"], "--home", str(home)]
    with subprocess.Popen(
        command, env=person.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=person.work
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(30) == 141
        assert process.stderr.read() == b""


def test_long_work_shows_its_progress_on_a_terminal_only(person: Person) -> None:
    folder = person.work / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}.md").write_text(f"Number {number}.\n".ljust(7000, "\n"))  # half of them are a megabyte
    home = str(person.home())
    answer, shown = at_a_terminal(person, "import", str(folder), "--home", home)
    assert "importing files: 150 of 300 (50 %)" in shown and shown.endswith("\r\x1b[K")
    assert answer.startswith("Took 300 files")
    answer, shown = at_a_terminal(person, "index", "rebuild", "--home", home)
    assert "reading notes: 0 of 304 (0 %)" in shown and "reading notes: 300 of 300 (100 %)" in shown
    answer, shown = at_a_terminal(person, "index", "rebuild", "--json", "--home", home)
    assert json.loads(answer)["homes"] and shown == ""
    assert person.run("import", str(folder), "--home", home).stderr == ""


def at_a_terminal(person: Person, *words: str) -> tuple[str, str]:
    """(standard output, standard error) of a command whose standard error is a terminal; no progress is too quick."""
    code = (
        "from memoranda.faces.cli import frame, main; frame.Progress._AFTER = frame.Progress._EVERY = 0.0; "
        f"main({list(words)!r})"
    )
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", "import memoranda.faces.cli.frame; " + code],
        env=person.env, cwd=person.work, stdout=subprocess.PIPE, stderr=follower, timeout=60, check=True,
    )  # fmt: skip
    os.write(follower, b"\0")  # where it ends
    shown = b""
    while not shown.endswith(b"\0"):
        shown += os.read(leader, 100_000)
    os.close(follower)
    os.close(leader)
    return done.stdout.decode(), shown[:-1].decode()


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_nothing_to_stumble_over(person: Person, stream: str) -> None:
    person.json("remember", "Fine.")
    command = f'exec "{sys.executable}" -m memoranda list {stream}'
    done = subprocess.run(["sh", "-c", command], env=person.env, cwd=person.work, capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stderr == b""
    assert (b"Fine." in done.stdout) == (stream != ">&-")


def test_an_interrupt_ends_without_a_traceback(person: Person) -> None:
    home = person.home()
    command = [sys.executable, "-m", "memoranda", "remember", "-", "--home", str(home)]
    with subprocess.Popen(
        command, env=person.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=person.work
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"half a thought")
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == b""


def test_json_is_utf8_wherever_we_are(person: Person) -> None:
    home = ["--home", str(person.home())]
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    person.json("remember", "Où sont les îles ?", *home)
    assert person.json("recall", "îles", *home, env=env)["items"][0]["text"] == "Où sont les îles ?"
    assert "\\xeeles" in person.says("recall", "îles", *home, env=env)


def test_a_home_keeps_its_keys_outside(person: Person) -> None:
    home = person.home()
    person.json("remember", "x y z", "--home", str(home))
    found = [path for path in (person.folder / "data/memoranda/keys").rglob("*.key")]
    assert found and not list(Path(home).rglob("*.key"))
