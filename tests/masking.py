"""What a test prints never holds a key of an engine: a plugin of pytest for the tests that are given real ones.

`hide` is told a key; from then on every report shows its first four characters, and an ellipsis.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import pytest

T = TypeVar("T", str, dict[str, str])
_hidden: set[str] = set()


def hide(keys: T) -> T:
    """The same, known as something that no report shows."""
    _hidden.update([keys] if isinstance(keys, str) else keys.values())
    return keys


def masked(text: str) -> str:
    for key in _hidden:
        text = text.replace(key, f"{key[:4]}…")
    return text


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.longrepr is not None and not isinstance(report.longrepr, tuple):
        report.longrepr = masked(report.longreprtext)
    report.sections = [(name, masked(text)) for name, text in report.sections]
    return report
