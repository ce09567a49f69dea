"""Words that carry grammar and no content: English and French, in folded form (no accents, lower case).

A word that means nothing in one language and something in the other (`car`, `son`, `or`, `plus`) stands in the
`…_ONLY` list: it is dropped from a text or a question in that language only.
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text, for lists that people read and extend."""
    return frozenset(text.split())


# Never content in English, nor worth keeping in French.
ENGLISH = word_set("""
    a about after again all am an and any are aren as at be because been before being between both but by can cannot
    ca could couldn did didn do does doesn doing don during each few for from further had hadn has hasn have haven
    having he her here hers herself him himself his how i if in into is isn it its itself just let ll me might more
    most mustn my myself near no nor not of off once only other ought our ours ourselves out over own re same sha shan
    she should shouldn so some such than that the their theirs them themselves then there these they this those
    through to too under until up ve very was wasn we were weren what when where which while who whom whose why will
    with wo won would wouldn you your yours yourself yourselves
    also am etc however maybe may shall since though thus upon us via whether yet
    """)

# Never content in French, nor words of English.
FRENCH = word_set("""
    afin ainsi alors apres au aucun aucune aux auquel auquels avaient avait avant avec avez avoir avons ayant
    aussi autre autres cela celle celles celui ceci ce ces cet cette ceux chez combien comme comment dans de depuis
    des donc dont du duquel elles en encore entre es et etaient etait etant etes etre eux faut furent ici il ils je
    jusqu jusque lequel laquelle lesquels lesquelles leur leurs lors lorsque lui mais meme memes mes mien mienne
    moi ne ni nos notre nous ont ou par parce pendant peut peuvent peux pourquoi puis puisque qu quand que quel quelle
    quelles quels qui quoi sa selon sera serait seront ses si sinon soi soient sois sommes sont sous suis tandis
    te tel telle tels telles tes toi tous toute toutes tres trop tu un une vers voici voila vos votre vous vu y
    """)

# Nothing in French, something in English (or an abbreviation): kept unless the text is French.
FRENCH_ONLY = word_set("""
    ai as car elle est eu ferait la le les ma mon on par pas plus pour quant sans se son sont sur ta ton tout
    ete fait lui a d j l m n s t c
    """)

# Nothing in English, something in French: kept in a French text, so that « l'or » is found.
ENGLISH_ONLY = word_set("or but an on as me main own")

# What tells the two languages apart: words of one that hardly ever stand in the other.
ENGLISH_SIGNS = ENGLISH - FRENCH - FRENCH_ONLY - ENGLISH_ONLY - word_set("a i y no me us via etc may don")
FRENCH_SIGNS = (FRENCH | word_set("le les la est pas sur pour")) - ENGLISH - word_set("y es si te")
