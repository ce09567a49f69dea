"""The command line, each command in a real process on a real Home: Homes, remember, recall, read."""

from __future__ import annotations

import pytest

from .conftest import Person, git
from .terminal import typed

ITEM = {
    "id", "uri", "kind", "subject", "scope", "view", "text", "score", "why", "sources", "reviewed", "taint",
    "valid_from", "valid_to", "recorded_at", "supersedes", "superseded_by",
}  # fmt: skip


# A Home


def test_init_makes_a_home_of_nothing(person: Person) -> None:
    made = person.json("init", "box", "--name", "Box")
    assert made["home"] == "box" and made["path"] == str(person.work / "box")
    assert not made["nested"] and not made["existed"] and made["notes"] == 0
    assert (person.work / "box/memory/home.yaml").is_file()
    again = person.json("init", "box")
    assert again["existed"] and again["id"] == made["id"]
    assert git(person.work / "box", "status", "--porcelain") == ""


def test_init_keeps_a_vault_as_it_is(person: Person) -> None:
    vault = person.work / "vault"
    (vault / "deep").mkdir(parents=True)
    files = {"a.md": b"# A\r\n[[b]] #tag", "deep/b.md": b"\xef\xbb\xbf---\nno: yes\n---\n", "deep/c.md": b""}
    for name, data in files.items():
        (vault / name).write_bytes(data)
    said = person.says("init", "vault")
    assert "3 files that lay there" in said
    assert {name: (vault / name).read_bytes() for name in files} == files


def test_init_nests_in_a_repository_of_code(person: Person) -> None:
    git(person.work, "init", "-q")
    (person.work / "main.py").write_text("print()\n")
    git(person.work, "add", "main.py")
    assert person.json("init", ".")["nested"]
    assert git(person.work, "status", "--porcelain") == "A  main.py\n"
    assert person.json("remember", "Tests run with make.")["home"] == person.work.name
    assert (person.work / ".memory/memory/notes").is_dir()


def test_without_a_home_the_persons_own_is_made_at_the_first_write(person: Person) -> None:
    nothing = person.json("recall", "tea")
    assert nothing["items"] == [] and nothing["coverage"]["notes"] == 0
    assert person.refused("log", code=4)["code"] == "memory_home_not_found"
    note = person.json("remember", "Dana drinks tea without milk.")
    assert note["home"] == "personal"
    assert (person.folder / "data/memoranda/home" / note["path"]).is_file()
    assert [item["id"] for item in person.json("recall", "tea")["items"]] == [note["id"]]


def test_a_named_home_is_the_only_one(person: Person) -> None:
    person.json("remember", "Dana drinks tea without milk.")
    home = person.home()
    for words, env in ((["--home", str(home)], {}), ([], {"MEMORANDA_HOME": str(home)})):
        assert person.json("recall", "tea", *words, env=env)["items"] == []
        assert [row["name"] for row in person.json("recall", "tea", *words, env=env)["coverage"]["homes"]] == ["notes"]
    assert person.json("--home", str(home), "list") == {"notes": []}
    problem = person.refused("recall", "tea", "--home", "nowhere", code=4)
    assert problem["code"] == "memory_home_not_found" and "memoranda init nowhere" in problem["remedy"]


def test_two_homes_are_recalled_together_and_the_nearest_is_written(person: Person) -> None:
    own = person.json("remember", "Dana likes the harbour at Ostermoor.")
    project = person.home("project")
    deep = project / "some/folder"
    deep.mkdir(parents=True)
    near = person.json("remember", "The harbour plan has seven berths.", cwd=deep)
    assert (own["home"], near["home"]) == ("personal", "project")
    view = person.json("recall", "harbour", cwd=deep)
    assert {item["id"]: item["home"] for item in view["items"]} == {own["id"]: "personal", near["id"]: "project"}
    assert [row["name"] for row in view["coverage"]["homes"]] == ["project", "personal"]
    assert view["coverage"]["notes"] == 2
    assert "in project" in person.says("recall", "harbour", cwd=deep)
    assert person.json("read", own["id"], cwd=deep)["home"] == "personal"


def test_one_broken_home_does_not_hide_the_other(person: Person) -> None:
    person.json("remember", "Dana likes the harbour.")
    project = person.home("project")
    near = person.json("remember", "The harbour has seven berths.", cwd=project)
    (person.folder / "data/memoranda/home/memory/home.yaml").write_text("][")
    view = person.json("recall", "harbour", "--in", "notes", cwd=project)
    assert [item["id"] for item in view["items"]] == [near["id"]]
    assert any("home.yaml" in notice for notice in view["coverage"]["notices"])
    assert "Note: " in person.says("recall", "harbour", cwd=project)
    assert "Note: Your own Home is left out" in person.run("list", cwd=project).stderr


