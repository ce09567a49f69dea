"""The page on which a person reviews one note: plain HTML, nothing from elsewhere, every word of the note as data.

What cannot be seen (direction marks, zero-width characters, controls) is spelled out: a person must not accept bytes
that look otherwise than they are.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memoranda.operations.presenting import NOWHERE
from memoranda.operations.session_desk import event_line

if TYPE_CHECKING:
    from memoranda.operations.once import Asked
    from memoranda.operations.reviewing import Waiting
    from memoranda.operations.settling import Contested

_EVENTS = 20
_SHOWN = 20_000  # characters of one source; the note itself is never cut
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #666; --warn: #a33b00; --yes: #14663a; }
@media (prefers-color-scheme: dark) { :root { --quiet: #aaa; --warn: #ff9d66; --yes: #7fd6a4; } }
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; margin: 0 0 .25rem; } h2 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .5rem 0; } .quiet { color: var(--quiet); } .warn { color: var(--warn); font-weight: 600; }
pre { white-space: pre-wrap; font: .95rem/1.45 ui-monospace, monospace; border: 1px solid var(--line);
  border-radius: .5rem; padding: .75rem; margin: .5rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--quiet); } dd { margin: 0; }
mark { background: #ffd54a; color: #000; border-radius: .2rem; padding: 0 .15rem; font-size: .85em; }
form { border-top: 1px solid var(--line); margin-top: 1.5rem; padding-top: 1rem; }
label { display: block; color: var(--quiet); }
input { width: 100%; font: inherit; padding: .6rem; border: 1px solid var(--line); border-radius: .5rem; }
.answers { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1rem; }
button { font: inherit; font-weight: 600; padding: .75rem 1.25rem; border-radius: .5rem; border: 2px solid;
  flex: 1 1 9rem; background: transparent; cursor: pointer; min-height: 3rem; }
.yes { color: var(--yes); } .no { color: var(--warn); }
"""


def visible(text: str) -> str:
    """The text as HTML, with what cannot be seen spelled out as its code point."""
    return "".join(_seen(character) for character in text)


def _seen(character: str) -> str:
    if character in "\n\t" or (character.isascii() and character.isprintable()):
        return html.escape(character)
    kind = unicodedata.category(character)
    if (
        kind[0] == "C"
        or (kind[0] == "Z" and character != " ")
        or "VARIATION SELECTOR" in unicodedata.name(character, "")
    ):
        return f"<mark>U+{ord(character):04X}</mark>"
    return character


def review_page(item: Waiting, asks: str, contested: Iterable[Contested], nonce: str, form: str) -> str:
    """The page for one note. `asks` is the agent's name, `nonce` the style's, `form` what the answer must carry."""
    body = "\n".join(_review(item, asks, contested, form))
    return _whole("Review a note", body, nonce)


def notice_page(title: str, text: str, nonce: str) -> str:
    """A page that only says something."""
    return _whole(title, f"<h1>{html.escape(title)}</h1>\n<p>{html.escape(text)}</p>", nonce)


def _whole(title: str, body: str, nonce: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style nonce="{nonce}">{_STYLE}</style>'
        f"</head><body><main>{body}</main></body></html>\n"
    )


def _review(item: Waiting, asks: str, contested: Iterable[Contested], form: str) -> Iterator[str]:
    yield "<h1>Shall this be remembered?</h1>"
    yield f'<p class="quiet">{visible(asks)} asks. Accepting it says that you have read it and stand by it, byte for '
    yield "byte; it is loaded automatically from then on. It does not make it true.</p>"
    yield f"<h2>The text</h2><pre>{visible(item.text)}</pre>"
    facts = (f"<dt>{html.escape(name)}</dt><dd>{visible(value)}</dd>" for name, value in _facts(item))
    yield f"<dl>{''.join(facts)}</dl>"
    if item.taint:
        yield '<p class="warn">It comes from outside, or from a session that met something from outside:</p>'
        for root in item.taint:
            yield f"<p>{visible(root['reason'])} ({visible(root['kind'])}): {visible(root['source'])}</p>"
    else:
        yield "<p>Nothing from outside is known of the session that wrote it.</p>"
    if item.story:
        yield "<h2>The session that wrote it</h2>"
        yield f"<pre>{visible(chr(10).join(event_line(event) for event in item.story[-_EVENTS:]))}</pre>"
    if item.supersedes:
        yield f'<p class="warn">It replaces {visible(", ".join(item.supersedes))}.</p>'
    for group in contested:
        yield f'<p class="warn">It contradicts ({html.escape(group.reason)}: {visible(group.about)}); accepting it '
        yield "supersedes:</p>"
        for note in group.notes:
            if note["path"] != item.path:
                yield f"<pre>{visible(note['text'] or '')}</pre>"
    yield "<h2>Where it comes from</h2>"
    if not item.evidence:
        yield "<p>It cites nothing.</p>"
    for evidence in item.evidence:
        yield f"<p>{visible(evidence.uri)}</p>"
        if not evidence.stood:
            yield f'<p class="warn">{NOWHERE}</p>'
        yield f"<pre>{_cut(evidence.text)}</pre>" if evidence.text else '<p class="quiet">It cannot be read here.</p>'
    yield _form(form)


def operation_page(item: Asked, nonce: str, form: str) -> str:
    """The page for one operation that was refused: every word of it, and whether it may be done once."""
    return _whole("Allow an operation", "\n".join(_operation(item, form)), nonce)


def _operation(item: Asked, form: str) -> Iterator[str]:
    yield "<h1>Shall this be done, once?</h1>"
    yield '<p class="warn">The session that asks has met content from outside and private data, and this reaches '
    yield "others than you. An attacker's words may be what asks.</p>"
    what, *words = item.lines()
    yield f"<p>{visible(what)}</p>"
    yield f"<pre>{visible(chr(10).join(words))}</pre>"
    yield f'<p class="quiet">{visible(f"Home {item.home}, asked at {item.at}")}</p>'
    yield _form(form, "Do not allow", "Allow once")


def _facts(item: Waiting) -> Iterator[tuple[str, str]]:
    yield "kind", item.kind
    yield "subject", item.subject or "none"
    yield "state", item.state
    yield "written by", f"{item.agent or 'nobody known'}, session {item.session or 'unknown'}"
    yield "file", item.path
    yield "bytes", item.uri.rpartition("@")[2]


def _cut(text: str) -> str:
    return visible(text) if len(text) <= _SHOWN else f"{visible(text[:_SHOWN])}\n<mark>cut here</mark>"


def _form(form: str, no: str = "Reject", yes: str = "Accept") -> str:
    return (
        f'<form method="post"><input type="hidden" name="form" value="{form}">'
        '<label for="comment">Why (kept with the decision, may be empty)</label>'
        '<input id="comment" name="comment" maxlength="500" autocomplete="off">'
        '<div class="answers"><button class="no" name="verdict" value="reject">' + no + "</button>"
        '<button class="yes" name="verdict" value="accept">' + yes + "</button></div></form>"
    )
