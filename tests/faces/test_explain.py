"""`recall --explain`: the table says what made the score of each item, and its columns add up."""

from __future__ import annotations

import re

import pytest

from tests.faces.conftest import Person


def test_the_columns_of_the_table_add_up_to_the_scores(person: Person) -> None:
    home = str(person.home())
    for n in range(9):
        person.json("remember", f"The ferry of quay {n} leaves at seven, says Luis.", "--home", home)
    words = ["recall", "When does the ferry leave?", "--k", "9", "--home", home]
    plain, told = person.says(*words), person.says(*words, "--explain")
    assert told.startswith(plain) and "lexical" not in plain
    columns: dict[str, float] = {}
    scores: dict[str, float] = {}
    for block in re.split(r"\n(?= +\d+\.)", told.split("What made the scores")[1])[1:]:
        head, *rows = [line for line in block.splitlines() if line.strip()]
        numbers = head.split()
        names = {row.split()[0] for row in rows}
        assert {"lexical", "validity", "review", "neighbours", "session", "speaker", "date", "entities"} <= names
        for row in rows:
            cells = re.findall(r" (-(?!\d)|-?\d\.\d{4}|from \d+\.)(?: \(\d+\))?", row[11:])
            assert len(cells) == len(numbers), row
            for number, cell in zip(numbers, cells, strict=True):
                value = float(cell) if re.fullmatch(r"-?\d\.\d{4}", cell) else 0.0
                if row.startswith("score"):
                    scores[number] = value
                else:
                    columns[number] = columns.get(number, 0.0) + value
    assert list(scores) == [f"{n}." for n in range(1, 10)]
    assert all(columns[number] == pytest.approx(score, abs=6e-4) for number, score in scores.items())
    items = person.json(*words)["items"]
    assert [round(item["score"], 4) for item in items] == list(scores.values())
    assert all(set(item["why"]) == {"indexes", "effects", "signals", "by_score"} for item in items)


def test_nothing_found_needs_no_table(person: Person) -> None:
    home = str(person.home())
    person.json("remember", "The ferry leaves at seven.", "--home", home)
    assert "What made" not in person.says("recall", "zeppelin", "--explain", "--home", home)
