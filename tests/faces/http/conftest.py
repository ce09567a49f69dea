"""The application over a real service, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from memoranda.context import Context
from memoranda.faces.http import create_app
from memoranda.faces.http.config import Config
from memoranda.service.desk import Desk
from memoranda.service.opening import open_desk

from .standing_in import Events, Failing, events_of, furnish


@pytest.fixture(scope="module")
def decisions() -> Failing:
    return Failing()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, decisions: Failing) -> Iterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("service")
    opened = open_desk(Context(), folder, decisions=decisions)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def tokens(desk: Desk) -> dict[str, dict[str, str]]:
    return furnish(desk)


@pytest.fixture
def auth(tokens: dict[str, dict[str, str]]) -> dict[str, str]:
    """The header of the agent cleo of acme."""
    return tokens["cleo of acme"]


@pytest.fixture
def ana(tokens: dict[str, dict[str, str]]) -> dict[str, str]:
    """The header of cleo's owner, who administers acme."""
    return tokens["ana"]


@pytest.fixture
def events(desk: Desk) -> Events:
    return events_of(desk)


@pytest.fixture(scope="module")
def app(desk: Desk) -> FastAPI:
    return create_app(Config(environment="development", body_limit=4096), desk)


@pytest.fixture
def client(app: FastAPI, decisions: Failing) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as opened:
        yield opened
    decisions.fails = None
