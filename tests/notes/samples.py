"""Front matter that property tests draw from, the sketch of the specification, and the real vault."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

VAULT = Path(__file__).parents[2].parent / "shared" / "data" / "markdown"

SKETCH = b"""\
---
id: mem_4kq2
kind: semantic
subject: customer/acme
valid_from: 2026-10-02
valid_to: null
confidence: 0.8
origin: agent
reviewed: true
sources:
  - nas://home-box/agents/cleo/journal/2026-10-02.md@9f2c1de#L12-L18
supersedes: [mem_1xa9]
---
Acme renewed for 24 months; the champion moved from Dana to Luis.
"""


def vault_files() -> list[Path]:
    """The files of the vault in `../shared/data/markdown`; skips the test where that folder is missing."""
    if not VAULT.is_dir():
        pytest.skip("../shared/data/markdown is not here")
    files = sorted(VAULT.rglob("*.md"))
    assert len(files) > 90
    return files


# Texts close to front matter: most are odd, few are simple.
_fragments = st.sampled_from(
    [
        *("key", "a", "b_c", "id", "kind", "sources", "valid_from", "fact", "mem_4kq2", "2026-10-02", "2026-13-45"),
        *(":", ": ", ":  ", " ", "  ", "- ", "-", "[", "]", "[a, b]", "[]", "{", "}", "{{date}}", '"', "'", '"x"'),
        *("''", "#", " #", " # c", "|", ">", "|\n  x", "&a", "*a", "!!str", "!x", "\t", "no", "yes", "12:30", "é"),
        *("日", "🎉", "null", "~", "1", "-1", "0.5", "1e5", "1e999", "007", "0x1f", "\n", "\n", "\n  ", "...", "---"),
        *(",", ", ", "\\", '"\\n"', '"\\ud83d\\ude00"', "%", "@", "?", "? ", "`", "nas://a/b@1#L1-L2", "true", "\x00"),
        *("\u2028", "\x85", "\x7f", "\r\n", "\r", "\ufeff", "<<", "=", "_", "/", "(", ".", "[" * 50),
    ]
)
wild_heads = st.lists(_fragments, max_size=25).map("".join)

# Texts of the kind that people write: `key: value`, lists, comments.
_words = st.sampled_from(
    [
        *(
            "a",
            "é",
            "日",
            "no",
            "12:30",
            "null",
            "1",
            "0.5",
            "+2",
            "-1",
            "007",
            "x:y",
            "a#b",
            "#b",
            '"',
            "'",
            "b:",
            "-",
        ),
        *(
            "~",
            "2026-10-02",
            "nas://a@1#L1",
            "(x)",
            "a,b",
            "[",
            "]",
            "{x",
            "/p",
            ".5",
            "...",
            "---",
            "%",
            "@",
            "!",
            "&",
        ),
        *("*", "|", "🎉", "=", "\\", "`", "?", "_a", "1e5", "e1", "true", "yes", "0x1f", "1_000", ">"),
    ]
)
plain_words = st.lists(_words, min_size=1, max_size=4).map(" ".join)
_double = st.lists(
    st.sampled_from(
        ["a", " ", "é", "\\n", "\\t", '\\"', "\\\\", "\\u00e9", "\\u2028", "\\b", "\\uD7ff", "\\u0000", "#", ": ", "["]
    ),
    max_size=6,
).map(lambda parts: '"' + "".join(parts) + '"')
_single = st.lists(st.sampled_from(["a", " ", "''", '"', "#", ": ", "\\"]), max_size=5).map(
    lambda parts: "'" + "".join(parts) + "'"
)
_flow = st.builds(
    lambda items, comma, pad: f"[{pad}{comma.join(items)}{pad}]",
    st.lists(
        st.sampled_from(
            ["a", "1", "null", "true", "0.5", "a/b", "no", "2026-10-02", '"x"', '""', '"a, b"', '"#"', "x-"]
        ),
        max_size=4,
    ),
    st.sampled_from([", ", ",", " , "]),
    st.sampled_from(["", " "]),
)
_values = st.one_of(plain_words, plain_words, _double, _single, _flow, st.just(""))
_tails = st.sampled_from(["", "", "", " # c", "  #", " ", "#c", " #c: d"])
keys = st.sampled_from("abcdefghij")
_fields = st.builds(lambda k, v, t: f"{k}: {v}{t}" if v else f"{k}:{t}", keys, _values, _tails)
_lists = st.builds(
    lambda k, t, indent, items: "\n".join([f"{k}:{t}", *(f"{indent}- {v}{tail}" for v, tail in items)]),
    keys,
    _tails,
    st.sampled_from(["", " ", "  "]),
    st.lists(st.tuples(_values, _tails), min_size=1, max_size=3),
)
_others = st.sampled_from(
    [
        "",
        "  ",
        "# c",
        " # c",
        " x",
        "- z",
        "  - z",
        "~: x",
        "m:\n  x: 1\n  y: [2]",
        "t: |\n  a\n\n  b",
        "u: >-\n  a\n  b",
    ]
)
tame_heads = st.lists(st.one_of(_fields, _fields, _lists, _others), max_size=6).map(
    lambda x: "".join(f"{y}\n" for y in x)
)
heads = wild_heads.map(lambda head: head + "\n") | tame_heads


def in_file(head: str, body: str = "text\n", newline: str = "\n") -> bytes:
    """A file with these lines between its fences."""
    return f"---\n{head}---\n{body}".replace("\n", newline).encode()


files = st.one_of(
    st.binary(),
    st.builds(in_file, heads, st.text(), st.sampled_from(["\n", "\r\n"])),
    heads.map(lambda head: b"\xef\xbb\xbf" + in_file(head)),
    heads.map(lambda head: ("---\n" + head).encode()),
    st.binary().map(lambda data: b"---\n" + data + b"\n---\n" + data),
)
