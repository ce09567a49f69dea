"""Front matter: no byte is lost, no word turns into something else, and whatever stands there can be read."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidNote
from memoranda.notes import simplefields, yamlread
from memoranda.notes.frontmatter import NEVER_CLOSED, NOT_FIELDS, NOT_UTF8, join, read_fields, render, split
from memoranda.notes.scalars import resolve_plain

from .samples import SKETCH, files, heads, in_file, plain_words, tame_heads, vault_files


def fields_of(data: bytes) -> dict[str, object]:
    fields, problems = read_fields(split(data))
    assert problems == ()
    return fields


def problems_of(data: bytes) -> str:
    return "; ".join(read_fields(split(data))[1])


@settings(deadline=None, max_examples=200)
@given(files)
def test_parse_and_write_gives_the_same_bytes(data: bytes) -> None:
    assert join(split(data)) == data
    assert split(data).raw == data


def test_parse_and_write_gives_the_same_bytes_of_a_real_vault() -> None:
    for file in vault_files():
        data = file.read_bytes()
        assert join(split(data)) == data


def test_parts() -> None:
    parts = split(b"\xef\xbb\xbf---  \r\na: 1\r\n---\r\nbody\r\n---\r\n")
    assert (parts.bom, parts.opening, parts.head) == (b"\xef\xbb\xbf", b"---  \r\n", b"a: 1\r\n")
    assert (parts.closing, parts.body, parts.newline) == (b"---\r\n", b"body\r\n---\r\n", "\r\n")
    for whole in (
        b"",
        b"text",
        b"--- a\nb: c\n---\n",
        b" ---\na: 1\n---\n",
        b"----\na: 1\n---\n",
        b"x\n---\na: 1\n---\n",
    ):
        assert split(whole).head is None
        assert split(whole).body == whole
    assert split(b"---\n---").head == b""
    assert split(b"---\na: 1\n...\nb").body == b"b"
    assert split(b"---\na: 1\n --- \n---x\n---\nb").head == b"a: 1\n --- \n---x\n"
    assert split(b"a\r\nb").newline == "\r\n"
    assert split(b"\nb").newline == "\n"


def test_front_matter_that_is_never_closed() -> None:
    parts = split(b"---\nid: mem_4kq2\ntext\n")
    assert (parts.head, parts.problems) == (None, (NEVER_CLOSED,))
    assert split(b"---\n\nA text under a rule.\n").problems == ()


@settings(deadline=None, max_examples=600)
@given(tame_heads)
@example("a: b\n  c: d\n")
@example("a:\n# c\n- b\n# c\n- c\n")
@example("a: b #c\nb: [a , b]\n")
def test_the_quick_reader_agrees_with_the_yaml_parser(head: str) -> None:
    quick = simplefields.simple_fields(head)
    if quick is not None:
        whole = yamlread.parse(head)
        assert whole.problems == ()
        assert whole.root in ("block", "empty")
        # repr, since True == 1 and the difference matters
        assert repr(quick) == repr({span.key: span.value for span in whole.spans})


def test_the_quick_reader_reads_what_we_and_most_people_write() -> None:
    for head in (
        split(SKETCH).head,
        b"tags:\n  - a\n  - b # c\n\n# note\naliases: []\nup: \"[[A b]]\"\nq: 'it''s'\ntime: 12:30\nurl: https://a.b/c#d\n",
        split(render({"a": "x: y", "b": ["a b", "c: d"], "c": [], "d": None, "e": 0.5, "f": True}, "")).head,
    ):
        assert head is not None
        assert simplefields.simple_fields(head.decode()) is not None


@pytest.mark.parametrize(
    "odd", ["\t", "\x00", "\x1b", "\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\ufeff", "\uffff", "\r"]
)
def test_the_quick_reader_leaves_odd_characters_to_the_parser(odd: str) -> None:
    assert simplefields.simple_fields(f"a: x{odd}y\n") is None


def test_the_sketch_of_the_specification() -> None:
    assert fields_of(SKETCH) == {
        "id": "mem_4kq2",
        "kind": "semantic",
        "subject": "customer/acme",
        "valid_from": "2026-10-02",
        "valid_to": None,
        "confidence": 0.8,
        "origin": "agent",
        "reviewed": True,
        "sources": ["nas://home-box/agents/cleo/journal/2026-10-02.md@9f2c1de#L12-L18"],
        "supersedes": ["mem_1xa9"],
    }


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(
            (word, word)
            for word in ("no", "No", "NO", "yes", "on", "off", "y", "n", "12:30", "1:30:00", "0x1f", "0o17")
        ),
        *(
            (word, word)
            for word in ("007", "1_000", ".inf", ".nan", "-.inf", "2026-10-02", "2026-10-02T09:12:33Z", "=")
        ),
        *((word, word) for word in ("1e999", "9" * 19, "+", "-", ".", "1.2.3", "nULL", "tRUE", "١٢", "<<", "x: y"[:1])),
        *((word, None) for word in ("null", "Null", "NULL", "~", "")),
        *((word, True) for word in ("true", "True", "TRUE")),
        *((word, False) for word in ("false", "False", "FALSE")),
        *(
            ("0", 0),
            ("-12", -12),
            ("+3", 3),
            ("0.8", 0.8),
            (".5", 0.5),
            ("1.", 1.0),
            ("-1.5e-3", -0.0015),
            ("1e3", 1000.0),
        ),
    ],
)
def test_what_a_word_means(written: str, value: object) -> None:
    assert repr(resolve_plain(written)) == repr(value)
    if written not in ("-", "="):
        data = in_file(f"a: {written}\n")
        assert repr(fields_of(data)) == repr({"a": value})
        assert repr(fields_of(in_file(f"a: !!str {written}\n"))) == repr({"a": written})


@pytest.mark.parametrize("word", ["no", "yes", "12:30", "null", "1", "true"])
def test_a_key_is_the_word_that_was_written(word: str) -> None:
    assert fields_of(in_file(f"{word}: x\n? {word}2\n: y\n")) == {word: "x", f"{word}2": "y"}


def test_aliases_cannot_multiply() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for one, two in zip("abcdefghijkl", "bcdefghijklm", strict=True):
        bomb += f"{two}: &{two} [" + ", ".join([f"*{one}"] * 9) + "]\n"
    started = time.process_time()
    fields, problems = read_fields(split(in_file(bomb)))
    assert time.process_time() - started < 1
    assert fields["m"] == [None] * 9
    assert any("alias" in problem for problem in problems) and any("anchor" in problem for problem in problems)
    assert "alias" in problems_of(in_file("a: &x {b: c}\nd:\n  <<: *x\n"))
    assert "alias" in problems_of(in_file("*x : 1\n"))


@pytest.mark.parametrize(
    ("head", "said", "fields"),
    [
        ("a: 1\na: 2\n", "there before at line 3", {"a": 1}),
        ("m: {a: 1, a: 2}\n", "there before", {"m": {"a": 1}}),
        ("created: {{date}}\nb: c\n", "not text", {"created": {}, "b": "c"}),
        ("[a]: b\nc: d\n", "not text", {"c": "d"}),
        ("a: !thing x\n", "tag", {"a": "x"}),
        ('a: !!int "5"\n', "tag", {"a": "5"}),
        ("a: !!python/object/apply:os.system [x]\n", "tag", {"a": ["x"]}),
        ("a: b\n--- c\n", "second document", {"a": "b"}),
        ("just text\n", NOT_FIELDS, {}),
        ("- a\n- b\n", NOT_FIELDS, {}),
        ("subject: one: two\nkind: fact\n", "not YAML at line 2", {"subject": "one: two", "kind": "fact"}),
        ('id: mem_4kq2\nb: "open\nkind: fact\n', "not YAML", {"id": "mem_4kq2", "kind": "fact"}),
        ("id: mem_4kq2\n\tb: c\nkind: fact\n", "not YAML", {"id": "mem_4kq2", "kind": "fact"}),
        ("id: mem_4kq2\nb: @x\nc: [a\ntags:\n  - x\n", "not YAML", {"id": "mem_4kq2", "tags": ["x"]}),
        ("id: mem_4kq2\nb: \x00\n", "does not allow", {"id": "mem_4kq2", "b": "\x00"}),
        ("id: mem_4kq2\nb: " + "[" * 500, "nested too deeply", {"id": "mem_4kq2"}),
        ("id: mem_4kq2\nb: " + "{a: " * 200, "nested too deeply", {"id": "mem_4kq2"}),
        ("id: mem_4kq2\nb: " + "[" * 200_000, "not YAML", {"id": "mem_4kq2"}),
        ("id: mem_4kq2\n" + "- " * 5000, "not YAML", {"id": "mem_4kq2"}),
        ("id: mem_4kq2\nb: {\n" + "x" * 300_000, "too large", {"id": "mem_4kq2"}),
    ],
)
def test_odd_yaml_is_read_as_far_as_it_goes(head: str, said: str, fields: dict[str, object]) -> None:
    got, problems = read_fields(split(in_file(head + "\n" if not head.endswith("\n") else head)))
    assert got == fields
    assert any(said in problem for problem in problems), problems


def test_an_invalid_byte_spoils_one_value_and_not_the_others() -> None:
    fields, problems = read_fields(split(b"---\nid: mem_4kq2\nsubject: caf\xe9\n---\n"))
    assert fields == {"id": "mem_4kq2", "subject": "caf\ufffd"}
    assert problems == (NOT_UTF8,)


def test_other_ways_to_write_the_same() -> None:
    same = {"a": "x y", "b": ["p", "q"], "c": "one\ntwo\n"}
    for head in (
        'a: "x y"\nb: [p, q]\nc: "one\\ntwo\\n"\n',
        "a: x\n  y\nb:\n- p\n- q\nc: |\n  one\n  two\n",
        "{a: x y, b: [p, q], c: 'one\n\n  two\n\n  '}\n",
        "b:   # list\n    - p   # first\n    # between\n    - 'q'\nc: |+\n  one\n  two\na: >-\n  x\n  y\n",
    ):
        for newline in ("\n", "\r\n"):
            assert fields_of(in_file(head, newline=newline)) == same


@settings(deadline=None, max_examples=200)
@given(files | st.builds(in_file, heads))
def test_reading_takes_any_bytes(data: bytes) -> None:
    fields, problems = read_fields(split(data))
    assert all(isinstance(key, str) for key in fields)
    assert all(len(problem) < 80 and "\n" not in problem for problem in problems)


def test_a_large_text_is_split_in_no_time() -> None:
    data = in_file("a: b\n", "---\nx: y\n" * 120_000)
    started = time.process_time()
    assert fields_of(data) == {"a": "b"}
    split(b"---\n" + b"-- \n" * 300_000)
    split(b"---\n" + b" " * 1_000_000)
    assert time.process_time() - started < 1


def test_lists_are_written_in_one_line_when_they_are_short() -> None:
    assert render({"a": ["mem_1xa9", "mem_4kq2"], "b": []}, "x") == b"---\na: [mem_1xa9, mem_4kq2]\nb: []\n---\nx\n"
    assert render({"a": ["two words"]}, "x") == b"---\na:\n  - two words\n---\nx\n"
    many = [f"mem_{n:016}" for n in range(6)]
    assert render({"a": many[:4]}, "").count(b"\n") == 4
    assert render({"a": many}, "").count(b"\n") == 4 + 6


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.text(max_size=10), values, max_size=5), st.text())
def test_what_is_rendered_reads_back(fields: dict[str, object], body: str) -> None:
    data = render(fields, body)
    got, problems = read_fields(split(data))
    assert problems == ()
    assert repr(got) == repr(fields)
    assert split(data).body == body.encode() + b"\n"


@settings(deadline=None, max_examples=300)
@given(st.text() | plain_words | tame_heads.map(str.strip))
@example("a #b")
def test_other_programs_read_the_same_text(text: str) -> None:
    import yaml

    head = split(render({"subject": text, "sources": [text, text]}, "")).head
    assert head is not None
    loaded = yaml.safe_load(head.decode())
    if not text.startswith("2026-10-02"):  # a day stays plain, and other programs make a date of it
        assert loaded == {"subject": text, "sources": [text, text]}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 10**30, b"x", object(), {"a": [1j]}, "\ud800", ["\udfff"]]
)
def test_what_front_matter_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(InvalidNote) as caught:
        render({"a": value}, "")
    assert caught.value.remedy


def test_a_line_that_was_read_before_reads_the_same() -> None:
    """Lines are remembered: never a list, which somebody could change, and never past a key that comes twice."""
    head = b"---\nkind: fact\ntags: [a, b]\nscope: user\nkind: other\nempty:\nscope: team\n---\n"
    first = read_fields(split(head))
    again = read_fields(split(head))
    assert first == again and first[0]["tags"] is not again[0]["tags"]
    plain = b"---\nkind: fact\ntags:\n  - x\nscope: user\n---\n"
    assert read_fields(split(plain))[0] == {"kind": "fact", "tags": ["x"], "scope": "user"}
    listed = b"---\ntags:\nscope: user\n---\n"
    assert read_fields(split(listed))[0] == {"tags": None, "scope": "user"}


@pytest.mark.parametrize("odd", ["\x00", "\x1b", "\t", "\x9b"])
def test_control_characters_in_quotes_are_read_and_raise_nothing(odd: str) -> None:
    fields, problems = read_fields(split(f'---\nsubject: "a{odd}b"\ntitle: "x{odd}y"\nz: [\n---\ntext\n'.encode()))
    assert fields.get("subject") in (f"a{odd}b", None) and problems
