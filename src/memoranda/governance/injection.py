"""The injection filter of the service: ours, or the gateway's over HTTP. Where it does not answer, nothing is given.

docs/gateway.md describes what a gateway is asked and answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from memoranda.engines.egress import Egress
from memoranda.errors import ComponentUnavailable
from memoranda.governance.credentials import Secret
from memoranda.trust import injection
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the filter saw in one text: whether it is blocked, and what it doubts, as stable codes."""

    blocked: bool
    suspicious: tuple[str, ...] = ()


class Filter(Protocol):
    """What is asked of every text before it is given back."""

    @property
    def own(self) -> bool:
        """Whether it is ours, which an engine over notes has asked already."""
        ...

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """One verdict a text, in their order. ComponentUnavailable when it does not answer: then nothing is given."""
        ...

    def ready(self) -> None:
        """Returns where texts can be judged."""
        ...


class LocalFilter:
    """Our own filter, in process."""

    own = True

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """As `Filter.judge`."""
        return [
            Verdict(verdict.level == "blocked", () if verdict.level == "blocked" else verdict.reasons)
            for verdict in injection.judge_all(list(texts))
        ]

    def ready(self) -> None:
        """As `Filter.ready`: always."""


_REASON = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,63}")
_REASONS = 20  # of one text, at most
_LEVELS = ("clean", "suspicious", "blocked")


class GatewayFilter:
    """The gateway's filter. One text that it says nothing clear about is as bad as no answer."""

    own = False

    def __init__(
        self, egress: Egress, url: str, *, token: Callable[[], Secret] | None = None, timeout: float = 5.0
    ) -> None:
        self._target = egress.to(url, name="The injection gateway", timeout=timeout, failing=ComponentUnavailable)
        self._token = token

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """As `Filter.judge`."""
        if not texts:
            return []
        headers = {"authorization": f"Bearer {self._token().reveal()}"} if self._token else {}
        reply = self._target.request("POST", "/v1/injection/judge", json={"texts": list(texts)}, headers=headers)
        if reply.status != 200:
            self._target.fail(f"It answered with status {reply.status}.")
        answer = self._target.answer(reply)
        told = answer.get("verdicts") if isinstance(answer, dict) else None
        if not isinstance(told, list) or len(told) != len(texts):
            self._target.fail("It did not answer with one verdict for each text.")
        return [self._verdict(one) for one in told]

    def ready(self) -> None:
        """As `Filter.ready`: one text is judged."""
        self.judge(["ready?"])

    def _verdict(self, told: Any) -> Verdict:
        level = told.get("level") if isinstance(told, dict) else None
        reasons = told.get("reasons", []) if isinstance(told, dict) else None
        if (
            level not in _LEVELS
            or not isinstance(reasons, list)
            or len(reasons) > _REASONS
            or not all(isinstance(one, str) and _REASON.fullmatch(one) for one in reasons)
        ):
            self._target.fail("It answered with a verdict that is none.")
        if level == "blocked":
            return Verdict(True)
        # Doubted without a reason is doubted all the same.
        return Verdict(False, tuple(reasons) or ("gateway",) if level == "suspicious" else ())
