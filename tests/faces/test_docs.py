"""The documents are checked against the program: nothing undocumented, nothing documented that does not exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from memoranda import errors
from memoranda.faces.cli import COMMANDS, GROUPS, find
from memoranda.faces.cli.frame import make_parser
from memoranda.faces.mcp.tools import TOOLS
from memoranda.notes import model, words

from .conftest import Person, git

ROOT = Path(__file__).parent.parent.parent
CLI = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
SERVICE = (ROOT / "docs/service.md").read_text(encoding="utf-8")
MCP = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
FORMAT = (ROOT / "docs/format.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMON = {"--home", "--json", "--help", "-h"}


def sections(text: str, level: str) -> dict[str, str]:
    """Heading -> what stands below it, for headings of this level that are code."""
    parts = re.split(rf"^{level} `([^`]+)`$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def first_cells(text: str) -> set[str]:
    """The code in the first cell of every row of a table."""
    return {code for row in re.findall(r"^\| ([^|]+) \|", text, re.M) for code in re.findall(r"`([^`]+)`", row)}


def accepted(name: str) -> dict[str, str]:
    """option or argument -> how it is written in the documents, of one command."""
    found = {}
    for action in make_parser(name, find(name))._actions:
        if not action.option_strings:
            found[str(action.metavar)] = str(action.metavar)
        for option in set(action.option_strings) - COMMON:
            value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
            found[option] = option if action.nargs == 0 else f"{option} {value}"
    return found


def test_every_command_is_documented_and_every_documented_one_exists() -> None:
    documented = {heading.removeprefix("memoranda ") for heading in sections(CLI, "###")}
    assert documented == set(COMMANDS)
    assert {name.split()[0] for name in COMMANDS if " " in name} == set(GROUPS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_every_documented_one_exists(name: str) -> None:
    text = sections(CLI, "###")[f"memoranda {name}"]
    rows = {cell.replace("\\|", "|") for cell in re.findall(r"^\| `([^`]+)` \|", text, re.M)}
    assert rows == set(accepted(name).values())
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text):
        assert option in accepted(name) or option in COMMON or option in ("--scope", "--kind", "--in"), option
    assert make_parser(name, find(name)).format_help()
    assert find(name).example in text


def test_the_common_options_and_all_variables_are_documented() -> None:
    for word in ("--home DIR", "--json", "--help", "--version"):
        assert word in CLI
    source = "".join(path.read_text() for path in (ROOT / "src/memoranda/faces").rglob("*.py"))
    for variable in set(re.findall(r"MEMORANDA_[A-Z]+|XDG_[A-Z_]+", source)):
        assert variable in CLI or variable in SERVICE, variable


def test_every_exit_code_is_documented() -> None:
    table = CLI[CLI.index("## Exit codes") : CLI.index("## The commands")]
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.M)}
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.MemorandaError)]
    assert {cls.exit_code for cls in classes} | {0, 130, 141} == codes


def test_every_tool_and_parameter_is_documented_and_the_reverse() -> None:
    documented = sections(MCP, "###")
    assert set(documented) == set(TOOLS)
    for name, tool in TOOLS.items():
        text = documented[name].split("## What can be relied on")[0]
        assert first_cells(text) == set(tool.parameters), name
        assert {code for code in re.findall(r"\*\*`([^`]+)`\*\*", text)} == set(tool.required)
        for answer in tool.answers:
            assert f"`{answer}`" in text
        assert set(tool.near.values()) <= set(tool.parameters)
        assert not set(tool.near) & set(tool.parameters)
    head = MCP[: MCP.index("## Telling a host")]
    assert set(re.findall(r"^\| `(--[^`]+)` \|", head, re.M)) == {"--home DIR", *accepted("mcp").values()}


def test_every_field_and_word_of_a_note_is_documented() -> None:
    table = FORMAT[FORMAT.index("## The note") : FORMAT.index("### Paths")]
    assert first_cells(table) >= set(model._KNOWN) | set(model.OWNERS)
    for word in (*words.KINDS, *words.SCOPES, *words.ORIGINS, *words.CLASSIFICATIONS):
        assert re.search(rf"\b{word}\b", table), word


@pytest.mark.parametrize("path", ["README.md", *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            assert ((ROOT / path).parent / target.split("#")[0]).exists(), target


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def test_what_hosts_are_told_can_be_read_and_starts_the_server() -> None:
    for text in (README, MCP):
        told = [server for block in blocks(text, "json") for server in json.loads(block)["mcpServers"].values()]
        told += [s for block in blocks(text, "toml") for s in tomllib.loads(block)["mcp_servers"].values()]
        assert len(told) >= 2
        for server in told:
            assert server["args"] == ["mcp", "--home", "/path/to/notes"]
            assert server["command"] == "/path/to/memoranda"
        for line in re.findall(r"(?:claude|codex) mcp add [^\n`]* -- ([^\n`]*)", text):
            assert line == "/path/to/memoranda mcp --home /path/to/notes"
    args = make_parser("mcp", find("mcp")).parse(["--home", "/path/to/notes"])
    assert args.home == "/path/to/notes"


def test_the_readmes_commands_do_what_it_says(person: Person) -> None:
    program = person.folder / "bin/memoranda"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memoranda "$@"\n')
    program.chmod(0o755)
    env = person.env | {"PATH": f"{program.parent}:{person.env['PATH']}", "GIT_PAGER": "cat"}
    start = README[README.index("## Quick start") : README.index("## Connecting an agent")]
    script = "set -eux\n" + "".join(blocks(start, "sh"))
    done = subprocess.run(["bash", "-c", script], cwd=person.work, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Acme renewed for 24 months; Luis decides." in done.stdout and "Source: nas://notes/" in done.stdout
    assert "Remember customer/acme: Acme renewed" in done.stdout
    before = done.stdout.rsplit("Covered:", 1)[0]
    assert "Acme renewed for 24 months" in before.rsplit("head", 1)[1], "as of October"
    (python,) = blocks(start, "python")
    ran = subprocess.run(
        [sys.executable, "-c", python], cwd=person.work, env=env, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert "Luis is on leave until May." in ran.stdout and "nas://notes/agents/cleo/journal/" in ran.stdout
    assert git(person.work / "notes", "status", "--porcelain") == ""


def test_the_readmes_poisoned_page_is_caught(person: Person) -> None:
    home = person.home()
    program = person.folder / "memoranda"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memoranda "$@"\n')
    program.chmod(0o755)
    section = README[README.index("## A poisoned page that is caught") : README.index("## The files that were made")]
    (script,) = blocks(section, "sh")
    env = person.env | {"PATH": f"{program.parent}:{person.env['PATH']}"}
    done = subprocess.run(["bash", "-eu", "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told, after = done.stdout.split("Covered:")
    assert "paid to the account on file" in told and "Northwind" not in done.stdout
    assert "Not shown, from outside and not reviewed" in after and "Nothing was reviewed yet" in after
    assert "1 note waiting" in after and "tool WebFetch blog.example" in after


def test_the_readme_names_the_files_that_are_made(person: Person) -> None:
    home = person.home()
    words = ["--home", str(home)]
    note = person.json("remember", "Luis decides.", "--subject", "customer/acme", "--agent", "cleo", *words)
    person.json("golden", "add", "Who decides?", "--expect", note["id"], *words)
    made = README[README.index("## The files that were made") : README.index("A note reads")]
    for name in ("memory/home.yaml", "memory/notes/customer/acme", "memory/golden.yaml", "agents/cleo/journal", ".git",
                 ".memoranda"):  # fmt: skip
        assert name in made
        assert (home / name).exists()
