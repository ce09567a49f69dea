"""Secrets: how many are found, how often honest text is refused, and what a kilobyte costs.

The examples are those of two scanners' rules (`../shared/data/secrets`), in halves by their hash: the rules were made
on the first, the second is for the report. Two readings:

* as labelled: 1 is what a rule must find, 0 what that one rule must not; each text counts once, and holds one when any
  rule must find one. Many a 0 is the secret of no rule that is asked here (a live token in an older form, a password
  that one scanner leaves to the other), many a 1 is no secret (the name of a bucket, an account's number, `$password`);
* as read: a row holds one when a literal password, 20 random characters, or what names an account's own things in a
  cloud stands in it. Rows of rules that look for public names hold none; the others were read one by one where label
  and finding differ, and `bench/secrets_read.txt` says what was read, by the first digits of each row's SHA-256.

No value is printed. `python -m bench secrets`; the table needs the data, which is not shipped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bench._common import DATA, ROOT, Line, Options, percentile, texts
from memoranda.trust.secrets import find_secrets

TITLE = "Secrets: found, refused by mistake, and the time for a kilobyte"
FOLDER = DATA.parent
READ = Path(__file__).with_name("secrets_read.txt")
PLAIN = re.compile(r"(?i)passw|pwd|secret|token|key|mot de passe")  # what a kilobyte costs at least, for comparison
# Rules that look for the public name of something.
NAMES_ONLY = frozenset("np.gcs.2 np.linkedin.1 np.shopify.1 np.age.1".split())


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def examples() -> list[dict[str, object]]:
    """The rows of both scanners: `src`, `rule`, `text`, `label`."""
    lines = (FOLDER / "secrets" / "examples.jsonl.b64").read_text(encoding="ascii").split()
    return [json.loads(base64.b64decode(line)) for line in lines]


def honest() -> Iterator[tuple[str, list[str]]]:
    """Texts that hold no secret, by name."""
    talks = json.loads(DATA.read_text(encoding="utf-8"))
    yield (
        "conversations (LoCoMo)",
        [
            turn["text"]
            for talk in talks
            for turns in talk["conversation"].values()
            if isinstance(turns, list)
            for turn in turns
        ],
    )
    faq = json.loads((FOLDER / "fr" / "cnil_faq.json").read_text(encoding="utf-8"))
    passages = [part for article in faq["data"] for part in article["paragraphs"]]
    yield (
        "French questions and answers",
        [part["context"] for part in passages] + [asked["question"] for part in passages for asked in part["qas"]],
    )
    vault = sorted(path for path in (FOLDER / "markdown").rglob("*") if path.is_file())
    yield "an Obsidian vault", [path.read_text(encoding="utf-8", errors="replace") for path in vault]
    prompts = [json.loads(line) for line in (FOLDER / "injection" / "prompts.jsonl").read_bytes().splitlines()]
    yield "benign prompts and mails", [row["text"] for row in prompts if row["label"] == 0]
    pages = [*ROOT.glob("docs/*.md"), ROOT / "README.md", *ROOT.glob("examples/**/*.md")]
    yield "our documents and examples", [page.read_text(encoding="utf-8") for page in pages]


def run(options: Options) -> Iterator[Line]:
    if not (FOLDER / "secrets").exists():
        return
    rows = examples()
    read = dict(line.split() for line in READ.read_text(encoding="ascii").splitlines() if line[:1] not in ("", "#"))
    held = {str(row["text"]).strip() for row in rows if row["label"]}
    once = sorted({str(row["text"]).strip() for row in rows})
    yield from _rates("as labelled, each text once", [(text in held, text) for text in once], (95, 1))
    yield _mistaken([text for text in once if text not in held])
    yield from _rates("as labelled, each row", [(bool(row["label"]), str(row["text"])) for row in rows], None)
    yield _contradicted(rows)
    for half, name in ((0, "first half (work)"), (1, "second half (report)")):
        mine = [row for row in rows if int(digest(str(row["text"]))[:2], 16) % 2 == half]
        labelled = [(bool(row["label"]), str(row["text"])) for row in mine]
        yield from _rates(f"{name}, as labelled", labelled, None)
        seen = [
            (
                {"holds": True, "none": False}.get(
                    read.get(digest(str(row["text"]))[:12], ""), bool(row["label"]) and row["rule"] not in NAMES_ONLY
                ),
                str(row["text"]),
            )
            for row in mine
        ]
        yield from _rates(f"{name}, as read", seen, (95, 1))
    for name, texts_ in honest():
        refused = sum(bool(find_secrets(text)) for text in texts_)
        yield Line(f"refused: {name}", 100 * refused / len(texts_), "%", note=f"{refused} of {len(texts_):,}")
    yield from _times(options.samples(2000))


def _rates(name: str, rows: list[tuple[bool, str]], bounds: tuple[float, float] | None) -> Iterator[Line]:
    for wanted, word, place in ((True, "found", 0), (False, "refused by mistake", 1)):
        of = [text for holds, text in rows if holds is wanted]
        share = 100 * sum(bool(find_secrets(text)) for text in of) / len(of)
        bound, met = "", None
        if bounds:
            bound = f"at {'most' if place else 'least'} {bounds[place]} %"
            met = share <= bounds[1] if place else share >= bounds[0]
        yield Line(f"{name}: {word}", share, "%", bound=bound, met=met, note=f"of {len(of)}")


def _mistaken(none: list[str]) -> Line:
    """What is found in texts of which every rule says that it must not find it."""
    kinds = Counter(found[0].kind for text in none if (found := find_secrets(text)))
    note = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return Line("as labelled, each text once: refused by mistake, kinds", len(kinds), "", note=note)


def _contradicted(rows: list[dict[str, object]]) -> Line:
    """How often a finder that finds all is wrong: one row says that a text holds a secret, another that it does not."""
    held = {str(row["text"]).strip() for row in rows if row["label"]}
    none = [row for row in rows if not row["label"]]
    both = [row for row in none if str(row["text"]).strip() in held]
    texts_ = len({str(row["text"]).strip() for row in both})
    return Line(
        "as labelled: both labels on the same text",
        100 * len(both) / len(none),
        "%",
        note=f"{len(both)} of {len(none)}: another row says that it must be found ({texts_} texts)",
    )


def _times(count: int) -> Iterator[Line]:
    """Processor time a kilobyte, in pieces of a kilobyte, the least of three; one plain pattern over it beside."""
    for name, source in (
        ("of conversation", " ".join(texts(count * 2))),
        ("of French", " ".join(next(texts_ for name, texts_ in honest() if name.startswith("French")))),
        ("of scanners' examples", "\n".join(str(row["text"]) for row in examples())),
    ):
        pieces = [source[at : at + 1024] for at in range(0, min(len(source), count * 1024), 1024)]
        ours = [_least(find_secrets, piece) for piece in pieces]
        yard = [_least(PLAIN.findall, piece) for piece in pieces]
        for what, value, plain in (
            ("mean", sum(ours) / len(ours), sum(yard) / len(yard)),
            *((f"p{percent}", percentile(ours, percent), percentile(yard, percent)) for percent in (50, 95)),
        ):
            yield Line(
                f"a kilobyte {name}, {what}",
                value,
                "ms",
                "one pattern",
                plain,
                value / plain,
                bound="at most 0.3 ms",
                met=value <= 0.3,
            )


def _least(run: Callable[[str], object], text: str) -> float:
    """Milliseconds, of three times."""
    took = []
    for _ in range(3):
        started = time.process_time_ns()
        run(text)
        took.append((time.process_time_ns() - started) / 1e6)
    return min(took)
