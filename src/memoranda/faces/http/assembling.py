"""Puts the parts of a service together, as its settings say."""

from __future__ import annotations

from typing import Any

from memoranda.errors import ConfigRefused
from memoranda.faces.http.config import Config
from memoranda.faces.http.metrics import Metrics


def assemble(_config: Config, _metrics: Metrics) -> Any:
    """The desk of these settings."""
    raise ConfigRefused("The service cannot be put together yet.")
