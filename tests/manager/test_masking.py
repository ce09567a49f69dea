"""The tests of the real engines show a key only masked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.masking import hide, masked
from tests.real import conftest

ROOT = Path(__file__).parent.parent.parent
KEY = "s3cr" + "et-of-an-engine-0123456789"
_FAILING = f"""
import pytest
from tests.masking import hide

@pytest.fixture
def key():
    return hide("s3cr" + {KEY[4:]!r})

@pytest.fixture
def service(key):
    yield {{"x_api_key": key}}
    assert key == "in the teardown"

def test_compares(key):
    print("the key is", key)
    assert key == "another"

def test_says(key):
    raise RuntimeError(f"refused: {{key}}")

def test_looks_into_a_file(service):
    assert "absent" in f"NAME={{service['x_api_key']}}"
"""


@pytest.mark.requirement("S-042")
def test_a_report_shows_a_key_only_masked(tmp_path: Path) -> None:
    (tmp_path / "test_keys.py").write_text(_FAILING)
    words = [sys.executable, "-m", "pytest", "-p", "tests.masking", "-p", "no:cacheprovider", "-l", "-rA", "--rootdir"]
    done = subprocess.run(
        [*words, str(tmp_path), "-c", "/dev/null", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    assert "3 failed, 1 error" in said, said
    assert KEY not in said and said.count(f"{KEY[:4]}…") >= 6


@pytest.mark.requirement("S-042")
def test_the_tests_of_the_real_engines_hide_every_secret_that_they_are_given() -> None:
    assert conftest.pytest_runtest_makereport is sys.modules["tests.masking"].pytest_runtest_makereport
    assert masked(f"x {hide('another-key')} y") == "x anot… y"
