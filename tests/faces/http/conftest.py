"""The application over stand-ins of the operations, and a client of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from memoranda.faces.http import create_app
from memoranda.faces.http.config import Config

from .standing_in import StandIns, desk

FAMILIES = ("caller", "memories", "knowledge", "policies", "engines")


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> StandIns:
    made: Any = StandIns()
    for family in FAMILIES:
        monkeypatch.setitem(sys.modules, f"memoranda.service.{family}", made)
    return made


@pytest.fixture
def app(stand_ins: StandIns) -> FastAPI:
    return create_app(Config(environment="development", body_limit=4096), desk())


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as opened:
        yield opened
