"""docs/security.md names a test for everything that it promises, and every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs/security.md").read_text(encoding="utf-8")
CANNOT = TEXT[TEXT.index("## What an attacker cannot do") : TEXT.index("## What an attacker can do")]
LINES = re.split(r"^(\d+)\. ", CANNOT, flags=re.M)[1:]


def named(text: str) -> list[tuple[str, str]]:
    """(file, function or nothing) of every test in a text; `::test_x` means the file that was named before."""
    found, file = [], ""
    for path, function in re.findall(r"`(tests/[\w/]+\.py)?(?:::(test_\w+))?`", text):
        file = path or file
        if path or function:
            found.append((file, function))
    return found


def test_the_lines_are_numbered_one_after_the_other() -> None:
    assert [int(number) for number in LINES[::2]] == list(range(1, len(LINES) // 2 + 1))


def test_every_promise_names_a_test_and_every_test_exists() -> None:
    for number, text in zip(LINES[::2], LINES[1::2], strict=True):
        tests = named(text)
        assert tests, f"line {number} names no test"
        for file, function in tests:
            assert (ROOT / file).is_file(), f"line {number}: {file}"
            if function:
                assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), f"line {number}: {function}"


def test_no_test_of_attacks_is_left_out() -> None:
    files = {file for file, _ in named(CANNOT)}
    assert {f"tests/trust/{path.name}" for path in (ROOT / "tests/trust").glob("test_attacks_*.py")} <= files
