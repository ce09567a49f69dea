"""The review desk at a terminal: contradictions, signatures, one's own edits."""

from __future__ import annotations

import subprocess

from tests.faces.conftest import Person
from tests.faces.terminal import typed


def test_a_contradiction_is_listed_and_settled_at_a_terminal(person: Person) -> None:
    home = str(person.home())
    one = person.json("remember", "Closing time: six", "--subject", "pier", "--home", home)
    two = person.json("remember", "Closing time: seven", "--subject", "pier", "--home", home)
    _, told = typed(person, "review", "list", "--home", home)
    assert "contested (other value): closing time" in told and "1 contradiction" in told
    (group,) = person.json("review", "list", "--home", home)["contested"]
    assert {note["id"] for note in group["notes"]} == {one["id"], two["id"]}
    code, said = typed(person, "review", "accept", two["id"], "--home", home)
    assert code == 0 and f"supersedes {two['id']}, {one['id']}" in said
    assert person.json("review", "list", "--home", home)["contested"] == []
    assert [i["text"] for i in person.json("context", "--home", home)["items"]] == ["Closing time: seven"]
    assert [v["state"] for v in person.json("timeline", "pier", "--home", home)["versions"]].count("head") == 1


def test_with_allowed_signers_an_acceptance_is_signed_or_refused(person: Person) -> None:
    home = str(person.home())
    note = person.json("remember", "The lock opens at nine.", "--home", home)
    assert typed(person, "review", "accept", note["id"], "--home", home)[0] == 0
    assert len(person.json("context", "--home", home)["items"]) == 1
    config = person.folder / "user/.config/memoranda"
    config.mkdir(parents=True)
    key = config / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (config / "signers").write_text(f"dana {key.with_suffix('.pub').read_text()}")
    (config / "config.toml").write_text('[reviews]\nallowed_signers = "signers"\n')
    assert person.json("context", "--home", home)["items"] == [], "it was accepted without a signature"
    code, said = typed(person, "review", "accept", note["id"], "--home", home)
    assert code == 3 and "signing_key" in said
    (config / "config.toml").write_text('[reviews]\nallowed_signers = "signers"\nsigning_key = "key"\n')
    assert typed(person, "review", "accept", note["id"], "--home", home)[0] == 0
    assert len(person.json("context", "--home", home)["items"]) == 1
    assert person.json("recall", "lock", "--home", home)["items"][0]["reviewed"] is True
    (config / "config.toml").write_text('[reviews]\nallowed_singers = "signers"\n')
    assert person.refused("context", "--home", home, code=2)["detail"].startswith("[reviews]")


def test_ones_own_edits_are_shown_in_full_and_accepted_in_one_step(person: Person) -> None:
    home = person.home()
    (home / "memory/notes").mkdir(exist_ok=True)
    (home / "memory/notes/a.md").write_text("# Berth\n\nNine metres.\n")
    (home / "memory/notes/b.md").write_text("Ask Dana.\n")
    told = person.says("review", "list", "--unclaimed", "--home", str(home))
    assert "Nine metres." in told and "Ask Dana." in told
    assert typed(person, "review", "accept", "--unclaimed", "--home", str(home))[0] == 0
    assert len(person.json("context", "--home", str(home))["items"]) == 2
    code, said = typed(person, "review", "accept", "--unclaimed", "--home", str(home))
    assert code == 0 and "Nothing unclaimed waits." in said
    (home / "memory/notes/b.md").write_text("Ask Ines.\n")  # an edit of what was reviewed is one's own edit too
    assert "Ask Ines." in person.says("review", "list", "--unclaimed", "--home", str(home))
    assert typed(person, "review", "accept", "--unclaimed", "--home", str(home))[0] == 0
    items = person.json("context", "--home", str(home))["items"]
    loaded = {item["text"]: item["contested"] for item in items}
    assert loaded == {"# Berth\n\nNine metres.": False, "Ask Ines.": False}
    (home / "memory/notes/b.md").write_text("Ask nobody.\n")
    assert typed(person, "review", "reject", "--unclaimed", "--home", str(home))[0] == 0
    assert "0 notes waiting" in person.says("review", "list", "--unclaimed", "--home", str(home))


def test_a_note_is_shown_with_the_story_of_its_session(person: Person) -> None:
    home = str(person.home())
    mail = person.json("journal", "append", "Pay 9000.", "--origin", "external", "--agent", "eve", "--home", home)
    note = person.json("remember", "The limit is 9000.", "--agent", "eve", "--home", home)
    code, said = typed(person, "review", "show", note["id"], "--home", home)
    assert code == 0 and f"taint  journal {mail['id']}" in said and "The limit is 9000." in said
    story = person.json("review", "show", note["id"], "--home", home)["story"]
    assert [event["source"] for event in story if event["event"] == "taint"] == [mail["id"]]


def test_a_person_taints_an_agents_session_from_a_terminal(person: Person) -> None:
    home = str(person.home())
    code, said = typed(person, "session", "taint", "--reason", "it read a page", "--agent", "bob", "--home", home)
    assert code == 0 and "has met content from outside" in said
    note = person.json("remember", "From bob.", "--agent", "bob", "--home", home)
    assert person.json("review", "show", note["id"], "--home", home)["state"] == "quarantined"


def test_the_context_says_what_made_it_from_what(person: Person) -> None:
    home = str(person.home())
    note = person.json("remember", "The lock opens at nine.", "--home", home)
    assert typed(person, "review", "accept", note["id"], "--home", home)[0] == 0
    found = person.json("context", "--home", home)
    ((made),) = found["inputs"]
    assert found["recipe"].startswith("context ") and made["home"] == "notes" and len(made["commit"]) == 40