# Remember, recall, read


@pytest.mark.requirement("A-002", "A-004", "A-006")
def test_remember_writes_a_note_with_everything_that_was_said(person: Person) -> None:
    home = person.home()
    old = person.json("remember", "Acme pays 12 euros.", "--subject", "customer/acme", "--home", str(home))
    note = person.json(
        "remember", "Acme", "pays 14 euros.", "--subject", "customer/acme", "--kind", "semantic", "--scope", "project",
        "--source", "https://acme.example/bill", "file:///bill.pdf", "--valid-from", "2026-10-02", "--valid-to",
        "2027-10-02", "--confidence", "0.8", "--supersedes", old["id"], "--session", "s-1", "--agent", "cleo",
        "--origin", "human", "--home", str(home),
    )  # fmt: skip
    assert set(note) == {"id", "uri", "path", "home", "sources", "supersedes", "session", "proposal"}
    assert note["sources"] == ["https://acme.example/bill", "file:///bill.pdf"]
    text = (home / note["path"]).read_text()
    head, _, body = text.removeprefix("---\n").partition("---\n")
    assert body.strip() == "Acme pays 14 euros."
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    assert fields["id"] == note["id"] and fields["kind"] == "semantic" and fields["scope"] == "project"
    assert fields["subject"] == "customer/acme" and fields["origin"] == "human" and fields["confidence"] == "0.8"
    assert fields["valid_from"] == "2026-10-02" and fields["valid_to"] == "2027-10-02"
    assert old["id"] in head and "https://acme.example/bill" in head
    assert git(home, "status", "--porcelain") == ""
    assert note["id"] in git(home, "log", "-1", "--format=%B", "--", note["path"])
    assert git(home, "log", "-1", "--format=%an", "--", note["path"]) == "cleo\n"


@pytest.mark.requirement("A-002")
def test_without_a_source_the_call_itself_is_cited(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "Luis decides.", "--agent", "cleo", "--home", str(home))
    (source,) = note["sources"]
    assert source.startswith("nas://notes/agents/cleo/journal/")
    assert "Luis decides." in person.json("read", source, "--home", str(home))["text"]


def test_remember_reads_standard_input(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "-", "--home", str(home), input="# Brötchen\n\nmorgens um sechs\n")
    assert (home / note["path"]).read_text().endswith("# Brötchen\n\nmorgens um sechs\n")
    problem = person.refused("remember", "-", "--home", str(home), code=2, input=b"\xff\xfe\x00caf\xe9")
    assert problem["code"] == "memory_invalid_note"


def test_text_may_begin_with_a_dash_and_options_may_come_first(person: Person) -> None:
    home = str(person.home())
    first = person.json("remember", "--source", "x://y", "x://z", "Both sources.", "--home", home)
    assert first["sources"] == ["x://y", "x://z"]
    assert person.json("remember", "--home", home, "--", "--force is dangerous")["id"]
    assert person.json("remember", "- a list item", "--home", home)["id"]
    texts = {note["title"] for note in person.json("list", "--home", home)["notes"]}
    assert len(texts) == 3


@pytest.mark.requirement("A-025", "A-026")
def test_recall_answers_in_the_form_of_the_contract(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "Acme renewed for 24 months.", "--subject", "customer/acme", "--home", str(home))
    said = person.json("journal", "append", "Acme asked for a discount.", "--speaker", "luis", "--home", str(home))
    view = person.json("recall", "what did Acme ask for?", "--home", str(home))
    assert list(view) == ["query", "items", "coverage", "budget"]
    assert view["query"] == "what did Acme ask for?"
    for item in view["items"]:
        assert set(item) >= ITEM
        assert item["view"] in ("full", "excerpt", "outline", "pointer")
        assert item["score"] == round(item["score"], 6) and item["why"]
        assert isinstance(item["sources"], list) and item["sources"]
        assert all(isinstance(item[name], list) for name in ("taint", "supersedes", "superseded_by"))
        assert item["recorded_at"].endswith("Z")
        assert item["uri"].startswith("nas://notes/")
    by_id = {item["id"]: item for item in view["items"]}
    assert set(by_id) == {note["id"], said["id"]}
    assert by_id[said["id"]]["kind"] == "journal" and by_id[said["id"]]["text"] == "Acme asked for a discount."
    assert by_id[note["id"]]["reviewed"] is False and by_id[note["id"]]["valid_to"] is None
    assert set(view["coverage"]) >= {"notes", "journal", "commit", "indexes"}
    assert view["coverage"]["notes"] == 1 and isinstance(view["coverage"]["indexes"], list)
    assert set(view["budget"]) == {"limit", "used"}
    assert 0 < view["budget"]["used"] <= view["budget"]["limit"] == 2000


