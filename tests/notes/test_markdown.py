"""Headings, sections, links and tags."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.notes import markdown
from memoranda.notes.markdown import Heading, links, outline, section, tags, title

from .samples import vault_files

TEXT = """\
before

# One
text
## One a ##
```python
# no heading
## neither
```
### Deep
Two
===
text

Second
rank
----
* item
---
#no heading
    # no heading
~~~
# no heading
"""


def test_an_outline_has_the_lines_of_each_section() -> None:
    assert outline(TEXT) == (
        Heading(1, "One", 3, 10),
        Heading(2, "One a", 5, 10),
        Heading(3, "Deep", 10, 10),
        Heading(1, "Two", 11, 23),
        Heading(2, "rank", 16, 23),
    )
    assert markdown.lines(TEXT, 5, 6) == "## One a ##\n```python"
    assert outline("") == ()
    assert outline("# a") == (Heading(1, "a", 1, 1),)
    assert outline("# a\r\ntext\r\n# b\r\n") == (Heading(1, "a", 1, 2), Heading(1, "b", 3, 3))


def test_sections_are_found_by_title_or_number() -> None:
    assert section(TEXT, "Deep") == Heading(3, "Deep", 10, 10)
    assert section(TEXT, "one A") == Heading(2, "One a", 5, 10)
    assert section(TEXT, "## One a") == Heading(2, "One a", 5, 10)
    assert section(TEXT, 4) == section(TEXT, "4") == Heading(1, "Two", 11, 23)
    for nothing in ("Three", 0, 6, -1, "99", "१", ""):
        assert section(TEXT, nothing) is None


def test_titles() -> None:
    assert title("text\n## A title #\n# B") == "A title"
    assert title("Old way\n=======\n") == "Old way"
    assert title("```\n# code\n```\n") is None
    assert title("no heading, only a #tag") is None
    assert title("#\n# x") == "x"
    assert title("```one line``` of code\n# x") == "x"
    assert outline("One\n=\nTwo\n--\n") == (Heading(1, "One", 1, 4), Heading(2, "Two", 3, 4))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[A]] and ![[B c]] and [[A]]", ("A", "B c")),
        ("[[A#part|name]] [[#here]] [[dir/B.md]] [[C\\|d]] [[ E ]]", ("A", "dir/B.md", "C", "E")),
        (
            '[x](a.md) [y](<b c.md>) [z](c%20d.md#e) [t](e.md "title") ![i](f.png)',
            ("a.md", "b c.md", "c d.md", "e.md", "f.png"),
        ),
        ("[x](https://a.b) [m](mailto:a@b) [h](#here) [p](//cdn/x)", ()),
        ("`[[no]]` [[yes]] ``[[no]]``\n```\n[[no]]\n```\n[b](two.md) [[three]]", ("yes", "two.md", "three")),
        ("[[a\nb]] [[]] [[[c]]] [d]()", ("c",)),
    ],
)
def test_links(text: str, expected: tuple[str, ...]) -> None:
    assert links(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#one and #two-x, #a/b (#c_d) #one", ("one", "two-x", "a/b", "c_d")),
        ("#été #日本 #2026 #q3 #1/2", ("été", "日本", "q3")),
        ("# heading\n## other\nissue#4 a#b https://x.y/#z &#39; `#code`\n```\n#code\n```\n", ()),
        ("#a#b", ("a",)),
    ],
)
def test_tags(text: str, expected: tuple[str, ...]) -> None:
    assert tags(text) == expected


pieces = st.sampled_from(
    [
        "#",
        "##",
        " ",
        "\n",
        "```",
        "~~~",
        "`",
        "[[",
        "]]",
        "|",
        "](",
        ")",
        "<",
        ">",
        "a",
        "é",
        "---",
        "==",
        "\r",
        "\\",
        "%4",
    ]
)


@settings(deadline=None, max_examples=400)
@given(st.text() | st.lists(pieces, max_size=30).map("".join))
def test_any_text_is_markdown(text: str) -> None:
    headings = outline(text)
    total = text.count("\n") + 1
    assert all(1 <= h.start <= h.end <= total and 1 <= h.level <= 6 for h in headings)
    assert [h.start for h in headings] == sorted(h.start for h in headings)
    assert all(section(text, n) == h for n, h in enumerate(headings, 1))
    assert title(text) == next((h.title for h in headings if h.title), None)
    assert all(link.strip() == link and link for link in links(text))
    assert all(tags(f"#{tag}") == (tag,) for tag in tags(text))


def test_sections_of_a_real_vault_cover_what_follows_their_heading() -> None:
    found = 0
    for file in vault_files():
        text = file.read_text("utf-8")
        for one, two in zip(outline(text), outline(text)[1:], strict=False):
            assert one.end >= two.end if two.level > one.level else one.end == two.start - 1
            found += 1
    assert found > 10


def test_hostile_text_takes_no_time() -> None:
    started = time.process_time()
    for piece in ("[[", "](", "#", "`", "``", "[[a|", "](<", "#a/", "\n#", "\n- ", "    ", '](a "', "~~~\n", "```\n"):
        text = piece * (400_000 // len(piece))
        outline(text), links(text), tags(text), title(text)
    assert time.process_time() - started < 12
