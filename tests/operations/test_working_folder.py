"""The folder that a process works in: it may change, and what lies in it is no code of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda import Home
from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.operations import importing
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space


def test_a_home_named_by_a_relative_path_stays_where_it_was(
    context: Context, home: Path, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    with Space(context, Keys(Path(keys.folder.name)), Path(home.name), Path("mine")) as space:
        remember(context, space, NewNote("The ferry leaves at six."))
        monkeypatch.chdir(elsewhere)
        remember(context, space, NewNote("The pilot is Maud."))
        assert len(recall(context, space, "ferry pilot").items) == 2
        assert space.one().repository.root == home
    assert not list(elsewhere.iterdir())
    with Space(context, keys, home, None) as space:
        assert recall(context, space, "pilot").items


def test_a_home_made_from_python_by_a_relative_path_stays_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Home.init("notes") as home:
        monkeypatch.chdir(tmp_path / "elsewhere")
        home.remember("The ferry leaves at six.")
        assert home.recall("ferry").items
    assert (tmp_path / "notes" / "memory").is_dir()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_processes_of_an_import_run_no_code_from_the_folder_that_somebody_works_in(
    context: Context, space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that somebody cloned and stands in may hold a `memoranda`, a `json.py` or a `select.py`."""
    hostile, sang = tmp_path / "cloned", tmp_path / "sang"
    for name in ("memoranda/__init__.py", "memoranda/operations/__init__.py", "json.py", "select.py", "numpy.py"):
        (hostile / name).parent.mkdir(parents=True, exist_ok=True)
        (hostile / name).write_text(f"open({str(sang)!r}, 'a').write(__file__ + '\\n')\n")
    folder = tmp_path / "vault"
    folder.mkdir()
    for n in range(12):
        (folder / f"{n}.md").write_text(f"The buoy {n} is green.\n")
    monkeypatch.setattr(importing, "_MANY", 10)
    monkeypatch.chdir(hostile)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    done = importing.import_folder(context, space, folder)
    assert done.taken == 12
    assert not sang.exists(), sang.read_text()
    assert not space.one().indexes.notices, "its processes have done their work"


SHADOWS = [
    "mcp",
    "anyio",
    "json",
    "typing",
    "__future__",
    "argparse",
    "sqlite3",
    "re",
    "yaml",
    "numpy",
    "hashlib",
    "mcp_types",
]


@pytest.mark.parametrize("words", [["mcp"], ["recall", "x"], ["remember", "A fact."], ["list", "--json"]])
def test_started_with_m_it_takes_no_module_from_the_folder(tmp_path: Path, words: list[str]) -> None:
    """`python -m` puts that folder first on its path. Hosts start the server in the project that somebody opened."""
    hostile, sang = tmp_path / "cloned", tmp_path / "sang"
    hostile.mkdir()
    for name in SHADOWS:
        (hostile / f"{name}.py").write_text(f"open({str(sang)!r}, 'a').write(__file__ + '\\n')\nraise ImportError\n")
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = [sys.executable, "-m", "memoranda", *words]
    done = subprocess.run(command, cwd=hostile, env=env, input=b"", capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert not sang.exists()
    seen = subprocess.run(
        [sys.executable, "-c", "import memoranda, sys; print(sys.path[0])"], cwd=tmp_path, env=env, capture_output=True
    )
    assert seen.stdout == b"\n", "who imports it in a program of their own keeps their path"