@pytest.mark.requirement("A-025")
def test_recall_fits_its_budget_and_its_filters(person: Person) -> None:
    home = ["--home", str(person.home())]
    for number in range(6):
        kind = "preference" if number % 2 else "fact"
        text = f"# Ferry {number}\n\n" + f"The ferry number {number} leaves at dawn. " * 20
        person.json("remember", text, "--kind", kind, "--subject", f"ferry/n{number}", *home)
    for budget in (60, 200, 900):
        view = person.json("recall", "when does the ferry leave", "--budget", str(budget), *home)
        assert view["items"] and view["budget"]["used"] <= budget
    assert len(person.json("recall", "ferry", "--k", "2", *home)["items"]) == 2
    kinds = {item["kind"] for item in person.json("recall", "ferry", "--kind", "preference", *home)["items"]}
    assert kinds == {"preference"}
    (one,) = person.json("recall", "ferry", "--subject", "ferry/n3", *home)["items"]
    assert one["subject"] == "ferry/n3"
    assert person.json("recall", "ferry", "--scope", "team", *home)["items"] == []
    assert {i["kind"] for i in person.json("recall", "ferry", "--in", "notes,journal", *home)["items"]} <= kinds | {
        "fact", "journal",
    }  # fmt: skip


def test_recall_speaks_to_people(person: Person) -> None:
    home = ["--home", str(person.home())]
    person.json("remember", "The mole is closed.", "--valid-from", "2020-01-01", "--valid-to", "2021-01-01", *home)
    person.json("remember", "The mole is haunted, says a web page.", "--origin", "external", *home)
    code, said = typed(person, "recall", "mole", *home)
    assert code == 0 and "ended 2021-01-01" in said and "unreviewed" in said
    assert "haunted" not in said and "Not shown, from outside and not reviewed: mem_" in said
    assert "   source: nas://notes/agents/cli/journal/" in said
    assert "Looked through 2 notes" in said and "tokens" in said
    assert "\x1b" not in said
    _, nothing = typed(person, "recall", "zeppelin", *home)
    assert nothing.startswith("Nothing found.") and "Looked through 2 notes" in nothing


def test_recalled_words_cannot_steer_a_terminal(person: Person) -> None:
    home = ["--home", str(person.home())]
    note = person.json("remember", "A dangerous \x1b]0;title\x07 note.", *home)
    assert "\x1b" not in person.says("recall", "dangerous", *home)
    assert "\\x1b]0;title\\x07" in person.says("recall", "dangerous", *home)
    assert "\x1b]0;title\x07" in person.json("recall", "dangerous", *home)["items"][0]["text"]
    assert "\x1b" not in person.says("read", note["id"], *home)
    assert "\x1b" in person.says("read", note["id"], "--raw", *home)  # the bytes are what they are
    assert "\x1b]0" not in typed(person, "read", note["id"], "--raw", *home)[1]


STEERS = "\x1b]8;;https://evil.example\x07 \x9b2J \x9d0;t\x9c \u202e\u2066 \u200f\u2028 \x7f"


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_no_command_lets_words_steer_a_terminal(person: Person, json: tuple[str, ...]) -> None:
    """Escapes, the eight-bit controls, marks of direction: in a text, a title, a file name, an error."""
    root = person.home()
    home = ["--home", str(root), *json]
    quoted = STEERS.encode("unicode_escape").decode()
    front = (
        f'---\nid: mem_steers01\nsubject: "quay/{quoted}"\ntags: ["{quoted}"]\nsources: ["https://x/{quoted}"]\n---\n'
    )
    (root / "memory/notes").mkdir(exist_ok=True)
    (root / "memory/notes/a\x1b[2J\u202eb.md").write_text(f"{front}# The quay {STEERS}\n", encoding="utf-8")
    commands = (
        ["list"], ["recall", "quay"], ["read", "mem_steers01"], ["history", "mem_steers01"], ["timeline", "quay"],
        ["diff", "mem_steers01"], ["log"], ["review", "list"], ["review", "show", "mem_steers01"], ["doctor"],
        ["trace", "mem_steers01"], ["context"], ["read", f"no/{STEERS}"], ["recall", "quay", "--kind", STEERS],
    )  # fmt: skip
    for words in commands:
        _, said = typed(person, *words, *home)
        assert not set(said) & set(STEERS) - set(" ]8;https:/evil.example2J0t"), (words, said)


