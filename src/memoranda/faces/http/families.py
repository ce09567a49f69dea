"""The operations of the service, by family."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Family:
    """The functions of one module of `service`, found when they are called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"memoranda.service.{self._name}"), name)


memories = Family("memories")
knowledge = Family("knowledge")
policies = Family("policies")
engines = Family("engines")
audits = Family("audits")
admin = Family("admin")
callers = Family("caller")
