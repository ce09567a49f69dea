"""From text to terms: what should find what."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.index import analysis
from memoranda.index.analysis import LONGEST_TERM, MOST_GROUPS, analyze, analyze_query, fold, language_of
from memoranda.index.traits import NUMBER, QUESTION, TIME, names_of


def finds(question: str, text: str) -> bool:
    """Every word of the question stands in the text, in one of its forms."""
    terms = analyze(text).terms
    query = analyze_query(question)
    return bool(query) and all(any(term in terms for term in group.alternatives) for group in query.groups)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("renewals", "Acme renewed, a renewal for 24 months"),
        ("did she go", "She went home"),
        ("buying a car", "They bought two cars"),
        ("child", "the children"),
        ("2 turtles", "two turtles"),
        ("favourite colour", "My favorite color"),
        ("réservations", "Les réservations étaient faites"),
        ("reservations", "Les réservations étaient faites"),
        ("reservee", "La salle a été réservée"),
        ("réservée", "La salle a ete reservee hier par le client"),
        ("cheval", "Les chevaux de la ferme"),
        ("ils vont", "Elle ira au marché avec nous"),
        ("école", "Il va à l’école"),
        ("ecole", "Il va à l'école avec nous"),
        ("avocat", "C'est l'avocat qu'il faut"),
        ("l'or", "Le prix de l'or a monté"),
        ("naïve Zoë", "a naive person named Zoe"),
        ("Straße", "STRASSE"),
        ("œuvre", "une oeuvre d'art"),
        ("EAI_CRED_X", "set EAI_CRED_X before"),
        ("cred", "set EAI_CRED_X before"),
        ("foo.bar", "call foo.bar() now"),
        ("customer/acme", "subject customer/acme"),
        ("acme", "subject customer/acme"),
        ("dana@acme.com", "write to dana@acme.com."),
        ("dana", "write to dana@acme.com"),
        ("user_name", "the userName field"),
        ("userName", "the user_name field"),
        ("name", "getUserName()"),
        ("email", "an e-mail"),
        ("wellbeing", "well-being at work"),
        ("C++", "written in C++ and C#"),
        ("c#", "written in C++ and C#"),
        ("1200", "it costs $1,200"),
        ("1,200", "it costs 1200"),
        ("2026-10-02", "on 2026-10-02 we met"),
        ("12:30", "at 12:30"),
        ("O'Brien", "Mr O’Brien called"),
        ("Dana", "Dana's plan"),
        ("IT department", "the IT department"),
        ("AI", "AI in the office"),
        ("東京", "東京タワーに行きました"),
        ("京", "東京タワーに行きました"),
        ("안녕", "안녕하세요"),
        ("हिन्दी", "यह हिन्दी है"),
        ("ﬁle", "the file"),
        ("son", "my son is five"),
        ("car", "my car is red"),
    ],
)
def test_finds(question: str, text: str) -> None:
    assert finds(question, text)


def test_a_compound_finds_what_is_written_in_one() -> None:
    terms = analyze("an email").terms
    assert any(term in terms for group in analyze_query("e-mail").groups for term in group.alternatives)


@pytest.mark.parametrize(
    ("question", "text"),
    [("IT", "it is raining"), ("US office", "give us the office"), ("c#", "written in C"), ("東大", "東京大阪")],
)
def test_does_not_find(question: str, text: str) -> None:
    assert not finds(question, text)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "the of and",
        '" OR NEAR(',
        "what is it?",
        "qu'est-ce que c'est",
        "AND OR NOT",
        "* ( ) : ^ -",
        "\0\ud800",
        "…",
        "'",
    ],
)
def test_a_question_of_small_words_looks_for_nothing(question: str) -> None:
    assert not analyze_query(question)


def test_each_word_counts_once_and_their_number_is_bounded() -> None:
    assert [group.word for group in analyze_query("acme Acme ACME dana").groups] == ["acme", "dana"]
    assert len(analyze_query(" ".join(f"word{n}" for n in range(500))).groups) == MOST_GROUPS


def test_fields_weigh_as_if_they_stood_more_often() -> None:
    bag = analyze("acme", title="acme", subject="customer/acme", tags=("acme",))
    assert bag.terms["acm"] == 1 + analysis.TITLE_WEIGHT + analysis.SUBJECT_WEIGHT + analysis.TAG_WEIGHT
    assert bag.length == sum(bag.terms.values())


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The customer said yes", "en"),
        ("Le client a dit oui", "fr"),
        ("Acme", "en"),
        ("café", "fr"),
        ("Où est passée la réunion ?", "fr"),
        ("", "en"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert language_of(text) == language


def test_fold() -> None:
    assert [fold(word) for word in ("Élodie", "ŒUVRE", "Straße", "ﬁn", "Ｆｕｌｌ", "naïve")] == [
        "elodie", "oeuvre", "strasse", "fin", "full", "naive",
    ]  # fmt: skip
    assert fold("が") == "が"  # its mark is no accent


@pytest.mark.parametrize(
    ("text", "traits"),
    [
        ("Where have you been?", QUESTION),
        ("Where have you been? [a photo of a dog walking past a wall with a painting of a woman]", QUESTION),
        ("Did you like it? " + "I did, and I would do it again with all of them, whatever it took us.", 0),
        ("I went yesterday", TIME),
        ("We met last week", TIME),
        ("La semaine dernière nous étions là", TIME),
        ("It was 2021", TIME | NUMBER),
        ("three turtles", NUMBER),
        ("we last spoke", 0),
        ("", 0),
    ],
)
def test_traits(text: str, traits: int) -> None:
    assert analyze(text).traits == traits


def test_names_are_counted_inside_sentences() -> None:
    counted = ["I like Paris", "Yes. Then no", "From Paris, Rome and Oslo to Bern", "paris", "- Paris\n- Rome"]
    assert [names_of(analyze(text).traits) for text in counted] == [1, 0, 3, 0, 0]


@given(st.text())
def test_any_text_has_terms_that_can_be_kept(text: str) -> None:
    bag = analyze(text, title=text[:20], subject=text[:5], tags=(text[-5:],))
    for term, count in bag.terms.items():
        assert count > 0
        assert 0 < len(term) <= LONGEST_TERM
        assert all(ord(char) > 32 for char in term)
        term.encode()
    assert bag == analyze(text, title=text[:20], subject=text[:5], tags=(text[-5:],))


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_what_a_question_looks_for_stands_in_the_same_text(text: str) -> None:
    """An exact keyword is always found: a text that is asked for as it is has every word of the question."""
    assert not analyze_query(text) or finds(text, text)


@given(st.text(alphabet="abcdé ùœ'’-._/@AÉ東京が1"))
def test_composed_and_decomposed_are_the_same(text: str) -> None:
    assert analyze(unicodedata.normalize("NFD", text)).terms == analyze(unicodedata.normalize("NFC", text)).terms
