"""From text to the terms of the lexical index, and from a question to the terms it looks for.

A text becomes a bag of terms: Unicode NFKC, case folded, words stemmed by the Snowball stemmer of the text's language
(English or French, guessed from its small words), accents folded, stop words dropped. A compound (`foo.bar`,
`EAI_CRED_X`, `customer/acme`, `dana@acme.com`, `well-being`, `camelCase`) gives its parts and its whole without the
separators, so `user_name`, `userName` and `user-name` find each other. Chinese, Japanese, Korean, Thai, Lao and Khmer
give single characters and pairs.

A question is matched in both languages: each of its words is a small group of alternatives, and a document counts
the group once. Everything here is a pure function of its input.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple

import Stemmer

from memoranda.index import _irregular as irregular
from memoranda.index import _stopwords as stop
from memoranda.index.traits import traits_of
from memoranda.notes.lazyre import lazy

Language = Literal["en", "fr"]

# Raised whenever the same text would give other terms; part of the recipe.
ANALYSIS_VERSION = 3

# A title stands three times, a subject and a tag twice: one virtual text, so that one length and one term
# frequency serve (BM25F with one normalisation). Round numbers on purpose; LoCoMo has none of these fields.
TITLE_WEIGHT = 3
SUBJECT_WEIGHT = 2
TAG_WEIGHT = 2

LONGEST_TERM = 64  # characters; a longer run (a hash, base64) is found by its first 64
MOST_GROUPS = 64  # words of a question that are looked up, the first ones

_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
)
_MARKS += "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3"
_MARKS += "\u1dc0-\u1dff\u20d0-\u20f0\u3099\u309a"
_APOSTROPHES = "'\u2019\u02bc"


def _pattern(letter: str, further: str = "") -> re.Pattern[str]:
    word = rf"(?:{letter}(?:{letter}|{further})*)" if further else rf"{letter}+"
    joint = rf"(?:[_./@:\-+&{_APOSTROPHES}]|(?<=\d),(?=\d\d\d))"
    return lazy(rf"{word}(?:{joint}{word})*(?:\+\+|\#(?!\w))?")


_ASCII_TOKEN = _pattern("[a-z0-9]")
_ANY_TOKEN = _pattern(r"[^\W_]", f"[{_MARKS}]")
_HUMPS = lazy(r"[A-Za-z0-9][A-Z]")
_CAMEL_HUMP = lazy(r"[a-z0-9][A-Z]")
_CAMEL = lazy(r"\b[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*\b")
_CAMEL_PART = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CAPITALS = lazy(r"\b[A-Z]{2,5}\b")
_JOINTS = lazy(r"[_./@:\-+&',]+")
# Scripts written without spaces between words.
_DENSE = lazy(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003134f]+"
)
_ELIDED = stop.word_set("l d j m t s c n qu jusqu lorsqu puisqu quoiqu presqu quelqu aujourd")
_CONTRACTED = stop.word_set("s t re ve ll d m")
_FOLDED = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i", "ŋ": "n", "ŧ": "t"}
)
_ACCENTS = lazy("[\u0300-\u036f]+")

_stemmers: dict[Language, Callable[[str], str]] = {
    "en": Stemmer.Stemmer("english", 0).stemWord,
    "fr": Stemmer.Stemmer("french", 0).stemWord,
}


class Bag(NamedTuple):
    """The terms of one document with their weighted frequencies (at least 1), `length`, their sum, and its traits."""

    terms: dict[str, int]
    length: int
    traits: int


class Group(NamedTuple):
    """One word of a question: `word` as it was written (folded), `alternatives` the terms that stand for it."""

    word: str
    alternatives: tuple[str, ...]


class Query(NamedTuple):
    """The words of a question that are looked up, in their order, each once. Empty: nothing to look up."""

    groups: tuple[Group, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.groups)


def analyze(text: str, *, title: str = "", subject: str = "", tags: Iterable[str] = ()) -> Bag:
    """The terms of a document; its language is guessed from the text and the title together."""
    text = normal(text)
    tokens = _tokens(text)
    words = set(tokens)
    titled = _tokens(normal(title)) if title else []
    language = _language(words.union(titled) if titled else words, text)
    cache = caches[language]
    # Counted without a step of Python per word: a hundred thousand texts have eight million.
    terms: dict[str, int] = Counter(chain.from_iterable(map(cache.__getitem__, tokens)))
    weighted = [(titled, TITLE_WEIGHT)]
    if subject:
        weighted.append((_tokens(normal(subject)), SUBJECT_WEIGHT))
    weighted += ((_tokens(normal(tag)), TAG_WEIGHT) for tag in tags)
    for extra, weight in weighted:
        for term in chain.from_iterable(map(cache.__getitem__, extra)):
            terms[term] = terms.get(term, 0) + weight
    return Bag(terms, sum(terms.values()), traits_of(text, words))


def analyze_query(text: str) -> Query:
    """The words of a question; at most `MOST_GROUPS`, stop words dropped, never an error."""
    text = normal(text)
    tokens = dict.fromkeys(_tokens(text))
    language = _language(tokens.keys(), text)
    groups: dict[tuple[str, ...], Group] = {}
    for token in tokens:
        for word, alternatives in _alternatives(token, language):
            if alternatives and alternatives not in groups and len(groups) < MOST_GROUPS:
                groups[alternatives] = Group(word, alternatives)
    return Query(tuple(groups.values()))


def language_of(text: str) -> Language:
    """The guessed language of a text: French when its small words say so, otherwise English."""
    text = normal(text)
    return _language(set(_tokens(text)), text)


def fold(word: str) -> str:
    """Lower case, compatibility forms and Latin accents removed: `Élodie` gives `elodie`."""
    if word.isascii():
        return word.lower()
    plain = unicodedata.normalize("NFKC", word).casefold()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", plain)).translate(_FOLDED)
    return unicodedata.normalize("NFC", plain)


def normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _tokens(text: str) -> list[str]:
    """Every token, case folded, accents kept; the parts of camelCase words besides their whole."""
    tokens = _folded(text)
    if _HUMPS.search(text) is None:
        return tokens
    tokens += _camel_parts(text)
    if (capitals := capitals_of(text)) and count_as_names(len(capitals), len(tokens)):
        tokens += marked(capitals)
    return tokens


def tokens_of_run(run: str) -> list[str]:
    """The tokens of a run without white space, in its normal form, without those that capitals make of it.

    No token holds white space, and none depends on what stands behind it: the tokens of a text are those of its runs.
    """
    return _folded(run) + (_camel_parts(run) if _HUMPS.search(run) else [])


def _folded(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    return _ANY_TOKEN.findall(text.casefold())


def _camel_parts(text: str) -> list[str]:
    if _CAMEL_HUMP.search(text) is None:
        return []
    return [part.lower() for word in _CAMEL.findall(text) for part in _CAMEL_PART.findall(word) if part != word]


def capitals_of(text: str) -> list[str]:
    """The short words in capitals."""
    return _CAPITALS.findall(text)


def count_as_names(capitals: int, tokens: int) -> bool:
    """IT, US or AI in capitals is a name, not the pronoun; a text that shouts says nothing by it."""
    return 0 < 3 * capitals <= tokens + 3


def marked(capitals: Iterable[str]) -> list[str]:
    """The tokens of capitals that would be stop words."""
    return ["^" + word.lower() for word in capitals if word.lower() in _MEANT_IN_CAPITALS]


_OPERATORS = frozenset(("and", "or", "not", "near", "et", "ou"))  # how people shout at search engines
_MEANT_IN_CAPITALS = (stop.ENGLISH | stop.FRENCH | stop.FRENCH_ONLY | stop.ENGLISH_ONLY) - _OPERATORS


def _language(words: AbstractSet[str], text: str) -> Language:
    english, french = len(words & stop.ENGLISH_SIGNS), len(words & FRENCH_SIGNS)
    if french > english:
        return "fr"
    if french == english and looks_french(text):
        return "fr"
    return "en"


FRENCH_SIGNS = stop.FRENCH_SIGNS | stop.word_set("à où même mêmes très après été être était étaient êtes étant voilà")


def looks_french(text: str) -> bool:
    """Whether its letters do, or what it cuts off: asked when small words do not tell."""
    return _FRENCH_LOOK.search(text) is not None


_FRENCH_LOOK = lazy("[çéèêëàâîïôûùœ]|\\b(?:[cdjln]|qu)['’][^\\W\\d]", re.IGNORECASE)


class _Cache(dict[str, tuple[str, ...]]):
    """Token -> terms of one language. Bounded: emptied when full, since a pure function can be asked again."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def __missing__(self, token: str) -> tuple[str, ...]:
        terms = _document_terms(token, self._language)
        if len(token) <= 40:
            if len(self) >= 150_000:
                self.clear()
            self[token] = terms
        return terms


