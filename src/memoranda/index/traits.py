"""What the shape of a text says about the questions that it may answer: one byte a document, kept in the index.

A turn that names a day is a better answer to "when" than one that does not, and what follows a question is likely
its answer. The shape is read once, when the document is indexed, so that ranking opens no text.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from memoranda.index._stopwords import word_set
from memoranda.notes.lazyre import lazy

QUESTION = 1  # asks at its end
TIME = 2  # says when: a day, a month, a year, "last week", "two days ago"
NUMBER = 4  # holds a number
PASSAGE = 8  # is a journal passage and not a note (set by the index, from the facet `in:journal`)
NAMES = 48  # how many capitalised words it holds inside sentences, 0 to 3, see `names_of`
_NAMES_SHIFT = 4
# Signs: what single words say. `last` and `week` may stand apart.
MOMENT, WHICH, SPAN, DIGIT = 1, 2, 4, 8
_SENTENCE_ENDS = frozenset('.!?:;\n"»”)]}-*#|> ')
_LAST_WORDS = 60  # characters; who asks often adds a word of politeness

_MOMENTS = word_set(
    """
    yesterday today tonight tomorrow ago monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december
    days weeks months years hier demain aujourd'hui lundi mardi mercredi jeudi vendredi samedi dimanche
    janvier février mars avril mai juin juillet août septembre octobre novembre décembre jours semaines mois ans
    """
)
_WHICH = word_set("last next this past dernier dernière prochain prochaine cette ce")
_SPANS = word_set("night week weekend month year morning summer winter spring fall autumn semaine année été hiver nuit")
_NUMBERS = word_set(
    """
    one two three four five six seven eight nine ten once twice couple few dozen
    deux trois quatre cinq six sept huit neuf dix
    """
)
MEANT = _MOMENTS | _WHICH | _SPANS | _NUMBERS
_REMARK = lazy(r"\s*\[[^\]]*\]\s*$")  # what was shown, in brackets after what was said
_CAPITAL = lazy(r" [A-ZÀ-Þ][a-zß-ÿ]{2}")
_DIGIT = lazy(r"[0-9]")
_YEAR = lazy(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")


def traits_of(text: str, words: AbstractSet[str]) -> int:
    """The traits of a text as a bit set; `words` are its words, case folded."""
    return shape_of(text) | traits_of_signs(signs_of(text, words))


def shape_of(text: str) -> int:
    """The traits that only the whole text shows: whether it asks at its end, and its names."""
    last = _REMARK.sub("", text[-300:]) if text.endswith("]") else text
    traits = QUESTION if "?" in last[-_LAST_WORDS:] else 0
    names = 0
    for found in _CAPITAL.finditer(text, 1):
        if text[found.start() - 1] not in _SENTENCE_ENDS:
            names += 1
            if names == 3:
                break
    return traits | names << _NAMES_SHIFT


def signs_of(text: str, words: AbstractSet[str]) -> int:
    """What the words of a text, or of a part of one without white space, say: a bit set that parts add up to."""
    signs = MOMENT if words & _MOMENTS else 0
    if words & _WHICH:
        signs |= WHICH
    if words & _SPANS:
        signs |= SPAN
    if _DIGIT.search(text) is not None:
        signs |= DIGIT | (MOMENT if _YEAR.search(text) else 0)
    elif words & _NUMBERS:
        signs |= DIGIT
    return signs


def traits_of_signs(signs: int) -> int:
    """The traits of a text whose parts have these signs."""
    moment = signs & MOMENT or (signs & WHICH and signs & SPAN)
    return (TIME if moment else 0) | (NUMBER if signs & DIGIT else 0)


def names_of(traits: int) -> int:
    """How many capitalised words inside sentences a text with these traits holds, 3 for more."""
    return (traits & NAMES) >> _NAMES_SHIFT
