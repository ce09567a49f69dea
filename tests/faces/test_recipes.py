"""Recipes and golden questions on the command line, by a person with settings of their own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.index.embedding.static import installed
from tests.faces.conftest import Person
from tests.faces.terminal import typed
from tests.standin import StandIn, meanings, serving

DEFAULT = "words" if installed() is None else "static"


@pytest.fixture
def model() -> Iterator[StandIn]:
    with serving(meanings) as standing:
        yield standing


def configured(person: Person, model: StandIn, more: str = "") -> None:
    folder = person.folder / "config" / "memoranda"
    folder.mkdir(parents=True)
    person.env |= {"XDG_CONFIG_HOME": str(folder.parent), "OFFICE_KEY": "key-of-the-office"}
    (folder / "config.toml").write_text(
        f"""
[embedders.office]
url = "{model.url}"
model = "meanings"
dimensions = 64
key_variable = "OFFICE_KEY"
{more}"""
    )


def test_the_right_item_of_the_last_recall_becomes_a_golden_question(person: Person) -> None:
    home = str(person.home())
    person.json("remember", "The roof lost two slates.", "--home", home)
    wanted = person.json("remember", "The roof of the shed is new.", "--home", home)["id"]
    person.refused("golden", "add", "--last", "--home", home, code=4)
    shown = [
        item["id"] for item in person.json("recall", "the new roof", "--at", "2030-01-02", "--home", home)["items"]
    ]
    place = shown.index(wanted) + 1
    assert person.refused("golden", "add", "--last", "9", "--home", home, code=4)
    assert person.refused("golden", "add", "other words", "--last", "--home", home, code=2)
    added = person.json("golden", "add", "--last", str(place), "--home", home)
    assert added == {
        "question": "the new roof", "expect": [wanted], "as_of": "2030-01-02", "known_at": "2030-01-02",
    }  # fmt: skip
    assert person.json("golden", "add", "--last", wanted, "--home", home)["expect"] == [wanted]
    assert person.json("golden", "run", "--home", home)["hit"] == 1.0


def test_a_secret_in_a_question_is_not_kept_as_the_last_one(person: Person) -> None:
    home = person.home()
    person.json("remember", "The roof lost two slates.", "--home", str(home))
    token = "ghp_" + "a1B2" * 9
    person.run("recall", f"the roof {token}", "--home", str(home))
    assert not any(token.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_recipes_come_and_go(person: Person, model: StandIn) -> None:
    configured(person, model)
    home = str(person.home())
    told = person.json("remember", "The physician wrote a prescription.", "--home", home)["id"]
    said = [json.dumps({"speaker": "dana", "text": f"{n}a {n}b {n}c {n}d."}) for n in range(24)]
    (person.work / "said.jsonl").write_text("\n".join(said))
    person.json("journal", "import", "said.jsonl", "--home", home)
    person.json("golden", "add", "Who wrote a prescription?", "--expect", told, "--home", home)
    person.refused("index", "add", "endpoint:office", "--home", home, code=3)
    person.refused("index", "add", "graph", "--home", home, code=4)
    code, said = typed(person, "index", "add", "endpoint:office", "--home", home)
    assert code == 0 and "background" in said
    for _ in range(200):
        (status,) = person.json("index", "status", "--home", home)["homes"]
        if {recipe["name"]: recipe["state"] for recipe in status["recipes"]}["endpoint:office"] == "ready":
            break
        time.sleep(0.1)
    states = {recipe["name"]: recipe["state"] for recipe in status["recipes"]}
    assert states == {DEFAULT: "active", "endpoint:office": "ready"}
    found = person.json("index", "try", "endpoint:office", "doctor medicine", "--home", home)
    assert [item["id"] for item in found["items"]] == [told]
    assert "place of" not in person.says("index", "status", "--home", home)
    compared = person.json("golden", "run", "--compare", "endpoint:office", "--home", home)
    assert compared["questions"][0]["ranks"]["endpoint:office"] == 1 and not compared["worse"]
    assert "question" in person.says("golden", "run", "--compare", "endpoint:office", "--home", home)
    done = person.json("index", "promote", "endpoint:office", "--home", home)
    assert (done["recipe"], done["former"], done["forced"]) == ("endpoint:office", DEFAULT, False)
    assert person.json("recall", "doctor medicine", "--home", home)["items"][0]["id"] == told
    assert f"let endpoint:office answer in the place of {DEFAULT}" in person.says("index", "status", "--home", home)
    person.refused("index", "promote", DEFAULT, "--force", "--home", home, code=3)
    person.refused("index", "retire", "endpoint:office", "--home", home, code=5)
    assert person.json("index", "retire", DEFAULT, "--home", home)["recipe"] == DEFAULT
    assert set(model.keys) == {"Bearer key-of-the-office"}
    for place in (Path(home), person.folder / "data"):
        assert not any(b"key-of-the-office" in path.read_bytes() for path in place.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "line", ["colour = 'red'", "batch = 'many'", "key = 'abc'", "url = 5", "[embedders.broken]\nmodel = 'm'"]
)
def test_settings_that_are_not_understood_are_named(person: Person, model: StandIn, line: str) -> None:
    configured(person, model)
    file = person.folder / "config" / "memoranda" / "config.toml"
    text = file.read_text()
    file.write_text(text.replace(f'url = "{model.url}"', line) if line.startswith("url") else f"{text}{line}\n")
    home = str(person.home())
    document = person.refused("index", "add", "endpoint:office", "--home", home, code=2)
    assert "embedders" in json.dumps(document)
    assert model.asked == []
    assert person.run("recall", "roof", "--home", home).returncode == 0  # who uses no server is not kept by it
