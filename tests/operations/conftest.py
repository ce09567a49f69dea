"""What the tests of operations share: the person at a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memoranda.context import Context


@pytest.fixture
def person(context: Context) -> Context:
    return replace(context, person=True)
