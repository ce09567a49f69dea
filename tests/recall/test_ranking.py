"""The order of what is found, and what is read out of a question."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoranda.index.documents import Document
from memoranda.index.lexical import LexicalIndex
from memoranda.recall.facts import Fact, Ranked
from memoranda.recall.passages import _spans
from memoranda.recall.question import read_question
from memoranda.recall.ranking import account, rank

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)  # a Monday


@dataclass
class Memory:
    """A small memory: notes and journal passages with their facts."""

    index: LexicalIndex
    of: dict[str, Fact]
    names: dict[str, str]
    documents: list[Document] = field(default_factory=list)
    asked: int = 0

    def note(self, name: str, text: str, title: str = "", at: datetime | None = None, state: str = "current") -> None:
        key = self._add(name, text, title, ("in:notes",))
        self.of[key] = Fact(key, None if at is None else int(at.timestamp() * 1000), title=title, state=state)

    def said(self, session: str, at: datetime, *turns: tuple[str, str, str]) -> None:
        """Turns are (name, speaker, text)."""
        for name, speaker, text in turns:
            key = self._add(name, text, speaker, ("in:journal",))
            place = sum(fact.thread == "journal" for fact in self.of.values())
            self.of[key] = Fact(key, int(at.timestamp() * 1000), "journal", place, session, speaker)

    def _add(self, name: str, text: str, title: str, facets: tuple[str, ...]) -> str:
        key = hashlib.sha1(name.encode()).hexdigest()
        self.names[key] = name
        self.documents.append(Document(key, title, "", text, (), facets))
        self.index.apply(self.documents[-1:])
        return key

    def facts(self, keys: Sequence[str]) -> Mapping[str, Fact]:
        self.asked += 1
        return {key: self.of[key] for key in keys}

    def titled(self, question: str) -> Sequence[str]:
        return [key for key, fact in self.of.items() if fact.title and fact.title.lower() == question.lower()]

    def around(self, spans: Sequence[tuple[str, int, int]]) -> Iterable[Fact]:
        self.asked += 1
        for thread, first, last in spans:
            yield from (f for f in self.of.values() if f.thread == thread and first <= f.place <= last)

    def ranked(self, question: str, n: int = 10, refused: Iterable[str] = ()) -> list[Ranked]:
        read = read_question(question, NOW)
        no = set(refused)
        return rank(
            read, self.index.search(read.query), self, n, lambda keys: [k for k in keys if self.names[k] not in no]
        )

    def found(self, question: str, n: int = 10, refused: Iterable[str] = ()) -> list[str]:
        return [self.names[item.key] for item in self.ranked(question, n, refused)]


@pytest.fixture
def memory(tmp_path: Path) -> Iterable[Memory]:
    memory = Memory(LexicalIndex.open(tmp_path), {}, {})
    yield memory
    memory.index.close()


@pytest.fixture
def talk(memory: Memory) -> Memory:
    """Three sessions of two people, and enough other talk that no word is rare by chance."""
    memory.said(
        "s1", datetime(2026, 3, 2, tzinfo=UTC),
        ("hello", "Melanie", "Hi there, good to see you"),
        ("ask", "Caroline", "Did you find a name for the puppy?"),
        ("answer", "Melanie", "Yes, we settled on Biscuit after all that"),
        ("reply", "Caroline", "That is lovely, I am happy to hear it"),
    )  # fmt: skip
    memory.said(
        "s2", datetime(2026, 6, 9, tzinfo=UTC),
        ("pottery", "Melanie", "I signed up for a pottery class yesterday"),
        ("wow", "Caroline", "Wow, pottery class, how wonderful"),
        ("clay", "Melanie", "The clay calms me down"),
    )  # fmt: skip
    for n in range(40):
        memory.said(f"x{n}", datetime(2025, 1, 1, tzinfo=UTC) + timedelta(n), (f"x{n}", "Zed", f"filler {n} word{n}"))
    return memory


def signals(item: Ranked) -> Mapping[str, float]:
    found = account(item)["signals"]
    assert isinstance(found, dict)
    return found


def test_the_answer_to_a_question_stands_above_the_question(talk: Memory) -> None:
    assert talk.found("What name did the puppy get?")[0] == "answer"


def test_what_is_said_by_whom_is_asked_for_comes_first(talk: Memory) -> None:
    assert talk.found("What did Melanie say about her pottery class?")[0] == "pottery"
    assert talk.found("What did Caroline say about the pottery class?")[0] == "wow"
    assert talk.found("What did Mel say about the pottery class?")[0] == "pottery"


def test_a_neighbour_of_what_was_found_is_found(talk: Memory) -> None:
    found = talk.found("pottery class")
    assert "clay" in found
    assert found.index("clay") > found.index("pottery")
    assert not any(name.startswith("x") for name in found)


def test_neighbours_end_with_the_session(memory: Memory) -> None:
    memory.said("a", NOW, ("one", "Dana", "the budget of the harbour"))
    memory.said("b", NOW, ("two", "Dana", "something else"))
    for n in range(20):
        memory.said(f"x{n}", NOW, (f"x{n}", "Zed", f"filler {n}"))
    assert memory.found("harbour budget") == ["one"]


def test_when_prefers_what_names_a_time(memory: Memory) -> None:
    memory.said("a", NOW, ("plain", "Dana", "the harbour trip was long"))
    memory.said("b", NOW, ("dated", "Dana", "the harbour trip was on Tuesday"))
    assert memory.found("When was the harbour trip?")[0] == "dated"
    assert signals(memory.ranked("When was the harbour trip?")[0])["when"] > 0


def test_a_named_month_and_day_count(memory: Memory) -> None:
    for month in range(1, 12):
        at = datetime(2026, month, 9, 10, tzinfo=UTC)
        memory.said(f"s{month}", at, (f"m{month}", "Dana", "we talked of the harbour and of other plans"))
    assert memory.found("What about the harbour in June?")[0] == "m6"
    assert memory.found("What about the harbour on 9 March 2026?")[0] == "m3"
    assert memory.found("Qu'en est-il du harbour en juillet ?")[0] == "m7"
    assert memory.found("the plans of 2026-05-10")[0] == "m5"


def test_a_day_that_is_named_has_its_words(memory: Memory) -> None:
    memory.said("a", datetime(2026, 6, 16, tzinfo=UTC), ("june", "Dana", "exciting news: the grant was approved"))
    for n in range(30):
        memory.said(f"x{n}", datetime(2025, 1, n + 1, tzinfo=UTC), (f"x{n}", "Zed", f"news number {n} on the radio"))
    assert memory.found("What news of Dana on 16 June, 2026?")[0] == "june"


def test_nothing_is_shown_for_a_little_of_a_question(memory: Memory) -> None:
    for n in range(60):
        memory.note(f"n{n}", f"the plan of week {n}")
    assert memory.found("plan zebra quantum giraffe umbrella") == []
    assert len(memory.found("plan", 100)) == 60
    memory.note("zebra", "one word about a zebra and nothing else of it")
    assert memory.found("plan zebra quantum giraffe umbrella") == ["zebra"]


def test_a_title_that_is_the_question_is_first_even_when_superseded(memory: Memory) -> None:
    memory.note("old", "It was decided to wait.", "Acme renewal terms", state="superseded")
    for n in range(5):
        memory.note(f"n{n}", "acme renewal terms acme renewal terms acme renewal", "Other")
    assert memory.found("Acme renewal terms")[0] == "old"


def test_what_holds_stands_above_what_ended(memory: Memory) -> None:
    memory.note("ended", "The office is in Lyon", state="ended")
    memory.note("holds", "The office is in Lyon")
    assert memory.found("office in Lyon") == ["holds", "ended"]


def test_scores_add_up_and_have_six_decimals(talk: Memory) -> None:
    talk.note("note", "Melanie signed up for a pottery class")
    for item in talk.ranked("When did Melanie sign up for the pottery class in June 2026?"):
        assert item.score == round(item.score, 6)
        assert sum(signals(item).values()) == pytest.approx(item.score, abs=1e-5)


def test_what_may_not_be_shown_is_not(talk: Memory) -> None:
    assert "clay" not in talk.found("pottery class", refused=["clay"])
    assert talk.found("pottery class", refused=["pottery", "wow"]) == []
    assert "pottery" not in talk.found("pottery class", refused=["pottery"])


def test_the_same_question_has_the_same_answer(talk: Memory, tmp_path: Path) -> None:
    question = "What did Melanie say about her pottery class last week?"
    once = talk.ranked(question)
    assert talk.ranked(question) == once
    other = LexicalIndex.open(tmp_path / "other")
    other.apply(reversed(talk.documents))
    assert Memory(other, talk.of, talk.names).ranked(question) == once
    other.close()


def test_ties_go_by_key(memory: Memory) -> None:
    for n in range(30):
        memory.note(f"n{n}", "the same words")
    found = memory.ranked("same words", 30)
    assert [item.key for item in found] == sorted(item.key for item in found)
    assert memory.ranked("same words", 7) == found[:7]


def test_ties_go_by_key_whatever_the_length(memory: Memory) -> None:
    for n in range(20):
        memory.said(f"s{n}", NOW, (f"n{n}", "Dana", "the harbour" + " filler" * (n % 5)))
    found = memory.ranked("harbour", 20)
    assert {item.score for item in found} == {found[0].score}
    assert [item.key for item in found] == sorted(item.key for item in found)


def test_facts_are_asked_for_in_few_batches(talk: Memory) -> None:
    talk.note("note", "a pottery class")
    talk.asked = 0
    talk.ranked("pottery class")
    assert talk.asked <= 3


def test_spans_that_touch_are_one() -> None:
    facts = [Fact("a", thread="t", place=place) for place in (0, 3, 20, 22)] + [Fact("b", thread="u", place=1)]
    assert _spans(facts) == [("t", 0, 5), ("t", 18, 24), ("u", 0, 3)]


# What is read out of a question


def day(year: int, month: int, number: int) -> int:
    return int(datetime(year, month, number, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("question", "when", "amount", "name"),
    [
        ("When did Acme renew?", True, False, False),
        ("And when did Acme renew?", True, False, False),
        ("What year did Acme renew?", True, False, False),
        ("Quand Acme a-t-il renouvelé ?", True, False, False),
        ("How many turtles are there?", False, True, False),
        ("Combien de tortues ?", False, True, False),
        ("Who signed the contract?", False, False, True),
        ("Où est le bureau de Lyon ?", False, False, True),
        ("Acme renewal", False, False, False),
    ],
)
def test_kinds_of_questions(question: str, when: bool, amount: bool, name: bool) -> None:
    read = read_question(question, NOW)
    assert (read.when, read.amount, read.name) == (when, amount, name)


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("harbour yesterday", day(2026, 11, 29), day(2026, 11, 15)),
        ("harbour last week", day(2026, 11, 24), day(2026, 11, 8)),
        ("le port la semaine dernière", day(2026, 11, 24), day(2026, 11, 8)),
        ("le port hier", day(2026, 11, 29), day(2026, 11, 15)),
        ("harbour on Friday", day(2026, 11, 27), day(2026, 11, 10)),
        ("harbour last Monday", day(2026, 11, 23), day(2026, 11, 10)),
        ("harbour two weeks ago", day(2026, 11, 16), day(2026, 11, 29)),
        ("le port il y a 3 jours", day(2026, 11, 27), day(2026, 11, 10)),
        ("harbour on 2024-02-29", day(2024, 2, 29), day(2024, 3, 20)),
        ("harbour on the 3rd of May 2025", day(2025, 5, 3), day(2025, 5, 20)),
        ("harbour on May 3rd", day(2026, 5, 3), day(2025, 5, 3)),
        ("harbour on December 24", day(2025, 12, 24), day(2026, 12, 24)),
        ("le port le 1er mars 2025", day(2025, 3, 1), day(2025, 3, 20)),
    ],
)
def test_days(question: str, inside: int, outside: int) -> None:
    read = read_question(question, NOW)
    assert read.closeness(inside) == 1
    assert read.closeness(outside) == 0


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("harbour in March", day(2025, 3, 3), day(2025, 4, 3)),
        ("harbour last month", day(2026, 10, 15), day(2026, 9, 15)),
        ("harbour in May 2025", day(2025, 5, 3), day(2024, 5, 3)),
        ("harbour in 2025", day(2025, 5, 3), day(2024, 5, 3)),
        ("harbour last year", day(2025, 5, 3), day(2024, 5, 3)),
        ("le port en août", day(2025, 8, 3), day(2024, 5, 3)),
        ("le port l'année dernière", day(2025, 5, 3), day(2024, 5, 3)),
    ],
)
def test_months_and_years(question: str, inside: int, outside: int) -> None:
    read = read_question(question, NOW)
    assert read.span_fits(inside)
    assert not read.span_fits(outside)


@pytest.mark.parametrize(
    "question",
    [
        "May I march to the harbour?",
        "31 February harbour",
        "sept bureaux",
        "2026-13-45 harbour",
        "room 1234",
        "ि",
        "99 days ago",
    ],
)
def test_no_time_is_read_out_of_what_names_none(question: str) -> None:
    read = read_question(question, NOW)
    assert not read.months or question.startswith("31")
    assert not read.days or "ago" in question


def test_a_question_without_words_is_no_question() -> None:
    read = read_question("What was it?", NOW)
    assert not read.query
    assert not read.has_time
