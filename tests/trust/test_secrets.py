"""A secret is found however it is written, honest text is left alone, and nothing that is found says what it was."""

from __future__ import annotations

import base64
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.trust.numbers import is_card, luhn
from memoranda.trust.secrets import find_secrets, masked
from tests.trust.secret_cases import HONEST, SECRET, cases

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PRIVATE = (
    "-----BEGIN RSA PRIVATE " + "KEY-----\n" + "MIIEowIBAAKCAQEAy8Dbv8prpJ/0kKhlGeJYozo2t60EG8L0561g13R29LvM\n" * 3
)
PRIVATE += "-----END RSA PRIVATE " + "KEY-----"


def kinds(text: str) -> list[str]:
    return [found.kind for found in find_secrets(text)]


@pytest.mark.parametrize("text", cases(SECRET))
def test_a_secret_is_found_in_english_and_in_french(text: str) -> None:
    assert find_secrets(text)


@pytest.mark.parametrize("text", cases(HONEST))
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("the password is Kestrel99", "password"),
        ("le mot de passe est « Kestrel99 »", "password"),
        ("the key m0sk_a8f3kd92jf84hs72kd93 works", "mem0_api_key"),
        ("postgres://app:s3cr3tpw@db/app", "connection_string_password"),
        ("4111 1111 1111 1111", "card"),
        ("5555555555554444", "card"),
        ("FR76 3000 6000 0112 3456 7890 189", "iban"),
        ("de89370400440532013000", "iban"),
        (PRIVATE, "private_key"),
        (base64.b64encode(PRIVATE.encode()).decode(), "private_key"),
        ("PIN is 4821", "pin"),
        ("$2b$12$" + "R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW", "password_hash"),
    ],
)
def test_it_says_what_kind_it_is(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "FR76 3000 6000 0112 3456 7890 188",  # wrong modulo 97
        "FR76 3000 6000 0112 3456 7890 18",  # too short for France
        "4111 1111 1111 1112",  # wrong last digit
        "4111111111111111222",  # a run of another length
        "a4111111111111111",  # part of an id
        "0.4111111111111111",  # a fraction
        "41 11 11 11 11 11 11 11",  # nobody groups a card in twos
        "3333333333333333",  # no scheme begins so
    ],
)
def test_cards_and_accounts_have_to_be_right(text: str) -> None:
    assert kinds(text) == []


@given(st.integers(0, 10**14 - 1))
def test_one_wrong_digit_is_no_card(number: int) -> None:
    digits = f"4{number:014d}"
    last = next(str(d) for d in range(10) if luhn(digits + str(d)))
    assert is_card(digits + last)
    assert not any(is_card(digits + str(d)) for d in range(10) if str(d) != last)


def wrapped(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


@pytest.mark.parametrize(
    "text",
    [
        "the pass\u200bword is Kes\u200dtrel99",
        "ｔｈｅ ｐａｓｓｗｏｒｄ ｉｓ Ｋｅｓｔｒｅｌ９９",
        "the pаsswоrd is Kestrel99",
        "the \u202epassword is Kestrel99",
        "the p\u00adassword: Kestrel99",
        "q=the%20password%20is%3A%20Kestrel99%21",
        base64.b64encode(b"the password is Kestrel99").decode(),
        wrapped(base64.b64encode(b"the password for the router in the attic is Kestrel99!").decode(), 32),
        wrapped(base64.b64encode(PRIVATE.encode()).decode(), 64),
        PRIVATE.replace("\n", "\\n"),
        PRIVATE.replace("\n", "\r\n"),
        "4111\u200b1111\u200b1111\u200b1111",
        "４１１１ １１１１ １１１１ １１１１",
    ],
)
def test_what_is_hidden_from_a_pattern_is_found(text: str) -> None:
    assert find_secrets(text)


def test_it_says_where_in_the_text_as_it_stands() -> None:
    text = "Zeile «1»\n\u200b  the pass\u200bword is Kestrel99!\nlast"
    (found,) = find_secrets(text)
    assert text[found.start : found.end].startswith("Kestrel99")
    assert (found.line, found.column) == (2, text.split("\n")[1].index("Kestrel") + 1)


@given(
    st.text(max_size=80), st.text(max_size=80), st.sampled_from(["the password is Kestrel99!", "m0sk_a8f3kd92jf84hs72"])
)
def test_it_is_found_between_any_other_words(before: str, after: str, secret: str) -> None:
    text = f"{before}\n\n{secret}\n\n{after}"
    word = secret.split()[-1].rstrip("!")
    assert any(found.start <= text.index(word) < found.end for found in find_secrets(text) if word in text)


WORDS = st.sampled_from(
    ["password", "mot de passe", "is", ":", "=", '"', "'", "\n", "Kestrel99", "http://", "a:b@c", "login", "pin",
     "4111", "%20", "İ", "\ud800", "secret", "token", "-----BEGIN PRIVATE KEY-----", "$2b$", "key", "«",
     "curl -u", "eyJ", "authorization:"]
)  # fmt: skip


@given(st.lists(st.one_of(WORDS, st.text(max_size=6)), max_size=30).map(" ".join))
def test_nothing_found_holds_a_word_of_the_text_and_none_lies_in_another(text: str) -> None:
    last = 0
    for found in find_secrets(text):
        assert last <= found.start < found.end <= len(text)
        last = found.end
        said = asdict(found)
        assert {type(value) for key, value in said.items() if key != "kind"} == {int}
        assert said["kind"].isidentifier()
        assert found.line == text.count("\n", 0, found.start) + 1
    assert find_secrets(text) == find_secrets(text)


@pytest.mark.parametrize(
    "piece", ["password ", "key=", "curl -u ", "login x ", "a:", "%41", "\n", "secret: '", "QUFB", "://a:", "pin code "]
)
def test_no_text_makes_it_slow(piece: str) -> None:
    """Time grows with the length and not with its square, whatever is repeated."""
    text = piece * (40_000 // len(piece))
    started = time.process_time()
    find_secrets(text)
    assert time.process_time() - started < 2


def test_the_examples_of_two_scanners_as_they_were_read() -> None:
    """The bounds of the benchmark, both halves; a value is in no message of this test."""
    if not (DATA / "secrets").exists():
        pytest.skip("../shared/data/secrets is not here")
    from bench._common import Options
    from bench.secrets import run

    lines = list(run(Options(quick=True)))
    assert [line.what for line in lines if "as read" in line.what and not line.met] == []
    labelled = {line.what: line.ours for line in lines if "as labelled" in line.what}
    assert labelled["as labelled, each text once: found"] >= 95
    assert labelled["as labelled, each text once: refused by mistake"] < 12
    refused = {line.what: line.ours for line in lines if line.what.startswith("refused: ")}
    assert len(refused) == 5
    assert max(refused.values()) < 0.5


def test_a_resource_is_covered_with_its_account_and_a_block_of_lines_stays_as_long() -> None:
    assert (
        masked("The role is arn:aws:iam::210987654321:role/acme, says Dana.")
        == "The role is [cloud_resource], says Dana."
    )
    block = (
        "-----BEGIN PRIVATE" + " KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nKs14IReL\n-----END PRIVATE KEY-----\nEnd"
    )
    assert masked(block).split("\n") == ["[private_key]", "", "", "", "End"]
    assert masked(block, lambda _: True) == block
