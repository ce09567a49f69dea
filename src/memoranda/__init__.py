"""Memoranda: memory for AI agents as Markdown notes in Git.

`Home` is where to begin; see `memoranda.faces.python`. Everything public is named in `__all__` and imported when it is
first used, so that `import memoranda` costs nothing.
"""

import sys

# `python -m memoranda` puts the folder that somebody works in before everything else, and a project that was cloned may
# hold an `mcp.py` or a `json.py`: they are no modules of ours. This stands before anything else is imported.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path and {w.split(".")[0] for w in sys.orig_argv} & {__name__}:
    del sys.path[0]

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoranda import errors as errors
    from memoranda.errors import MemorandaError as MemorandaError
    from memoranda.faces.python import Home as Home
    from memoranda.faces.python import Session as Session
    from memoranda.operations.forgetting import Forgotten as Forgotten
    from memoranda.operations.journaling import Appended as Appended
    from memoranda.operations.presenting import Budget as Budget
    from memoranda.operations.presenting import Coverage as Coverage
    from memoranda.operations.presenting import Item as Item
    from memoranda.operations.presenting import Reading as Reading
    from memoranda.operations.presenting import View as View
    from memoranda.operations.remembering import Remembered as Remembered

__version__ = "0.1.0"

_PLACES = {
    "Home": "memoranda.faces.python",
    "Session": "memoranda.faces.python",
    "View": "memoranda.operations.presenting",
    "Item": "memoranda.operations.presenting",
    "Coverage": "memoranda.operations.presenting",
    "Budget": "memoranda.operations.presenting",
    "Reading": "memoranda.operations.presenting",
    "Remembered": "memoranda.operations.remembering",
    "Appended": "memoranda.operations.journaling",
    "Forgotten": "memoranda.operations.forgetting",
    "MemorandaError": "memoranda.errors",
}

__all__ = [
    "Appended",
    "Budget",
    "Coverage",
    "Forgotten",
    "Home",
    "Item",
    "MemorandaError",
    "Reading",
    "Remembered",
    "Session",
    "View",
    "__version__",
    "errors",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "errors":
        return import_module("memoranda.errors")
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
