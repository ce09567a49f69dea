"""The note: what a Markdown file of memory means, read from any bytes and written in one form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from memoranda.errors import InvalidNote, InvalidPath, InvalidTime
from memoranda.notes import frontmatter, markdown
from memoranda.notes.ids import is_note_id, note_id_for_path
from memoranda.notes.lazyre import lazy
from memoranda.notes.pointers import parse_pointer
from memoranda.notes.times import Interval, format_instant, parse_instant
from memoranda.notes.words import CLASSIFICATIONS, KINDS, ORIGINS, RETENTION_CLASSES, SCOPES, SIZE_LIMIT
from memoranda.values import dataclass, field

OWNERS = ("project", "user", "agent", "team", "session")
TAINTS = ("external",)
_RETENTION = (None, *RETENTION_CLASSES)

_KNOWN = frozenset(
    (
        *("id", "kind", "subject", "scope", "valid_from", "valid_to", "recorded_at", "confidence", "origin", "taint"),
        *("reviewed", "classification", "generated", "retention_days", "legal_hold", "retention_class"),
        *("sources", "supersedes"),
    )
)
_URI = lazy(r"[a-z][a-z0-9+.-]*:[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_SURROGATE = lazy("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Note:
    """One remembered thing. The fields bear the names of the front matter; all times are aware and in UTC.

    `owner` holds those of project, user, agent, team and session that apply. `confidence` lies in 0..1. `reviewed` is
    the word in the file, a display and no attestation. `body` is the text below the front matter with line ends `\\n`
    and without the last one; its line n is line `front_lines + n` of the file. `extra` holds the fields that are not
    ours, as they were written. `title`, `tags` and `links` are read from text and fields. `problems` says what was odd
    about the file, in words that repeat no content.
    """

    id: str
    kind: str = "semantic"
    subject: str | None = None
    scope: str = "user"
    owner: Mapping[str, str] = field(default_factory=dict, hash=False)
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_at: datetime | None = None
    confidence: float | None = None
    origin: str = "human"
    taint: tuple[str, ...] = ()
    reviewed: bool = False
    classification: str = "internal"
    generated: bool = False
    retention_days: int | None = None
    legal_hold: bool = False
    retention_class: str | None = None
    sources: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    title: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    body: str = ""
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)
    problems: tuple[str, ...] = ()
    front_lines: int = 0


def read_note(path: str, data: bytes) -> Note:
    """The note in these bytes. Takes any bytes and raises nothing: what is odd is named in `problems`.

    What a file does not say: semantic, scope user, origin human, internal. A value that cannot be understood counts as
    not said, except where that would make more of the note than its author did: an unknown origin counts as external,
    an unknown classification as restricted.
    """
    parts = frontmatter.split(data)
    fields, odd = frontmatter.read_fields(parts)
    if odd and frontmatter.NOT_FIELDS in odd:
        front, raw = parts.bom, data[len(parts.bom) :]  # two rules with text between them: the text is the note's
    else:
        front, raw = data[: len(data) - len(parts.body)], parts.body
    problems = list(odd)
    body = _decode(raw, problems)
    if not data:
        problems.append("empty file")
    elif len(data) > SIZE_LIMIT:
        problems.append("larger than 1 MiB")
    take = _Taker(fields, problems)
    starts, ends = take.interval()
    own_id = take.text("id")
    if own_id is not None and not is_note_id(own_id):
        problems.append("id: not the id of a note")
        own_id = None
    extra = take.rest()
    return Note(
        id=own_id or note_id_for_path(path),
        kind=take.word("kind", KINDS, "semantic", "semantic"),
        subject=take.text("subject"),
        scope=take.word("scope", SCOPES, "user", "user"),
        owner={name: value for name in OWNERS if isinstance(value := fields.get(name), str) and value},
        valid_from=starts,
        valid_to=ends,
        recorded_at=take.time("recorded_at"),
        confidence=take.confidence(),
        origin=take.word("origin", ORIGINS, "human", "external"),
        taint=take.texts("taint"),
        reviewed=take.flag("reviewed"),
        classification=take.word("classification", CLASSIFICATIONS, "internal", "restricted"),
        generated=take.flag("generated"),
        retention_days=take.days(),
        legal_hold=take.flag("legal_hold"),
        retention_class=take.word("retention_class", RETENTION_CLASSES, "", "") or None,
        sources=take.texts("sources"),
        supersedes=take.texts("supersedes", is_note_id),
        title=_title(extra, body, path),
        tags=_tags(extra, body),
        links=_links(extra, body),
        body=body,
        extra=extra,
        problems=tuple(problems),
        front_lines=front.count(b"\n"),
    )


def _decode(raw: bytes, problems: list[str]) -> str:
    try:
        body = raw.decode("utf-8")
    except UnicodeDecodeError:
        problems.append("text: not UTF-8")
        body = raw.decode("utf-8", "replace")
    if "\x00" in body:
        problems.append("text: holds a NUL")
    if "\r" in body:
        body = body.replace("\r\n", "\n")
    return body[:-1] if body.endswith("\n") else body


class _Taker:
    """Takes typed values out of the fields of one file and notes what does not fit."""

    __slots__ = ("fields", "problems")

    def __init__(self, fields: Mapping[str, object], problems: list[str]) -> None:
        self.fields = fields
        self.problems = problems

    def text(self, key: str) -> str | None:
        value = self.fields.get(key)
        if value is None or isinstance(value, str):
            return value or None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        self.problems.append(f"{key}: not text")
        return None

    def word(self, key: str, words: tuple[str, ...], absent: str, unknown: str) -> str:
        value = self.fields.get(key)
        if value is None:
            return absent
        if value in words:
            return str(value)
        self.problems.append(f"{key}: not one of {', '.join(words)}")
        return unknown

    def flag(self, key: str) -> bool:
        value = self.fields.get(key)
        if value is not None and not isinstance(value, bool):
            self.problems.append(f"{key}: neither true nor false")
        return value is True

    def texts(self, key: str, accepts: Callable[[str], bool] | None = None) -> tuple[str, ...]:
        value = self.fields.get(key)
        if value is None or value == "":
            return ()
        items = value if isinstance(value, list) else [value]
        good = tuple([item for item in items if isinstance(item, str) and item and (not accepts or accepts(item))])
        if len(good) < len(items):
            self.problems.append(f"{key}: an entry that cannot be one")
        return good

    def time(self, key: str) -> datetime | None:
        value = self.fields.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            try:
                return parse_instant(value)
            except InvalidTime:
                pass
        self.problems.append(f"{key}: not a possible date or time")
        return None

    def interval(self) -> tuple[datetime | None, datetime | None]:
        starts, ends = self.time("valid_from"), self.time("valid_to")
        if starts is not None and ends is not None and ends <= starts:
            self.problems.append("valid_to: not after valid_from")
            ends = None
        return starts, ends

    def confidence(self) -> float | None:
        value = self.fields.get("confidence")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        if value is not None:
            self.problems.append("confidence: not a number from 0 to 1")
        return None

    def days(self) -> int | None:
        value = self.fields.get("retention_days")
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if value is not None:
            self.problems.append("retention_days: not a number of days")
        return None

    def rest(self) -> dict[str, object]:
        """The fields that are not ours; an owner's name with something else than text in it is somebody else's."""
        return {
            key: value
            for key, value in self.fields.items()
            if key not in _KNOWN and not (key in OWNERS and isinstance(value, str) and value)
        }


def _title(extra: Mapping[str, object], body: str, path: str) -> str:
    named = extra.get("title") if extra else None
    if isinstance(named, str) and named.strip():
        return named.strip()
    return markdown.title(body) or path.rpartition("/")[2].removesuffix(".md")


def _tags(extra: Mapping[str, object], body: str) -> tuple[str, ...]:
    if not extra and "#" not in body:
        return ()
    found: dict[str, None] = {}
    for key in ("tags", "tag"):
        value = extra.get(key) if extra else None
        items = re.split(r"[,\s]+", value) if isinstance(value, str) else value if isinstance(value, list) else []
        found.update(
            dict.fromkeys(tag for item in items if isinstance(item, str) and (tag := item.strip().lstrip("#")))
        )
    found.update(dict.fromkeys(markdown.tags(body)))
    return tuple(found)


def _links(extra: Mapping[str, object], body: str) -> tuple[str, ...]:
    if not extra and "[[" not in body and "](" not in body:
        return ()
    found: dict[str, None] = {}
    for value in extra.values():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, str) and "[[" in item:
                found.update(dict.fromkeys(markdown.links(item)))
    found.update(dict.fromkeys(markdown.links(body)))
    return tuple(found)


def write_note(note: Note, recorded_at: datetime | None = None, sources: tuple[str, ...] = ()) -> bytes:
    """The bytes of a new file: the fields that are set in their usual order, then foreign ones, then the text.

    `read_note` gives the same note back. Line ends become `\\n`. `recorded_at` and `sources` are what is known at the
    last moment, and stand in the place of the note's own.

    Raises:
        InvalidNote: a foreign field that front matter cannot hold, or text that is not Unicode.
    """
    own_id = frontmatter.Plain(note.id) if is_note_id(note.id) else note.id
    fields: dict[str, object] = {"id": own_id, "kind": note.kind}
    if note.subject is not None:
        fields["subject"] = note.subject
    fields["scope"] = note.scope
    for name in OWNERS:
        if name in note.owner:
            fields[name] = note.owner[name]
    if note.valid_from is not None:
        fields["valid_from"] = note.valid_from
    fields["valid_to"] = note.valid_to
    recorded_at = recorded_at or note.recorded_at
    if recorded_at is not None:
        fields["recorded_at"] = frontmatter.Plain(format_instant(recorded_at))
    if note.confidence is not None:
        fields["confidence"] = note.confidence
    fields["origin"] = note.origin
    fields["taint"] = note.taint
    fields["reviewed"] = note.reviewed
    fields["classification"] = note.classification
    fields["generated"] = note.generated
    if note.retention_days is not None:
        fields["retention_days"] = note.retention_days
    if note.legal_hold:
        fields["legal_hold"] = True
    if note.retention_class is not None:
        fields["retention_class"] = note.retention_class
    fields["sources"] = sources or note.sources
    if note.supersedes:
        fields["supersedes"] = note.supersedes
    if note.tags and "tags" not in note.extra:
        in_text = markdown.tags(note.body)
        if unsaid := [tag for tag in note.tags if tag not in in_text]:
            fields["tags"] = unsaid
    for key, value in note.extra.items():
        fields.setdefault(key, value)
    return frontmatter.render(fields, note.body.replace("\r\n", "\n").replace("\r", "\n"))


def check_draft(note: Note) -> None:
    """Nothing when this note may be written.

    Raises:
        InvalidNote: an empty text, a NUL, half a surrogate pair, more than 1 MiB, an unknown kind, scope, origin or
            classification, a confidence outside 0..1, an impossible id among its own or `supersedes`, a source that
            is no URI.
        InvalidTime: `valid_to` is not after `valid_from`.
        InvalidPointer: a source that begins with `nas://` and is no pointer.
        InvalidPath: a subject that climbs.
    """
    check_text(note.body)
    _check_characters(note)
    if len(note.body) * 4 > SIZE_LIMIT and (size := len(note.body.encode("utf-8"))) > SIZE_LIMIT:
        raise _refuse(
            "The text is too large for one note.",
            f"It has {size} bytes and {SIZE_LIMIT} are the most.",
            "Split it, or keep the file where it is and remember a note that cites it as a source.",
        )
    for name, word, words in (
        ("kind", note.kind, KINDS), ("scope", note.scope, SCOPES), ("origin", note.origin, ORIGINS),
        ("classification", note.classification, CLASSIFICATIONS),
        ("retention_class", note.retention_class, _RETENTION),
    ):  # fmt: skip
        if word not in words:
            raise _refuse(
                f"The {name} is not one that notes have.", "", f"Give one of {', '.join(filter(None, words))}."
            )
    if note.retention_days is not None and note.retention_days < 0:
        raise _refuse("The retention_days are negative.", "", "Give a number of days, or none.")
    if note.confidence is not None and not 0 <= note.confidence <= 1:
        raise _refuse("The confidence is not between 0 and 1.", "", "Give a number such as 0.8, or none.")
    if note.subject is not None and {".", ".."} & set(note.subject.replace("\\", "/").split("/")):
        raise InvalidPath(
            f"The subject {note.subject!r} is no path of words.", why="It climbs, with `.` or `..` among its steps.",
            remedy="Give a subject such as customer/acme.",
        )  # fmt: skip
    if note.valid_from is not None and note.valid_to is not None:
        Interval(note.valid_from, note.valid_to)
    for identifier in (note.id, *note.supersedes):
        if not is_note_id(identifier):
            raise _refuse(
                f"There is no note's id in {'id' if identifier is note.id else 'supersedes'}.",
                "It does not have the form of one.",
                "An id is mem_ and 4 to 64 lower-case letters or digits; `memoranda list` shows them.",
            )
    for source in note.sources:
        _check_source(source)


def check_text(text: str) -> None:
    """Nothing when these words may be kept, in a note or elsewhere. InvalidNote: empty, a NUL, half a surrogate."""
    if not text.strip():
        raise _refuse("The text is empty.", "", "Say what is to be remembered.")
    _check_characters_of("text", text)


def _check_characters(note: Note) -> None:
    texts = [("subject", note.subject or "")]
    for source in note.sources:
        texts.append(("sources", source))
    for owner in note.owner.values():
        texts.append(("owner", owner))
    for what, text in texts:
        _check_characters_of(what, text)


def _check_characters_of(what: str, text: str) -> None:
    if "\x00" in text:
        raise _refuse(f"The {what} holds a NUL character.", "Text files cannot hold one.", "Remove it.")
    if not text.isascii() and _SURROGATE.search(text):
        raise _refuse(
            f"The {what} holds half of a surrogate pair.", "That is not a character.", "Decode the text properly."
        )


def _check_source(source: str) -> None:
    if source.startswith("nas://"):
        parse_pointer(source)
    elif not _URI.fullmatch(source):
        raise _refuse(
            "A source is not a URI.",
            "It has no scheme, or a space in it.",
            "Give an address such as https://…, file:///… or nas://<home>/<path>@<revision>#L<a>-L<b>.",
        )


def _refuse(what: str, why: str, remedy: str) -> InvalidNote:
    return InvalidNote(what, why=why, remedy=remedy)
