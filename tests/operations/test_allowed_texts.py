"""A text refused by mistake is let through by a person, by its hash, on every way in; personal data by the policy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import (
    ConfirmationRequired,
    InvalidInput,
    MemorandaError,
    NotFound,
    PersonalDataRefused,
    Refused,
    SecretRefused,
)
from memoranda.home.keys import Keys
from memoranda.home.settings import Settings
from memoranda.operations import goldens
from memoranda.operations.allowing import allow, allowed, revoke
from memoranda.operations.doctor import doctor
from memoranda.operations.importing import import_folder
from memoranda.operations.journal_import import import_journal
from memoranda.operations.journaling import Turn, append
from memoranda.operations.policy import policy_set, policy_show
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide
from memoranda.operations.session_desk import session_taint
from memoranda.operations.space import Space

VALUE = "kw7Zq2Lp" + "9XvT4mRs"
SECRET = f"The password is {VALUE}!"
MAIL = "Write to dana@example.org about it."
Way = Callable[[Context, Space, str, Path], object]


def edited(context: Context, space: Space, text: str, _tmp: Path) -> None:
    path = space.one().repository.root / "memory/notes/planted.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# Access\n\n{text}\n")
    recall(context, space, "access")
    _raise_for(f.what for f in doctor(context, space).findings if f.code == "file_refused")


def imported(context: Context, space: Space, text: str, tmp: Path) -> None:
    folder = tmp / "vault"
    folder.mkdir(exist_ok=True)
    (folder / "planted.md").write_text(text)
    _raise_for(reason for _, reason in import_folder(context, space, folder).left)


def conversed(context: Context, space: Space, text: str, tmp: Path) -> None:
    lines = tmp / "talk.jsonl"
    lines.write_text(json.dumps({"text": text}) + "\n")
    _raise_for(reason for _, reason in import_journal(context, space, lines).damaged)


def _raise_for(reasons: object) -> None:
    """Where a refusal is reported and not raised: raises it, so that all ways can be tried alike."""
    for reason in reasons:  # type: ignore[attr-defined]
        kind = PersonalDataRefused if "personal data" in reason else SecretRefused
        raise kind("It was left out.", why=reason, remedy=reason)


def first(context: Context, space: Space) -> str:
    return remember(context, space, NewNote("The safe stands in the office.")).id


WAYS: dict[str, Way] = {
    "remember": lambda c, s, text, _: remember(c, s, NewNote(text)),
    "subject": lambda c, s, text, _: remember(c, s, NewNote("Fine.", subject=text)),
    "update": lambda c, s, text, _: update(c, s, first(c, s), text),
    "journal": lambda c, s, text, _: append(c, s, Turn(text, "dana")),
    "speaker": lambda c, s, text, _: append(c, s, Turn("Fine.", text)),
    "golden": lambda c, s, text, _: goldens.golden_add(c, s, text, [first(c, s)]),
    "taint": lambda c, s, text, _: session_taint(c, s, text),
    "comment": lambda c, s, text, _: decide(replace(c, person=True), s, [first(c, s)], "accept", comment=text),
    "edit": edited,
    "import": imported,
    "journal import": conversed,
}


EACH = [pytest.param(name, marks=pytest.mark.disk if name == "edit" else ()) for name in WAYS]


def refused(way: Way, context: Context, space: Space, text: str, tmp: Path, value: str) -> str:
    """The hash that the refusal names."""
    with pytest.raises((SecretRefused, PersonalDataRefused)) as caught:
        way(context, space, text, tmp)
    assert value not in str(caught.value)
    found = re.search(r"memoranda allow add text ([0-9a-f]{32}) ", str(caught.value))
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", EACH)
def test_a_person_lets_one_text_through_and_takes_it_back(
    name: str, context: Context, space: Space, keys: Keys, tmp_path: Path
) -> None:
    way, person = WAYS[name], replace(context, person=True)
    mark = refused(way, context, space, SECRET, tmp_path, VALUE)
    with pytest.raises(ConfirmationRequired):
        allow(context, keys, "text", mark, "an example")  # an agent
    refused(way, context, space, SECRET, tmp_path, VALUE)
    allow(person, keys, "text", mark, "an example of our documents")
    way(context, space, SECRET, tmp_path)
    other = SECRET.replace("kw7", "xw7")
    assert refused(way, context, space, other, tmp_path, other[16:]) != mark, "another one is refused as before"
    with pytest.raises(ConfirmationRequired):
        revoke(context, keys, "text", mark)
    revoke(person, keys, "text", mark)
    assert allowed(context, keys) == []
    if name not in ("edit", "import", "journal import"):  # what was taken in stays
        refused(way, context, space, SECRET, tmp_path, VALUE)


def test_what_is_allowed_is_listed_and_says_nothing_of_the_text(context: Context, keys: Keys, space: Space) -> None:
    mark = refused(WAYS["remember"], context, space, SECRET, Path(), VALUE)
    allow(replace(context, person=True), keys, "text", mark, "an example")
    (setting,) = allowed(context, keys)
    assert (setting.kind, setting.value, setting.reason, setting.by) == ("text", mark, "an example", "dana")
    assert VALUE.encode() not in Settings(keys).lines.read() and len(VALUE) == 16
    # Another installation's hash of the same text is another one: nothing can be guessed from it.
    assert Settings(Keys(keys.folder / "other")).mark(VALUE) != Settings(keys).mark(VALUE)


@pytest.mark.disk
def test_a_line_that_somebody_else_wrote_allows_nothing_and_is_named(
    context: Context, keys: Keys, space: Space
) -> None:
    mark = refused(WAYS["remember"], context, space, SECRET, Path(), VALUE)
    others = Keys(keys.folder.parent / "theirs" / "keys")
    ours, theirs = Settings(keys), Settings(others)
    allow(replace(context, person=True), others, "text", mark, "of another installation")
    Path(ours.lines.place).parent.mkdir(parents=True, exist_ok=True)
    forged = json.dumps(dict.fromkeys(("reason", "by", "at", "mac"), "") | {"kind": "text", "value": mark})
    Path(ours.lines.place).write_text(Path(theirs.lines.place).read_text() + forged + "\n")
    assert allowed(context, keys) == []
    assert refused(WAYS["remember"], context, space, SECRET, Path(), VALUE) == mark
    assert "settings_unvouched" in {finding.code for finding in doctor(context, space).findings}
    # Nor does the policy of one Home speak for another.
    own = Settings(keys, space.one().repository.marker.id)
    policy_set(replace(context, person=True), space, "allow_personal_data", False)
    Path(own.lines.place).rename(Path(own.lines.place).with_name("hom_other.jsonl"))
    assert policy_show(context, space).allow_personal_data and Settings(keys, "hom_other").unvouched() == 1


@pytest.mark.parametrize(
    ("kind", "value", "reason", "error"),
    [
        ("text", "short", "x", InvalidInput),
        ("text", "0" * 32, " ", InvalidInput),
        ("domain", "https://x.example/", "x", InvalidInput),
        ("domain", "org", "x", InvalidInput),
        ("tool", "a b", "x", InvalidInput),
        ("planet", "mars", "x", InvalidInput),
        ("tool", "WebSearch", SECRET, SecretRefused),
    ],
)
def test_what_cannot_be_allowed(
    context: Context, keys: Keys, kind: str, value: str, reason: str, error: type[MemorandaError]
) -> None:
    with pytest.raises(error):
        allow(replace(context, person=True), keys, kind, value, reason)
    with pytest.raises((NotFound, InvalidInput)):
        revoke(replace(context, person=True), keys, kind, value)
    assert Settings(keys).lines.mark() is None


@pytest.mark.requirement("S-084")
@pytest.mark.parametrize("name", EACH)
def test_personal_data_is_refused_where_the_policy_says_so(
    name: str, context: Context, space: Space, keys: Keys, tmp_path: Path
) -> None:
    way, person = WAYS[name], replace(context, person=True)
    assert policy_show(context, space).allow_personal_data, "by default it is kept"
    with pytest.raises(ConfirmationRequired):
        policy_set(context, space, "allow_personal_data", False)
    policy_set(person, space, "allow_personal_data", False)
    assert not policy_show(context, space).allow_personal_data
    mark = refused(way, context, space, MAIL, tmp_path, "dana@example.org")
    allow(person, keys, "text", mark, "the address of the office, which is public")
    way(context, space, MAIL, tmp_path)
    policy_set(person, space, "allow_personal_data", True)
    if name != "edit":
        way(context, space, MAIL.replace("dana", "anne"), tmp_path / "..")


def test_names_are_personal_data_too(context: Context, space: Space, home: Path, tmp_path: Path) -> None:
    """A file, an agent, an address in a source that is called as somebody is reached."""
    mail = "dana@example.org"
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / f"{mail}.md").write_text("Likes tea.\n")
    remember(context, space, NewNote("Likes tea.", sources=(f"https://crm.example/?who={mail}",)))
    assert import_folder(context, space, tmp_path / "vault").left == (), "by default they are kept"
    policy_set(replace(context, person=True), space, "allow_personal_data", False)
    (tmp_path / "vault" / "new").mkdir()
    (tmp_path / "vault" / "new" / f"{mail}.md").write_text("Likes coffee.\n")
    (left,) = import_folder(context, space, tmp_path / "vault" / "new").left
    assert "email" in left[1]
    for who, sources in ((replace(context, agent=mail), ()), (context, (f"https://crm.example/?who={mail}",))):
        with pytest.raises(PersonalDataRefused):
            remember(who, space, NewNote("Likes water.", sources=sources))


@pytest.mark.requirement("S-084")
def test_it_is_refused_before_anything_is_written_and_named_by_kind(context: Context, space: Space) -> None:
    policy_set(replace(context, person=True), space, "allow_personal_data", False)
    texts = {
        "tel. 06 12 34 56 78": "phone", "Telefon: 030 901820": "phone", "(415) 555-2671": "phone",
        "020 7946 0958": "phone", "from 203.0.113.45 at noon": "ip address", "SSN 219-09-9999": "us ssn",
        "1 85 05 78 006 084 91": "fr nir", MAIL: "email",
    }  # fmt: skip
    for text, kind in texts.items():
        with pytest.raises(PersonalDataRefused) as caught:
            remember(context, space, NewNote(f"Known:\n  {text}"))
        assert caught.value.code == "memory_personal_data_refused" and caught.value.status == 422
        article = "an" if kind[0] in "aeiou" else "a"
        assert f"taken for {article} {kind} at line 2, column" in caught.value.why
    # An account or a card is a secret before it is personal data.
    for text in ("FR76 3000 6000 0112 3456 7890 189", "4111 1111 1111 1111"):
        with pytest.raises(Refused):
            remember(context, space, NewNote(text))
    remember(context, space, NewNote("Dana decides; version 2.14.3.1 since 2026-10-02."))


def test_an_agent_of_its_own_policy_keeps_none_while_others_do(context: Context, space: Space) -> None:
    policy_set(replace(context, person=True), space, "allow_personal_data", False, agent="eve")
    remember(context, space, NewNote(MAIL))
    for way in (lambda c: remember(c, space, NewNote(MAIL)), lambda c: append(c, space, Turn(MAIL))):
        with pytest.raises(PersonalDataRefused):
            way(replace(context, agent="eve"))
    with pytest.raises(PersonalDataRefused):
        append(context, space, Turn(MAIL, agent="eve"))
    assert policy_show(context, space).agents == ("eve",)