@pytest.mark.parametrize("query", ["the of and", '" OR NEAR(', "AND OR NOT", "*", "''", "\u200b", "-"])
def test_a_query_of_nothing_is_answered_with_nothing(person: Person, query: str) -> None:
    person.json("remember", "Something.")
    assert person.json("recall", "--", query)["items"] == []


def test_time_has_two_axes(person: Person) -> None:
    home = ["--home", str(person.home())]
    old = person.json("remember", "The contact at Acme is Dana.", "--valid-from", "2026-01-01", *home)
    new = person.json("update", old["id"], "The contact at Acme is Luis.", "--valid-from", "2026-05-01", *home)
    assert new["supersedes"] == [old["id"]]

    def found(*words: str) -> list[str]:
        return [
            item["id"] for item in person.json("recall", "contact at Acme", "--in", "notes", *words, *home)["items"]
        ]

    assert found() == [new["id"]]
    assert found("--as-of", "2026-04-30") == [old["id"]]
    assert found("--as-of", "2026-05-01") == [new["id"]]
    assert found("--at", "2020-01-01") == []
    assert found("--known-at", "2020-01-01") == []
    assert set(found("--history")) == {old["id"], new["id"]}
    assert "superseded by" in person.says("recall", "contact", "--history", "--in", "notes", *home)


@pytest.mark.requirement("A-040", "A-057", "A-058")
def test_read_gives_what_was_asked_or_a_shorter_form(person: Person) -> None:
    home = person.home()
    words = ["--home", str(home)]
    text = "# Ferry\n\nWhat to know.\n\n## Times\n\nAt dawn.\n\n## Berths\n\n" + "Seven of them. " * 100
    note = person.json("remember", text, *words)
    whole = person.json("read", note["id"], *words)
    assert whole["view"] == "full" and "Seven of them." in whole["text"] and not whole["truncated"]
    outline = person.json("read", note["uri"], "--view", "outline", *words)
    assert [line.split(" (")[0].strip() for line in outline["text"].splitlines()] == ["Ferry", "Times", "Berths"]
    section = person.json("read", note["id"], "--section", "Times", *words)
    assert section["text"].strip() == "## Times\n\nAt dawn." and section["view"] == "section"
    first, last = section["first"], section["last"]
    lines = person.json("read", note["id"], "--lines", f"{first}-{last}", *words)
    assert lines["text"] == section["text"] and lines["uri"].endswith(f"#L{first}-L{last}")
    (home / note["path"]).write_text("Everything else is gone.\n")
    assert person.json("read", lines["uri"], *words)["text"] == lines["text"], "at its revision"
    short = person.json("read", note["uri"], "--budget", "60", *words)
    assert short["truncated"] and short["view"] == "outline" and short["tokens"] <= 60
    assert person.json("read", note["uri"], "--budget", "1", *words)["view"] == "pointer"
    assert person.says("read", lines["uri"], "--raw", *words).strip() == section["text"].strip()
    told = person.run("read", note["uri"], "--budget", "60", "--raw", *words)
    assert "does not fit 60 tokens" in told.stderr and "Berths" in told.stdout


def test_front_matter_is_no_heading(person: Person) -> None:
    home = person.home()
    (home / "memory/notes").mkdir()
    (home / "memory/notes/a.md").write_text("---\nid: mem_aaaa\ntags: [x]\n---\n# Title\n\nText.\n")
    words = ["read", "memory/notes/a.md", "--home", str(home)]
    assert person.json(*words, "--view", "outline")["text"] == "Title (L5-L7)"
    assert person.json(*words, "--section", "1")["text"] == "# Title\n\nText."


def test_an_edit_in_an_editor_is_recalled_and_committed(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "The ferry leaves at six.", "--home", str(home))
    path = home / note["path"]
    path.write_text(path.read_text().replace("six", "seven"))
    (home / "memory/notes/new.md").write_text("The zeppelin leaves at noon.\n")
    items = person.json("recall", "ferry leaves seven", "--in", "notes", "--home", str(home))["items"]
    assert [(i["id"], i["text"]) for i in items[:1]] == [(note["id"], "The ferry leaves at seven.")]
    assert person.json("recall", "zeppelin", "--home", str(home))["items"][0]["text"] == "The zeppelin leaves at noon."
    assert git(home, "status", "--porcelain") == ""
