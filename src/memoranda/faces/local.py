"""How a local call is set up: which Home, whose keys, who asks. Only the faces read the environment and the clock."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memoranda.context import Context
from memoranda.errors import HomeNotFound, InvalidInput, Unavailable
from memoranda.home.keys import Keys
from memoranda.home.layout import NESTED, is_home, nearest_home

if TYPE_CHECKING:
    from memoranda.home.comparison import Comparison
    from memoranda.index.endpoints import Endpoint
    from memoranda.operations.space import Space
    from memoranda.trust.signing import Signing

Progress = Callable[[str, int, int], None]
CLI_AGENT = "cli"
_SYSTEM = "The system refused it."


class Choice(NamedTuple):
    """The Homes of a call: `nearest` is written and recalled, `personal` is recalled too, and written without it."""

    nearest: Path | None
    personal: Path | None


def refused_by_system(error: OSError) -> Unavailable:
    """What an error of the operating system says, as one of ours."""
    import errno

    what = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        remedy = "Make room and try again; what was remembered before is kept."
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = (
            "Give this program the right to read and write there, or clone the Home to where it has it: locks and"
            " indexes are written also when a Home is only read."
        )
    else:
        remedy = "Mend that and try again."
    return Unavailable(f"{error.filename}: {what}." if error.filename else f"{what}.", why=_SYSTEM, remedy=remedy)


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
    told = (os.environ.get(name) for name in ("LOGNAME", "USER", "LNAME", "USERNAME"))
    name = next(filter(None, told), "")
    if not name:
        try:
            import pwd

            name = pwd.getpwuid(os.getuid()).pw_name
        except (KeyError, ImportError):
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


def open_space(
    context: Context, choice: Choice, progress: Progress | None = None, begun: Comparison | None = None
) -> Space:
    """The Homes of a choice, opened when they are first needed; close it. `begun` is what `begin` gave for it."""
    from memoranda.operations.space import Space

    return Space(
        context, keys(), choice.nearest, choice.personal, progress=progress, signing=signing(), begun=begun,
        endpoints=endpoints, trusted=trusted(),
    )  # fmt: skip


def begin(choice: Choice) -> Comparison | None:
    """Has Git begin to compare the files of the nearest Home with its index, which the first look there waits for."""
    if choice.nearest is None:
        return None
    from memoranda.home import comparison
    from memoranda.home.layout import layout_of

    return comparison.begin(layout_of(choice.nearest))


def config_file() -> Path:
    """The person's own settings: `$XDG_CONFIG_HOME/memoranda/config.toml`, else below `~/.config`. Never in a Home."""
    told = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(told) if told.startswith("/") else Path(os.path.expanduser("~/.config"))  # noqa: PTH111
    return base / "memoranda" / "config.toml"


def settings(section: str) -> dict[str, object]:
    """One section of the person's settings; empty when there is none.

    Raises:
        InvalidInput: the file is not TOML, or the section is none. A setting that protects is never passed over.
    """
    file = config_file()
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    import tomllib

    try:
        found = tomllib.loads(data.decode()).get(section, {})
    except ValueError as error:
        raise InvalidInput(f"{file} is not TOML.", why=f"{error}.", remedy="Mend the file.") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"[{section}] in {file} is not a section.", remedy="Mend the file.")
    return found


def signing() -> Signing | None:
    """Whose signed reviews count, by `[reviews]` of the settings: `allowed_signers` and `signing_key`, two paths."""
    told = settings("reviews")
    if not told:
        return None
    from memoranda.trust.signing import Signing

    paths: dict[str, Path | None] = {}
    for name in ("allowed_signers", "signing_key"):
        value = told.pop(name, None)
        if value is not None and not (isinstance(value, str) and value):
            raise InvalidInput(f"`{name}` in {config_file()} is not a path.", remedy="Mend the file.")
        paths[name] = None if value is None else config_file().parent / os.path.expanduser(str(value))  # noqa: PTH111
    if told or paths["allowed_signers"] is None:
        raise InvalidInput(
            f"[reviews] in {config_file()} is not understood.",
            why=f"It has {', '.join(told)}." if told else "It does not say `allowed_signers`.",
            remedy="It takes `allowed_signers` and, to sign here, `signing_key`.",
        )
    return Signing(paths["allowed_signers"], paths["signing_key"])


def trusted() -> list[Path]:
    """The Homes in which the person alone writes, by `trust_edits` in `[edits]` of the settings: a list of folders.

    Raises:
        InvalidInput: it is none, or the settings lie in such a Home, where who writes files could write it.
    """
    told = settings("edits")
    if not told:
        return []
    folders = told.pop("trust_edits", None)
    if told or not isinstance(folders, list) or not all(isinstance(folder, str) and folder for folder in folders):
        raise InvalidInput(
            f"[edits] in {config_file()} is not understood.", remedy="It takes `trust_edits`, a list of folders."
        )
    roots = [config_file().parent / os.path.expanduser(folder) for folder in folders]  # noqa: PTH111
    for root in roots:
        if config_file().resolve().is_relative_to(root.resolve()):
            raise InvalidInput(
                f"{config_file()} lies in {root}, of which it says `trust_edits`.",
                why="Whoever writes a file there could say so.",
                remedy="Keep the settings outside of every Home.",
            )
    return [place for root in roots for place in (root, root / NESTED)]


def endpoints() -> dict[str, Endpoint]:
    """The servers of embeddings, by `[embedders.NAME]` of the settings.

    Raises:
        InvalidInput: a section lacks `url`, `model` or `dimensions`, or has something that is not understood.
    """
    from memoranda.index.endpoints import Endpoint

    return {name: _endpoint(Endpoint, name, told) for name, told in settings("embedders").items()}


def _endpoint(made: type[Endpoint], name: str, told: object) -> Endpoint:
    where = f"[embedders.{name}] in {config_file()}"
    remedy = "docs/cli.md shows one, at `index add`."
    if not isinstance(told, dict):
        raise InvalidInput(f"{where} is not a section.", remedy=remedy)
    fields = dict(told)
    variable = fields.pop("key_variable", None)
    kinds = {name: (int, float) if name == "wait" else type(value) for name, value in made._field_defaults.items()}
    kinds |= {"url": str, "model": str, "dimensions": int}
    for field, value in fields.items():
        if field not in made._fields or field == "key" or not isinstance(value, kinds[field]):
            raise InvalidInput(f"`{field}` of {where} is not understood.", remedy=remedy)
    if missing := [field for field in ("url", "model", "dimensions") if field not in fields]:
        raise InvalidInput(f"{where} does not say `{missing[0]}`.", remedy=remedy)
    if variable is not None:
        fields["key"] = os.environ.get(str(variable))
        if not fields["key"]:
            raise InvalidInput(
                f"The variable {variable}, which {where} names, holds no key.", remedy="Set it, or leave it out."
            )
    return made(**fields)