caches: dict[Language, _Cache] = {"en": _Cache("en"), "fr": _Cache("fr")}


def _words(token: str, language: Language) -> tuple[list[str], str]:
    """The words of a token (stop words dropped, dense runs whole) and its joined form when it is a compound."""
    if token.startswith("^"):
        return ([token[1:]] if _is_stop(token[1:], language) else []), ""
    suffix = "++" if token.endswith("++") else "#" if token.endswith("#") else ""
    token = token.removesuffix(suffix)
    for mark in "\u2019\u02bc":
        token = token.replace(mark, "'")
    parts = [part for part in _JOINTS.split(token) if part]
    if len(parts) > 1 and "'" in token:
        parts = _unelided(parts, token)
    kept = [part for part in parts if not _is_stop(part, language)]
    whole = "".join(parts) if len(parts) > 1 and kept else (parts[0] + suffix if suffix and parts else "")
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+", token):
        return [token.replace(",", "")], ""
    return kept, whole


def _unelided(parts: list[str], token: str) -> list[str]:
    """Without what an apostrophe cut off: `l'école` is `école`, `Dana's` is `dana`, `don't` is `do`."""
    if token.endswith("n't"):
        parts = [*parts[:-2], parts[-2][:-1] or "n"]
    elif parts[-1] in _CONTRACTED and "'" + parts[-1] in token:
        parts = parts[:-1]
    if len(parts) > 1 and fold(parts[0]) in _ELIDED:
        parts = parts[1:]
    return parts


