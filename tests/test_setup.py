"""The set-up: two commands, pinned and hashed dependencies, nothing recorded of where they came from."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LISTS = ("run", "serve", "dev", "bench")
PIN = re.compile(r"^([a-z0-9][a-z0-9-]*)==(\S+?)(?: ; (.+?))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def pins(name: str) -> dict[str, set[str]]:
    """The versions of each package in a list; several where the platforms differ."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8").splitlines():
        if match := PIN.match(line):
            found.setdefault(match[1], set()).add(match[2])
    return found


@pytest.mark.parametrize("name", (*LISTS, "opa"))
def test_a_list_holds_pins_and_hashes_and_nothing_else(name: str) -> None:
    lines = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8").splitlines()
    hashes = 1
    for line in lines:
        if PIN.match(line):
            assert hashes, "a pin without a hash"
            hashes = 0
        else:
            assert HASH.match(line), line
            hashes += 1
    assert hashes


def declared() -> dict[str, list[str]]:
    """What the project file asks for, by list."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    needed = project["project"]["dependencies"] + project["build-system"]["requires"]
    service = needed + extras["service"]
    return {
        "run": needed, "serve": service, "dev": service + extras["telemetry"] + extras["dev"],
        "bench": needed + extras["bench"],
    }  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_a_list_satisfies_the_project_file(name: str) -> None:
    pinned = pins(name)
    for text in declared()[name]:
        asked = Requirement(text)
        versions = pinned.get(canonicalize_name(asked.name), set())
        assert versions, f"{asked.name} is not pinned"
        assert all(asked.specifier.contains(version) for version in versions), asked.name


def test_each_direct_dependency_is_accounted_for() -> None:
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    asked = {canonicalize_name(Requirement(text).name) for texts in declared().values() for text in texts}
    named = set(re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.M)) | {"pygit2"}
    assert named == asked | {"editables"}, "docs/dependencies.md names others than the project file"
    assert "`pygit2`" in page


def test_the_lists_agree() -> None:
    run = pins("run")
    for name in ("serve", "dev", "bench"):
        other = pins(name)
        assert run.items() <= other.items(), f"{name}.txt does not hold what run.txt holds"


def test_no_file_says_where_a_registry_lies() -> None:
    places = [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci/run", *(ROOT / "requirements").iterdir()]
    tell = re.compile(
        r"(index|find-links|trusted-host)[-_a-z]*[ =]\S*/|[a-z]+://|(?<![\w./$-])/(home|root|opt|work|tmp)/"
    )
    for place in places:
        found = tell.search(place.read_text(encoding="utf-8"))
        assert found is None, f"{place.name}: {found and found[0]}"
    locks = [path for path in ROOT.glob("*.lock") if path.is_file()]
    assert not locks, "a lock file records where its packages came from"


def test_continuous_integration_runs_what_a_desk_runs() -> None:
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & 0o111
    commands = [line for line in script.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    assert commands[0] == "set -euo pipefail" and "make test" in commands and commands[-1] == "make test-engines"


@pytest.mark.parametrize(("failing", "says"), [("test", ""), ("engines", "NOTHING was checked"), ("test-engines", "")])
def test_continuous_integration_fails_when_a_part_of_it_fails(tmp_path: Path, failing: str, says: str) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    targets = ("dev", "test", "engines", "test-engines")
    rules = [f"{name}:\n\t@echo did {name}\n" + ("\t@exit 1\n" * (name == failing)) for name in targets]
    (tmp_path / "Makefile").write_text(".PHONY: " + " ".join(targets) + "\n" + "".join(rules))
    done = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and says in done.stderr
    assert ("did test-engines" in done.stdout) == (failing == "test-engines")


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with the Makefile and nothing to install."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements").mkdir()
    for name in ("pyproject.toml", *(f"requirements/{name}.txt" for name in (*LISTS, "opa"))):
        (tmp_path / name).touch()
    return tmp_path


def test_a_python_that_is_too_old_is_named(bare: Path) -> None:
    old = bare / "python-old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.18 && exit 0\nexit 1\n', encoding="utf-8")
    old.chmod(0o755)
    done = make(bare, f"PYTHON={old}", "test")
    assert done.returncode != 0
    assert "Memoranda needs Python 3.11 or newer" in done.stderr
    assert "Python 3.9.18" in done.stderr
    assert "make PYTHON=/path/to/python3.12 test" in done.stderr
    assert not (bare / ".venv").exists()


def test_a_python_that_is_not_there_is_named(bare: Path) -> None:
    done = make(bare, "PYTHON=python-of-nobody", "demo")
    assert done.returncode != 0
    assert "python-of-nobody: not there" in done.stderr


def test_make_alone_says_what_there_is(bare: Path) -> None:
    done = make(bare)
    assert done.returncode == 0
    said = re.findall(r"^make ([a-z-]+) ", done.stdout, re.M)
    assert {"demo", "test", "bench", "lint", "format", "clean"} <= set(said)
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert phony is not None
    assert set(said) == set(phony[1].split()) - {"help"}
