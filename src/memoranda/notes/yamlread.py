"""Reading front matter with a YAML parser: from its events, so that nothing in a file can do harm.

No alias can multiply, no nesting can exhaust the stack, no tag can make an object, and no word turns into something
else than was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memoranda.notes.scalars import resolve_plain
from memoranda.values import dataclass

NOT_YAML = "front matter: not YAML"
SIZE_LIMIT = 262_144  # characters; what is longer is read by lines, which costs the same for every line
_DEPTH_LIMIT = 32


@dataclass(frozen=True, slots=True)
class Span:
    """One `key: value` of the outermost mapping; positions are characters of the text.

    `value_start` and `value_end` are equal when nothing is written. `block` says that the value is a list or mapping
    spread over lines; `items` are the value and first character of each entry of such a list.
    """

    key: str
    key_end: int
    value: object
    value_start: int
    value_end: int
    block: bool
    items: tuple[tuple[object, int], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What `parse` found: spans in order, problems, and what the whole is."""

    spans: tuple[Span, ...]
    problems: tuple[str, ...]
    root: str  # "block", "flow", "empty", "other" (not a mapping), "broken" (no YAML)
    end: int = 0  # for "flow": where the closing brace stands


class _TooDeep(Exception):
    """More brackets in brackets than anybody means."""


def parse(text: str) -> Reading:
    """Everything that a YAML parser finds in this text; it never raises for any text without surrogates."""
    import yaml  # here, since a fresh process that meets only simple notes does without

    if len(text) > SIZE_LIMIT:
        return Reading((), ("front matter: too large to parse",), "broken")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml.parse(text, Loader=loader))
    try:
        root, end = builder.document()
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 2}" if error.problem_mark else ""
        # The value before the mistake may be cut short (`subject: one: two`), and is better left to `salvage`.
        return Reading(tuple(builder.spans[:-1]), (*builder.problems, f"{NOT_YAML}{line}"), "broken")
    except yaml.YAMLError:
        return Reading((), (*builder.problems, f"{NOT_YAML}, a character it does not allow"), "broken")
    except _TooDeep:
        return Reading(tuple(builder.spans), (*builder.problems, "front matter: nested too deeply"), "broken")
    return Reading(tuple(builder.spans), tuple(builder.problems), root, end)


class _Builder:
    """Builds values from the events of one document."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.spans: list[Span] = []
        self.problems: list[str] = []
        self.last = 0  # the character after the last thing that was read

    def _next(self) -> tuple[Any, str]:
        event = next(self.events)
        return event, type(event).__name__

    def _say(self, problem: str, event: Any) -> None:
        self.problems.append(f"front matter: {problem} at line {event.start_mark.line + 2}")

    def document(self) -> tuple[str, int]:
        """Reads the whole stream; gives the kind of the root and the position of its end."""
        for event in self.events:
            if type(event).__name__ == "DocumentStartEvent":
                break
        else:
            return "empty", 0
        event, kind = self._next()
        if kind == "MappingStartEvent":
            self._outermost()
            root = "flow" if event.flow_style else "block"
        else:
            value = self._value(event, kind, 1)
            root = "empty" if value is None and kind == "ScalarEvent" else "other"
        end = self.last
        for event in self.events:
            if type(event).__name__ == "DocumentStartEvent":
                self._say("a second document", event)
        return root, end

    def _outermost(self) -> None:
        seen: set[str] = set()
        while True:
            event, kind = self._next()
            if kind == "MappingEndEvent":
                self.last = max(self.last, event.start_mark.index)
                return
            is_key = kind == "ScalarEvent"
            key_end = event.end_mark.index
            key = event.value if is_key else ""
            if not is_key:
                self._say("a key that is not text", event)
                self._value(event, kind, 2)
            elif key in seen:
                self._say("a key that was there before", event)
                is_key = False
            seen.add(key)
            event, kind = self._next()
            start = event.start_mark.index
            items: list[tuple[object, int]] = []
            value = self._value(event, kind, 2, items)
            block = kind in ("SequenceStartEvent", "MappingStartEvent") and not event.flow_style
            if is_key:
                self.spans.append(Span(key, key_end, value, start, self.last, block, tuple(items)))

    def _value(self, event: Any, kind: str, depth: int, items: list[tuple[object, int]] | None = None) -> object:
        """The value that begins with this event. Positions of a list's entries go to `items`."""
        if depth > _DEPTH_LIMIT:
            raise _TooDeep
        if kind == "AliasEvent":
            self._say("an alias", event)
            self.last = event.end_mark.index
            return None
        if event.anchor is not None:
            self._say("an anchor", event)
        if kind == "ScalarEvent":
            self.last = event.end_mark.index
            return self._scalar(event)
        if event.tag is not None:
            self._say("a tag", event)
        if kind == "SequenceStartEvent":
            return self._sequence(depth, items)
        return self._mapping(depth)

    def _scalar(self, event: Any) -> object:
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            self._say("a tag", event)
            return event.value
        return event.value if event.style or event.tag else resolve_plain(event.value)

    def _sequence(self, depth: int, items: list[tuple[object, int]] | None) -> list[object]:
        out: list[object] = []
        while True:
            event, kind = self._next()
            if kind == "SequenceEndEvent":
                self._close(event)
                return out
            start = event.start_mark.index
            out.append(self._value(event, kind, depth + 1))
            if items is not None:
                items.append((out[-1], start))

    def _mapping(self, depth: int) -> dict[str, object]:
        out: dict[str, object] = {}
        while True:
            event, kind = self._next()
            if kind == "MappingEndEvent":
                self._close(event)
                return out
            key = event.value if kind == "ScalarEvent" else None
            if key is None:
                self._say("a key that is not text", event)
            self._value(event, kind, depth + 1)
            event, kind = self._next()
            value = self._value(event, kind, depth + 1)
            if key in out:
                self._say("a key that was there before", event)
            elif key is not None:
                out[key] = value

    def _close(self, event: Any) -> None:
        # A bracket closes where it stands; the end of a block is only noticed later, past comments and empty lines.
        if event.end_mark.index > event.start_mark.index:
            self.last = event.end_mark.index
