"""Personal data is found in the forms in which people write it, and what merely looks like it is left alone."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.trust.personal import find_personal

KINDS = """
dana@example.org|email
Anne.Dupont+news@mairie-lyon.fr|email
write to <luis@acme.co.uk>.|email
dana (at) example (dot) org|email
dana [arobase] example.org|email
jörg@müller.de|email
da\u200bna@example.org|email
Call +33 6 12 34 56 78|phone
tel: 06 12 34 56 78|phone
06.12.34.56.78|phone
0612345678|phone
01-45-67-89-10|phone
0033 1 45 67 89 10|phone
+49 30 901820|phone
Telefon: 030 901820|phone
0171 1234567|phone
+49 (0)171 1234567|phone
089/1234567|phone
+44 20 7946 0958|phone
020 7946 0958|phone
07911 123456|phone
+1 415 555 2671|phone
(415) 555-2671|phone
415-555-2671|phone
phone (555) 123-4567|phone
1-800-356-9377|phone
+41 44 668 18 00|phone
０６ １２ ３４ ５６ ７８|phone
FR76 3000 6000 0112 3456 7890 189|iban
4111 1111 1111 1111|card
1 85 05 78 006 084 91|fr_nir
185057800608491|fr_nir
SSN 219-09-9999|us_ssn
ssn: 219099999|us_ssn
86 095 742 719|de_tax_id
Steuer-ID 86095742719|de_tax_id
AB 12 34 56 C|uk_nino
AB123456C|uk_nino
12345678Z|es_dni
X1234567L|es_dni
RSSMRA85T10A562S|it_codice_fiscale
85.07.30-033.28|be_national_number
756.9217.0769.85|ch_ahv
BSN 111222333|nl_bsn
PESEL 44051401359|pl_pesel
SIN 046 454 286|ca_sin
192.168.1.20|ip_address
from 203.0.113.45 at noon|ip_address
2001:db8::8a2e:370:7334|ip_address
fe80::1ff:fe23:4567:890a|ip_address
http://203.0.113.5/path|ip_address
ip:203.0.113.5|ip_address
::ffff:203.0.113.5|ip_address
https://e.example/?u=dana@example.org|email
people dana@example.org.md|email
tel:+33612345678|phone
Tel:0612345678|phone
phone=2127365000|phone
call me at 2127365000|phone
07911123456|phone
01711234567|phone
(030) 901820|phone
NHS 943 476 5919|uk_nhs
15 070649 C 103|de_pension_number
""".strip().split("\n")

NOTHING = """
v2.14.3.1
version 4.2.4.2
package==1.2.3.4
2026-10-02T09:12:33Z
02.10.2026
02/10/2026 09:30
12:30:45
1700000000
1700000000000
order 4111-2222-3333-4445
48.8566, 2.3522
3.14159265358979
mem_4kq2w8e5r7t3y1m9
nas://acme/memory/notes/a.md@85ba5ed1f0c2d3e4a5b6c7d8e9f0a1b2c3d4e5f6#L1-L2
85ba5ed1f0c2d3e4a5b6c7d8e9f0a1b2c3d4e5f6
123e4567-e89b-12d3-a456-426614174000
ISBN 978-3-16-148410-0
ISBN 0-306-40615-2
react@18.2.0
logo@2x.png
@dana on Slack
git@github.com:acme/app.git
https://user:word@host.org/x
127.0.0.1:8080
10.0.0.0/8
255.255.255.0
std::vector<int>
a::b::c
00:1A:2B:3C:4D:5E
1,234,567.89
EUR 1 234 567
12 345 678 users
75011 Paris
2019-2024
phone model 3310
0.5 0.6 0.7 0.8
1 2 3 4 5 6 7 8
tokens 4096 8192 16384
FR2026-000123456789
123-45-6789-00
page 12-15, 20-25
call at 10:30
call me 3 times in 2026
PR #1234567890
id 12345678901
0123456789
1 85 05 78 006 084 92
86 095 742 718
12345678A
RSSMRA85T10A562T
85.07.30-033.29
666-12-1234
+33 0 00 00 00 00
+1 111 111 1111
GB 12 34 56 C
BSN 111222334
CVE-2024-123456
RFC 9457, RFC 8785
""".strip().split("\n")


@pytest.mark.parametrize("case", KINDS)
def test_it_is_found_and_named(case: str) -> None:
    text, kind = case.rsplit("|", 1)
    assert [found.kind for found in find_personal(text)] == [kind]


@pytest.mark.parametrize("text", NOTHING)
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    assert find_personal(text) == ()


def test_it_says_where() -> None:
    text = "Anne\n  moved; tel. 06 12 34 56 78, mail anne@example.org"
    phone, mail = find_personal(text)
    assert text[phone.start : phone.end] == "06 12 34 56 78"
    assert (phone.line, phone.column) == (2, 15)
    assert text[mail.start : mail.end] == "anne@example.org"
    assert mail.line == 2


def test_what_two_rules_find_is_told_once() -> None:
    (found,) = find_personal("SSN or BSN: 111222333")
    assert found.kind in ("us_ssn", "nl_bsn")


@given(st.text(max_size=60), st.text(max_size=60))
def test_it_is_found_between_any_other_words(before: str, after: str) -> None:
    text = f"{before}\n\nanne@example.org\n\n{after}"
    at = text.index("anne@")
    assert any(found.start <= at < found.end for found in find_personal(text))


@given(st.text(alphabet="0123456789 .-+()/:@abcFR\n", max_size=80))
def test_nothing_found_holds_a_word_of_the_text_and_none_lies_in_another(text: str) -> None:
    last = 0
    for found in find_personal(text):
        assert last <= found.start < found.end <= len(text)
        last = found.end
        assert {type(value) for key, value in asdict(found).items() if key != "kind"} == {int}
