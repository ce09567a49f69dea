"""A relation model in OpenFGA's language (schema 1.1): read from the very file that OpenFGA is given, and evaluated.

What OpenFGA's language has and this does not know (conditions, modules) is refused when the model is read, so that
nothing is evaluated by half. `evaluate` is the least fixed point of the definitions: what leads only to itself holds
for nobody, and what leads deeper than `DEPTH` does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from memoranda.errors import ConfigRefused, InvalidInput
from memoranda.values import dataclass

DEPTH = 25  # as OpenFGA's own limit


@dataclass(frozen=True, slots=True)
class Direct:
    """Tuples that name a user of one of these kinds: `user`, `team#member`, `user:*`."""

    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Computed:
    """Whoever has another relation on the same object."""

    relation: str


@dataclass(frozen=True, slots=True)
class From:
    """Whoever has `relation` on an object that `tupleset` of this one names (`admin from tenant`)."""

    relation: str
    tupleset: str


@dataclass(frozen=True, slots=True)
class Union:
    """Whoever one of the parts holds for."""

    parts: tuple[Rewrite, ...]


@dataclass(frozen=True, slots=True)
class Intersection:
    """Whoever all of the parts hold for."""

    parts: tuple[Rewrite, ...]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Whoever `base` holds for and `but_not` does not."""

    base: Rewrite
    but_not: Rewrite


Rewrite: TypeAlias = Direct | Computed | From | Union | Intersection | Exclusion
Model: TypeAlias = Mapping[str, Mapping[str, Rewrite]]  # type -> relation -> definition
Reader: TypeAlias = Callable[[str, str], Iterable[tuple[str, str]]]  # (object, user) -> (relation, user of the tuple)

_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,49}"
_TOKEN = re.compile(rf"\s*(?:(but\s+not\b)|(\[[^\]]*\])|([()])|({_NAME}))")
_KIND = re.compile(rf"{_NAME}(?::\*|#{_NAME})?")
_OBJECT = re.compile(rf"({_NAME}):([^\s:#*]{{1,200}})")
_USER = re.compile(rf"({_NAME}):(?:(\*)|([^\s:#*]{{1,200}})(?:#({_NAME}))?)")


# Reading a model


def parse(text: str) -> dict[str, dict[str, Rewrite]]:
    """The model that this text defines; ConfigRefused names the line that cannot be taken."""
    model: dict[str, dict[str, Rewrite]] = {}
    relations: dict[str, Rewrite] | None = None
    heads: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(^|\s)#.*", "", line).strip()
        if not words:
            continue
        if defined := re.fullmatch(rf"define\s+({_NAME})\s*:\s*(.+)", words):
            if relations is None or defined[1] in relations:
                raise _refused(number, words)
            relations[defined[1]] = _rewrite(defined[2], number)
        elif typed := re.fullmatch(rf"type\s+({_NAME})", words):
            if typed[1] in model:
                raise _refused(number, words)
            relations = model[typed[1]] = {}
        elif words != "relations":
            heads.append(re.sub(r"\s+", " ", words))
    if heads != ["model", "schema 1.1"]:
        raise _refused(1, " ".join(heads))
    _closed(model)
    return model


def _refused(line: int, words: str) -> ConfigRefused:
    return ConfigRefused(
        f"Line {line} of the relation model cannot be taken: {words[:200]!r}.",
        why="It is not in the part of OpenFGA's language (schema 1.1) that is evaluated here.",
        remedy="Use the model as it is shipped, or ask OpenFGA instead.",
    )


def _rewrite(words: str, line: int) -> Rewrite:
    tokens: list[str] = []
    at = 0
    while at < len(words):
        match = _TOKEN.match(words, at)
        if match is None:
            raise _refused(line, words)
        tokens.append("but not" if match[1] else match[0].strip())
        at = match.end()
    rest = tokens[::-1]
    found = _expression(rest, line, words)
    if rest:
        raise _refused(line, words)
    return found


