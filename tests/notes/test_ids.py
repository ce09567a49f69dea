"""Ids: their form, where they come from, and that they agree with Git."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.notes.ids import blob_id, is_note_id, new_id, note_id_for_path

ALPHABET = set("0123456789abcdefghjkmnpqrstvwxyz")


@settings(deadline=None)
@given(st.binary(min_size=10, max_size=10))
def test_an_id_is_its_prefix_and_the_ten_random_bytes_in_sixteen_characters(ten: bytes) -> None:
    asked: list[int] = []

    def random(n: int) -> bytes:
        asked.append(n)
        return ten

    name, _, rest = new_id("mem", random).partition("_")
    assert (name, len(rest), asked) == ("mem", 16, [10])
    assert set(rest) <= ALPHABET
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    value = 0
    for ch in rest:
        value = value * 32 + digits.index(ch)
    assert value.to_bytes(10, "big") == ten


def test_new_ids_are_note_ids_and_differ() -> None:
    ids = {new_id("mem", os.urandom) for _ in range(1000)}
    assert len(ids) == 1000
    assert all(map(is_note_id, ids))


def test_the_accepted_form_of_an_id() -> None:
    for good in ("mem_4kq2", "mem_1xa9", "mem_" + "z" * 64, "mem_0000"):
        assert is_note_id(good)
    for bad in ("", "mem_", "mem_abc", "mem_" + "z" * 65, "Mem_4kq2", "mem_4KQ2", "mem_4kq2\n", "j_4kq2", "mem_é123"):
        assert not is_note_id(bad)


def test_a_path_has_one_id_however_its_accents_are_composed() -> None:
    composed = "notes/réunion.md"
    decomposed = unicodedata.normalize("NFD", composed)
    assert composed != decomposed
    assert note_id_for_path(composed) == note_id_for_path(decomposed)
    assert is_note_id(note_id_for_path(composed))
    assert note_id_for_path("a.md") != note_id_for_path("b.md")


def test_the_id_of_a_path_never_moves() -> None:
    plain = base64.b32encode(hashlib.sha256("été/a.md".encode()).digest()[:10]).decode()
    crockford = plain.translate(str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz"))
    assert note_id_for_path("été/a.md") == f"mem_{crockford}"
    assert note_id_for_path("a.md") == "mem_zv6cs5tk4hktvfwk"


def test_a_path_that_is_not_utf8_has_an_id_too() -> None:
    assert is_note_id(note_id_for_path(os.fsdecode(b"notes/\xff.md")))


def test_a_blob_id_is_what_git_says() -> None:
    for data in (b"", b"hello\n", bytes(range(256)) * 9):
        out = subprocess.run(["git", "hash-object", "--stdin"], input=data, capture_output=True, check=True)
        assert blob_id(data) == out.stdout.decode().strip()
