"""Decisions on memory, in Rego: `memory.write` before every change, `memory.search` before every read.

The same files are evaluated in process or by an OPA. Only a plain `allow: true` without a reason against it allows;
what is undefined denies. The input document holds labels and ids, never a word of a memory.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Protocol

from memoranda.engines.egress import Egress
from memoranda.errors import ComponentUnavailable, ConfigRefused
from memoranda.governance.credentials import Secret
from memoranda.values import dataclass

Package = Literal["memory.write", "memory.search"]
PACKAGES: tuple[Package, ...] = ("memory.write", "memory.search")


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer: `reasons` are codes of what speaks against it, sorted; `policy` says what decided, for the audit."""

    allow: bool
    reasons: tuple[str, ...]
    policy: str


class Decisions(Protocol):
    """What decides. ComponentUnavailable where it does not answer; nothing but an answer allows."""

    @property
    def shipped(self) -> bool:
        """Whether the policies are known to be those that are shipped.

        These ask for no taint, and for personal data only where the agent's policy refuses it; whoever asks them need
        not find out more. Others may look at everything in the input.
        """
        ...

    def decide(self, package: Package, input: Mapping[str, Any]) -> Decision:
        """The decision on this input document."""
        ...

    def ready(self) -> None:
        """Returns where decisions can be made."""
        ...


def shipped_policies() -> dict[str, str]:
    """The Rego files that are shipped, without their tests: name -> text."""
    folder = files("memoranda.governance") / "shipped"
    names = sorted(one.name for one in folder.iterdir() if one.name.endswith(".rego"))
    return {name: (folder / name).read_text("utf-8") for name in names if not name.endswith("_test.rego")}


def policies_in(folder: Path) -> dict[str, str]:
    """The Rego files of a folder, without tests; ConfigRefused where there are none."""
    try:
        found = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.rego"))}
    except (OSError, ValueError) as error:
        raise ConfigRefused(f"The policies in {folder} cannot be read.", why=str(error)) from error
    found = {name: text for name, text in found.items() if not name.endswith("_test.rego")}
    if not found:
        raise ConfigRefused(f"There are no policies (*.rego) in {folder}.")
    return found


def decision_of(answer: object, policy: str) -> Decision:
    """What a document `{allow, deny}` says; anything that is not plainly an allow denies."""
    if not isinstance(answer, Mapping):
        return Decision(False, ("undefined",), policy)
    told = answer.get("deny", ())
    if not isinstance(told, (list, tuple)) or not all(isinstance(one, str) for one in told):
        return Decision(False, ("undefined",), policy)
    reasons = tuple(sorted(told))
    if answer.get("allow") is True and not reasons:
        return Decision(True, (), policy)
    return Decision(False, reasons or ("undefined",), policy)


class Opa:
    """An OPA server that was given the shipped policies, and maybe more, asked by its REST interface."""

    shipped = False

    def __init__(
        self, egress: Egress, url: str, *, token: Callable[[], Secret] | None = None, timeout: float = 2.0
    ) -> None:
        self._target = egress.to(url, name="OPA", timeout=timeout, failing=ComponentUnavailable)
        self._token = token

    def decide(self, package: Package, input: Mapping[str, Any]) -> Decision:
        """As `Decisions.decide`. What is undefined there denies; what is no decision at all is ComponentUnavailable."""
        policy = f"opa:{package}"
        if package not in PACKAGES:
            return Decision(False, ("undefined",), policy)
        headers = {"authorization": f"Bearer {self._token().reveal()}"} if self._token else {}
        path = f"/v1/data/{package.replace('.', '/')}"
        reply = self._target.request("POST", path, json={"input": input}, headers=headers)
        if reply.status != 200:
            self._target.fail(f"It answered with status {reply.status}.")
        answer = self._target.answer(reply)
        if not isinstance(answer, dict):
            self._target.fail("It answered something that is no object.")
        if "result" not in answer:
            return Decision(False, ("undefined",), policy)
        result = answer["result"]
        if not isinstance(result, dict) or not isinstance(result.get("allow"), bool):
            self._target.fail("It answered neither yes nor no.")
        return decision_of(result, policy)

    def ready(self) -> None:
        """As `Decisions.ready`: decisions on nothing have to be no, for a reason that our policies give."""
        for package in PACKAGES:
            told = self.decide(package, {})
            if told.allow or "input_incomplete" not in told.reasons:
                raise ComponentUnavailable(
                    f"OPA does not decide {package} by the policies of this service.",
                    remedy="Give it the files of policies/.",
                )


# An engine may be dropped by its own thread only: it goes when that ends, not when whoever asked it goes.
_KEPT: list[threading.local] = []


class EmbeddedDecisions:
    """Rego in process. An engine is of one thread only, so each thread makes its own at its first decision."""

    def __init__(self, policies: Path | None = None) -> None:
        self._policies = policies_in(policies) if policies else shipped_policies()
        together = "\0".join(f"{name}\0{text}" for name, text in self._policies.items())
        self.shipped = self._policies == shipped_policies() if policies else True
        self._digest = hashlib.sha256(together.encode()).hexdigest()[:12]
        self._threads = threading.local()
        _KEPT.append(self._threads)
        self._engine()  # what cannot be read is refused now, and not at the first request

    def decide(self, package: Package, input: Mapping[str, Any]) -> Decision:
        """As `Decisions.decide`."""
        policy = f"{package}@{self._digest}"
        if package not in PACKAGES:
            return Decision(False, ("undefined",), policy)
        engine = self._engine()
        # As JSON: the engine takes a bool of Python for a number.
        engine.set_input_json(json.dumps(input))
        try:
            answer = json.loads(engine.eval_rule_as_json(f"data.memoranda_answer.{_rule(package)}"))
        except (RuntimeError, ValueError) as error:
            raise ComponentUnavailable(
                f"The decision {package} could not be worked out.",
                why=str(error).partition("Stack backtrace")[0].strip(),
                remedy="Check the policies; until then everything is denied.",
            ) from error
        return decision_of(answer, policy)

    def ready(self) -> None:
        """As `Decisions.ready`: one decision on nothing, which has to be no."""
        if any(self.decide(package, {}).allow for package in PACKAGES):
            raise ComponentUnavailable("The policies allow what nobody asked for.", remedy="Check the policies.")

    def _engine(self) -> Any:
        engine = getattr(self._threads, "engine", None)
        if engine is None:
            import regorus

            engine = regorus.Engine()
            for name, text in (*self._policies.items(), ("memoranda_answer.rego", _ANSWER)):
                try:
                    engine.add_policy(name, text)
                except RuntimeError as error:
                    raise ConfigRefused(
                        f"The policy {name} cannot be taken.",
                        why=str(error).partition("Stack backtrace")[0].strip(),
                    ) from error
            self._threads.engine = engine
        return engine


def _rule(package: str) -> str:
    return package.replace(".", "_")


# Both halves of an answer are asked for at once, by a rule beside the policies: it is read once and not at each call.
_ANSWER = "package memoranda_answer\nimport rego.v1\n" + "".join(
    f'{_rule(package)} := {{"allow": data.{package}.allow, "deny": data.{package}.deny}}\n' for package in PACKAGES
)