def _expression(rest: list[str], line: int, words: str) -> Rewrite:
    """One expression from the end of `rest` (the next token is the last); operators are not mixed unparenthesised."""
    parts = [_term(rest, line, words)]
    operator = rest[-1] if rest and rest[-1] in ("or", "and", "but not") else ""
    while rest and operator and rest[-1] == operator:
        rest.pop()
        parts.append(_term(rest, line, words))
    if operator == "or":
        return Union(tuple(parts))
    if operator == "and":
        return Intersection(tuple(parts))
    if operator == "but not":
        if len(parts) != 2:
            raise _refused(line, words)
        return Exclusion(parts[0], parts[1])
    return parts[0]


def _term(rest: list[str], line: int, words: str) -> Rewrite:
    token = rest.pop() if rest else ""
    if token == "(":
        inner = _expression(rest, line, words)
        if not rest or rest.pop() != ")":
            raise _refused(line, words)
        return inner
    if token.startswith("["):
        kinds = [kind.strip() for kind in token[1:-1].split(",")]
        if not all(_KIND.fullmatch(kind) for kind in kinds):
            raise _refused(line, words)
        return Direct(frozenset(kinds))
    if not re.fullmatch(_NAME, token) or token in ("or", "and", "from", "with"):
        raise _refused(line, words)
    if rest and rest[-1] == "from":
        rest.pop()
        tupleset = rest.pop() if rest else ""
        if not re.fullmatch(_NAME, tupleset):
            raise _refused(line, words)
        return From(token, tupleset)
    return Computed(token)


def _closed(model: Model) -> None:
    """Refuses a model that names a type or a relation which it does not define."""
    for kind, relations in model.items():
        for name, rewrite in relations.items():
            for part in _walk(rewrite):
                if not _known(model, relations, part):
                    raise ConfigRefused(
                        f"The relation model does not define all that {kind}#{name} names.",
                        remedy="Use the model as it is shipped.",
                    )


def _known(model: Model, relations: Mapping[str, Rewrite], part: Rewrite) -> bool:
    if isinstance(part, Computed):
        return part.relation in relations
    if isinstance(part, From):
        tupleset = relations.get(part.tupleset)
        if not isinstance(tupleset, Direct):
            return False
        return any(part.relation in model.get(kind, {}) for kind in tupleset.kinds)
    if isinstance(part, Direct):
        for kind in part.kinds:
            of, _, relation = kind.removesuffix(":*").partition("#")
            if of not in model or (relation and relation not in model[of]):
                return False
    return True


def _walk(rewrite: Rewrite) -> Iterator[Rewrite]:
    yield rewrite
    if isinstance(rewrite, (Union, Intersection)):
        for part in rewrite.parts:
            yield from _walk(part)
    elif isinstance(rewrite, Exclusion):
        yield from _walk(rewrite.base)
        yield from _walk(rewrite.but_not)


# What fits a model


def kind_of(user: str) -> str | None:
    """The kind that a tuple's user is of, as a definition names it: `user`, `team#member`, `user:*`; None: neither."""
    match = _USER.fullmatch(user)
    if match is None:
        return None
    kind, star, _, relation = match.groups()
    return f"{kind}:*" if star else f"{kind}#{relation}" if relation else kind


def fits(model: Model, user: str, relation: str, object: str) -> bool:
    """Whether a tuple may stand in a store of this model."""
    match = _OBJECT.fullmatch(object)
    rewrite = model.get(match[1], {}).get(relation) if match else None
    kind = kind_of(user)
    return rewrite is not None and any(isinstance(part, Direct) and kind in part.kinds for part in _walk(rewrite))


def defines(model: Model, user: str, relation: str, object: str) -> str:
    """The kind of `user`; InvalidInput when the model knows no such relation, object or kind of user."""
    asked = _OBJECT.fullmatch(object)
    kind = kind_of(user) or ""
    of, _, through = kind.partition("#")
    if (
        asked is None
        or relation not in model.get(asked[1], {})
        or of not in model
        or (through and through not in model[of])
    ):
        raise InvalidInput(
            f"The relation model knows nothing of {user[:100]!r} as {relation[:50]!r} of {object[:100]!r}.",
            why="A user, a relation or an object is not of a kind that it defines.",
        )
    return kind


