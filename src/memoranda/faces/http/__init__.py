"""HTTP: the governed service under `/v1/memory`. `create_app()` gives the application on the embedded defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import FastAPI

    from memoranda.faces.http.config import Config


def create_app(config: Config | None = None, desk: Any = None) -> FastAPI:
    """The application; without `config` by the environment's settings, without `desk` on parts of its own.

    Raises:
        ConfigRefused: a setting is wrong, or not safe enough for its environment.
    """
    from memoranda.faces.http.app import create

    return create(config, desk)