def _is_stop(word: str, language: Language) -> bool:
    folded = fold(word)
    if language == "fr":
        return folded in _STOP_FR and word != "été"
    return folded in _STOP_EN


_STOP_FR = (stop.ENGLISH | stop.FRENCH | stop.FRENCH_ONLY) - stop.ENGLISH_ONLY
_STOP_EN = (stop.ENGLISH | stop.ENGLISH_ONLY | stop.FRENCH) - (stop.FRENCH_ONLY - stop.ENGLISH - stop.ENGLISH_ONLY)


def _stems(word: str, language: Language) -> tuple[str, ...]:
    """The terms of one word. A French stem is taken with and without the accents, since people leave them out."""
    plain = fold(word)
    if language == "en" or not plain:
        plain = irregular.ENGLISH.get(plain, plain)
        return (_stemmers["en"](plain)[:LONGEST_TERM],) if plain else ()
    if plain in irregular.FRENCH:
        word = plain = irregular.FRENCH[plain]
    stems = [fold(_stemmers["fr"](word))[:LONGEST_TERM], _stemmers["fr"](plain)[:LONGEST_TERM]]
    # The stemmer leaves `parlent` as it is, and takes `dangers` for another word than `danger`.
    if len(plain) > 5 and plain.endswith("ent") and not plain.endswith("ment"):
        stems.append(_stemmers["fr"](plain[:-2])[:LONGEST_TERM])
    elif len(plain) > 5 and plain.endswith("ers") and not plain.endswith("iers"):
        stems.append(_stemmers["fr"](plain[:-1])[:LONGEST_TERM])
    return tuple(dict.fromkeys(stems))


def _dense(word: str) -> tuple[list[str], str]:
    """The runs of a word in scripts without spaces, and what is left of it."""
    if word.isascii():  # so that a process that asks one question does not compile the pattern
        return [], word
    runs = _DENSE.findall(word)
    return runs, (_DENSE.sub(" ", word) if runs else word)


def _document_terms(token: str, language: Language) -> tuple[str, ...]:
    if token.isascii() and token.isalnum():  # one word, and not of a script without spaces
        return () if _is_stop(token, language) else _stems(token, language)
    words, whole = _words(token, language)
    terms: list[str] = []
    for word in words:
        runs, rest = _dense(word)
        for run in runs:
            folded = fold(run)
            terms.extend(folded)
            terms.extend(_pairs(folded))
        for piece in rest.split():
            terms.extend(_stems(piece, language))
    if whole and not _DENSE.search(whole):
        terms.extend(_stems(whole, language))
    return tuple(terms)


def _pairs(run: str) -> Sequence[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


@lru_cache(maxsize=20_000)  # people ask with the same words again and again
def _alternatives(token: str, language: Language) -> Sequence[tuple[str, tuple[str, ...]]]:
    words, whole = _words(token, language)
    found: list[tuple[str, tuple[str, ...]]] = []
    if whole and not _dense(whole)[0]:
        words = [*words, whole]
    for word in words:
        runs, rest = _dense(word)
        for run in runs:
            folded = fold(run)
            found.extend((pair, (pair,)) for pair in (_pairs(folded) or [folded]))
        for piece in rest.split():
            terms = (*_stems(piece, "en"), *_stems(piece, "fr"))
            found.append((fold(piece), tuple(dict.fromkeys(terms))))
    return found