# Evaluating a model

_YES, _NO, _CUT = 1, 0, -1  # _CUT: not known, for the way there leads through itself or too deep


def evaluate(model: Model, read: Reader, user: str, relation: str, object: str) -> bool:
    """Whether `user` stands in `relation` to `object`, by the tuples that `read(object, user)` gives.

    `read` gives of an object all tuples whose user is `user`, and all whose user is not a plain `user:…`; more does
    not matter. InvalidInput as `defines`.
    """
    run = _Run(model, read, user, defines(model, user, relation, object))
    while True:
        run.begin()
        found = run.check(object, relation, DEPTH)
        # What was cut may hold by what was found since; without anything new it holds for nobody.
        if found != _CUT or not run.learned:
            return found == _YES


class _Run:
    """One question: what was read, and what is known by now of (object, relation)."""

    def __init__(self, model: Model, read: Reader, user: str, kind: str) -> None:
        self.model, self.read, self.user, self.kind = model, read, user, kind
        self.tuples: dict[str, list[tuple[str, str]]] = {}
        self.known: dict[tuple[str, str], bool] = {}
        self.begin()

    def begin(self) -> None:
        """Another pass: everything that is not known is looked at once more."""
        self.met: dict[tuple[str, str], int] = {}  # what was looked at in this pass, from how high
        self.learned = False

    def users(self, object: str, relation: str) -> list[str]:
        if object not in self.tuples:
            self.tuples[object] = list(self.read(object, self.user))
        return [user for of, user in self.tuples[object] if of == relation]

    def check(self, object: str, relation: str, depth: int) -> int:
        at = (object, relation)
        if at in self.known:
            return _YES if self.known[at] else _NO
        rewrite = self.model.get(object.partition(":")[0], {}).get(relation)
        if rewrite is None:
            return _NO
        if self.user == f"{object}#{relation}":
            return _YES
        if self.met.get(at, 0) >= depth:
            return _CUT
        self.met[at] = depth
        found = self.rewritten(object, relation, rewrite, depth)
        if found != _CUT:
            self.known[at] = found == _YES
            self.learned = True
        return found

    def rewritten(self, object: str, relation: str, rewrite: Rewrite, depth: int) -> int:
        if isinstance(rewrite, Direct):
            return self.direct(object, relation, rewrite, depth)
        if isinstance(rewrite, Computed):
            return self.check(object, rewrite.relation, depth)
        if isinstance(rewrite, From):
            kinds = self.model[object.partition(":")[0]][rewrite.tupleset]
            allowed = kinds.kinds if isinstance(kinds, Direct) else frozenset()
            through = [parent for parent in self.users(object, rewrite.tupleset) if kind_of(parent) in allowed]
            return _any(self.check(parent, rewrite.relation, depth - 1) for parent in through)
        if isinstance(rewrite, Union):
            return _any(self.rewritten(object, relation, part, depth) for part in rewrite.parts)
        if isinstance(rewrite, Intersection):
            return _all(self.rewritten(object, relation, part, depth) for part in rewrite.parts)
        base = self.rewritten(object, relation, rewrite.base, depth)
        return _all((base, _not(self.rewritten(object, relation, rewrite.but_not, depth)))) if base else _NO

    def direct(self, object: str, relation: str, rewrite: Direct, depth: int) -> int:
        users = self.users(object, relation)
        if (self.kind in rewrite.kinds and self.user in users) or (
            f"{self.kind}:*" in rewrite.kinds and f"{self.kind}:*" in users
        ):
            return _YES
        sets = [user.partition("#") for user in users if "#" in user and kind_of(user) in rewrite.kinds]
        return _any(self.check(members, of, depth - 1) for members, _, of in sets)


def _any(parts: Iterable[int]) -> int:
    found = _NO
    for part in parts:
        if part == _YES:
            return _YES
        found = found or part
    return found


def _all(parts: Iterable[int]) -> int:
    found = _YES
    for part in parts:
        if part == _NO:
            return _NO
        found = part if part == _CUT else found
    return found


def _not(part: int) -> int:
    return part if part == _CUT else _NO if part == _YES else _YES
