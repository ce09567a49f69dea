"""Paths: names for people, and no way out of the Home."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidPath
from memoranda.notes.paths import check_path, file_name, folder_for, slug

NOW = datetime(2026, 10, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Acme renewed for 24 months!", "acme-renewed-for-24-months"),
        ("  --  Réunion d'équipe  ", "réunion-d-équipe"),
        ("Straße", "strasse"),
        ("日本語のメモ", "日本語のメモ"),
        ("हिन्दी में", "हिन्दी-में"),
        ("ﬁn", "fin"),
        ("CON", "con_"),
        ("com¹", "com1_"),
        ("nul", "nul_"),
        ("🎉", "note"),
        ("", "note"),
        ("../../etc/passwd", "etc-passwd"),
        (".git", "git"),
        ("a\u200db", "ab"),
        ("x" * 100, "x" * 60),
        ("word " * 30, "word-word-word-word-word-word-word-word-word-word-word-word"),
        ("é" * 100, "é" * 30),
        ("a-long-first-word " * 4, "a-long-first-word-a-long-first-word-a-long-first-word-a-long"),
        ("short " + "x" * 80, "short-" + "x" * 54),
        (
            "a sentence that is cut in the middle of its very last wordthatislong",
            "a-sentence-that-is-cut-in-the-middle-of-its-very-last",
        ),
    ],
)
def test_slugs(text: str, expected: str) -> None:
    assert slug(text) == expected


@settings(deadline=None, max_examples=300)
@given(st.text(), st.integers(10, 80))
def test_a_slug_is_a_safe_name_and_a_slug_of_itself(text: str, limit: int) -> None:
    name = slug(text, limit)
    assert name
    assert len(name.encode()) <= limit
    assert not set(name) & set('/\\:*?"<>|. \t\n\x00~')
    assert name[0] != "-" and name[-1] != "-"
    assert unicodedata.normalize("NFC", name) == name
    assert check_path(name) == name
    assert slug(name, limit) == name
    # Folded and composed already: names that differ still differ on a file system that does either itself.
    assert unicodedata.normalize("NFC", name.casefold()) == name
    assert slug(unicodedata.normalize("NFD", name), 400) == name


def test_folders() -> None:
    assert folder_for("customer/acme", NOW) == "memory/notes/customer/acme"
    assert folder_for("Customer / ACME Corp.", NOW) == "memory/notes/customer/acme-corp"
    assert folder_for("/a//b/", NOW) == "memory/notes/a/b"
    assert folder_for("../../x", NOW) == "memory/notes/note/note/x"
    for nothing in (None, "", "   ", "///"):
        assert folder_for(nothing, NOW) == "memory/notes/unsorted/2026-10"
    assert folder_for(None, datetime(33, 4, 3, tzinfo=UTC)) == "memory/notes/unsorted/0033-04"
    assert folder_for("/".join("abcdefghijklmnop"), NOW).count("/") == 2 + 7


@settings(deadline=None)
@given(st.text(), st.text(), st.from_regex(r"mem_[0-9a-z]{4,64}", fullmatch=True))
def test_what_we_make_stays_inside_and_is_short(subject: str, title: str, note_id: str) -> None:
    name = file_name(title, note_id)
    assert len(name.encode()) <= 60
    assert name.endswith(f"-{note_id[4:][-6:]}.md")
    path = f"{folder_for(subject, NOW)}/{name}"
    assert check_path(path) == path
    assert path.startswith("memory/notes/")
    assert all(len(part.encode()) <= 60 for part in path.split("/"))


def test_file_names() -> None:
    assert file_name("Acme renewed", "mem_0123456789abcdef") == "acme-renewed-abcdef.md"
    assert file_name("Acme renewed", "mem_1xa9") == "acme-renewed-1xa9.md"


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/etc/passwd", "//x", "C:/x", "c:", ".", "..", "./a", "a/.", "a/..", "a/../b", "../a", "a/../../b"),
        *("a//b", "a/", "a\x00b", "a\\b", "..\\a", ".git", ".git/config", "a/.git/hooks/x", ".GIT", ".Git/config"),
        *(".git.", ".git ", ".git. .", ".git...", ".git::$INDEX_ALLOCATION/config", ".git:x", "git~1", "GIT~1/config"),
        *("git~2", ".g\u200cit", ".gi\u200dt/config", "\ufeff.git", ".ｇｉｔ", "．git", "x" * 256, "é" * 128),
        "a/" * 2500 + "b",
    ],
)
def test_attacks_are_refused_with_a_remedy(path: str) -> None:
    with pytest.raises(InvalidPath) as caught:
        check_path(path)
    assert caught.value.why
    assert caught.value.remedy


@pytest.mark.parametrize(
    "path",
    [
        *("a.md", "memory/notes/customer/acme.md", ".gitignore", ".gitattributes", ".github/x", "git", "a..b", "...md"),
        *(
            "Daily/2026-10-02 notes (draft).md",
            "été/日本.md",
            "a/.obsidian/x",
            "digit~x",
            "git~x",
            "x" * 255,
            "a: b.md",
        ),
    ],
)
def test_ordinary_paths_pass(path: str) -> None:
    assert check_path(path) == path


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from([".", "..", "/", "\\", "a", ".git", "git~1", " ", "\x00", "é", "~", ":", ".md"])).map(
        "".join
    )
)
def test_a_path_that_passes_stays_inside(path: str) -> None:
    import posixpath

    try:
        assert check_path(path) == path
    except InvalidPath:
        return
    assert posixpath.normpath(posixpath.join("/home/x", path)) == f"/home/x/{path}"
    assert not any(part.lower().rstrip(". ") == ".git" for part in path.split("/"))
