"""How a local call is set up: which Home, whose keys, who asks. Only the faces read the environment and the clock."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memoranda.context import Context
from memoranda.errors import HomeNotFound
from memoranda.home.keys import Keys
from memoranda.home.layout import NESTED, is_home, nearest_home

if TYPE_CHECKING:
    from memoranda.operations.space import Space

Progress = Callable[[str, int, int], None]
CLI_AGENT = "cli"


class Choice(NamedTuple):
    """The Homes of a call: `nearest` is written and recalled, `personal` is recalled too, and written without it."""

    nearest: Path | None
    personal: Path | None


def data_folder() -> Path:
    """Where the person's own Home and the keys lie: `$XDG_DATA_HOME/memoranda`, else `~/.local/share/memoranda`."""
    told = os.environ.get("XDG_DATA_HOME", "")
    base = Path(told) if told.startswith("/") else Path(os.path.expanduser("~/.local/share"))  # noqa: PTH111
    return base / "memoranda"


def personal_home() -> Path:
    """The place of the person's own Home, whether it is there yet or not."""
    return data_folder() / "home"


def keys() -> Keys:
    """The keys of this installation."""
    return Keys(data_folder() / "keys")


def choose(home: str | os.PathLike[str] | None = None, start: Path | None = None) -> Choice:
    """The Homes of a call.

    `home`, or else the variable MEMORANDA_HOME, names the only one; without them they are the nearest one at or above
    `start` (the working directory) and the person's own.

    Raises:
        HomeNotFound: the named folder is no Home.
    """
    told = os.fspath(home) if home else os.environ.get("MEMORANDA_HOME")
    if told:
        return Choice(_named(told, "" if home else " (MEMORANDA_HOME says so)"), None)
    if start is None:
        try:
            start = Path.cwd()
        except FileNotFoundError:  # the folder was deleted under our feet
            return Choice(None, personal_home())
    return Choice(nearest_home(start), personal_home())


def _named(told: str, by: str) -> Path:
    folder = Path(os.path.abspath(os.path.expanduser(told)))  # noqa: PTH100, PTH111 - links keep their names
    for place in (folder, folder / NESTED):
        if is_home(place):
            return place
    raise HomeNotFound(f"{told} is not a Home{by}.", remedy=f"Make one with `memoranda init {told}`, or name another.")


def user_name() -> str:
    """The name of the person at this machine, brought to the characters that names may have."""
    import getpass

    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = ""
    return fit_name(name, "me")


def fit_name(text: str, otherwise: str) -> str:
    """`text` with only the characters that the name of a user or an agent may have."""
    return re.sub(r"[^\w.@+-]+", "-", text).strip("-.@+")[:64] or otherwise


def at_a_terminal() -> bool:
    """Whether a person can be taken to read what is printed and to type what is asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def make_context(
    agent: str | None = None, session: str | None = None, *, otherwise: str = CLI_AGENT, person: bool = False
) -> Context:
    """Who asks: `agent` and `session`, else MEMORANDA_AGENT and MEMORANDA_SESSION, else `otherwise` and none."""
    return Context(
        user=user_name(),
        agent=agent or os.environ.get("MEMORANDA_AGENT") or otherwise,
        session=session or os.environ.get("MEMORANDA_SESSION") or None,
        person=person,
    )


def open_space(context: Context, choice: Choice, progress: Progress | None = None) -> Space:
    """The Homes of a choice, opened when they are first needed; close it."""
    from memoranda.operations.space import Space

    return Space(context, keys(), choice.nearest, choice.personal, progress=progress)
