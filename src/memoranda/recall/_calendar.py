"""Words for days, months and stretches of time in English and French, and the days that they mean."""

from __future__ import annotations

from datetime import date, timedelta

MONTHS: dict[str, int] = {}
for _number, _names in enumerate(
    (
        "january jan janvier", "february feb fevrier", "march mars", "april apr avril", "may mai", "june juin",
        "july juillet", "august aug aout", "september sept septembre", "october oct octobre",
        "november nov novembre", "december dec decembre",
    ),
    1,
):  # fmt: skip
    MONTHS |= dict.fromkeys(_names.split(), _number)
DOUBTFUL = frozenset(("may", "march", "jan", "mars", "sept", "dec", "oct"))  # words or names of their own

WEEKDAYS: dict[str, int] = {}
for _number, _names in enumerate(
    ("monday lundi", "tuesday mardi", "wednesday mercredi", "thursday jeudi", "friday vendredi", "saturday samedi",
     "sunday dimanche")
):  # fmt: skip
    WEEKDAYS |= dict.fromkeys(_names.split(), _number)

SEASONS: dict[str, int] = {  # the month in which each begins, in the north
    "spring": 3, "printemps": 3, "summer": 6, "ete": 6, "autumn": 9, "fall": 9, "automne": 9, "winter": 12, "hiver": 12,
}  # fmt: skip
UNITS: dict[str, str] = {
    "day": "day", "days": "day", "jour": "day", "jours": "day", "week": "week", "weeks": "week", "semaine": "week",
    "semaines": "week", "weekend": "weekend", "weekends": "weekend", "month": "month", "months": "month",
    "mois": "month", "year": "year", "years": "year", "an": "year", "ans": "year", "annee": "year", "annees": "year",
    "quarter": "quarter", "trimestre": "quarter",
}  # fmt: skip
NUMBERS: dict[str, int] = {"couple": 2, "few": 3, "several": 4, "quelques": 3, "fortnight": 14, "quinzaine": 15}
NUMBERS |= {"dizaine": 10, "a": 1, "an": 1, "une": 1, "un": 1}
for _number, _names in enumerate(
    ("one", "two deux", "three trois", "four quatre", "five cinq", "six", "seven sept", "eight huit", "nine neuf",
     "ten dix", "eleven onze", "twelve douze"), 1
):  # fmt: skip
    NUMBERS |= dict.fromkeys(_names.split(), _number)
ABOUT = frozenset(("few", "several", "couple", "quelques", "dizaine"))
COUNTED = frozenset(("couple", "few", "dizaine", "quinzaine", "fortnight"))  # behind an article
DAY_WORDS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1, "hier": -1, "demain": 1}
SLACK = {"day": 0, "week": 1, "weekend": 1, "month": 7, "quarter": 45, "year": 183}  # days on each side of "ago"
SOME = {"day": 7, "week": 4, "weekend": 4, "month": 6, "quarter": 4, "year": 3}  # "ces derniers jours"
# Without one of these, or a number, a question speaks of no time.
TIMELY = frozenset((*MONTHS, *WEEKDAYS, *SEASONS, *UNITS, *DAY_WORDS, "night", "evening", "aujourd", "matin", "soir"))
TIMELY |= {"morning", "afternoon", "midi", "fortnight", "quinzaine"}

LAST = frozenset("last past previous".split())
NEXT = frozenset("next coming following".split())
LAST_FR = frozenset("dernier derniere derniers dernieres passe passee precedent precedente".split())
NEXT_FR = frozenset("prochain prochaine".split())
THIS = frozenset("this ce cet cette".split())
THE = frozenset("the le la l les des ces du au d de of end debut fin milieu mi early late mid".split())
SINCE = frozenset(("since", "depuis"))
JOINTS = frozenset(("and", "to", "till", "until", "et", "a", "au", "jusqu"))
RANGES = frozenset(("between", "from", "entre", "de", "du"))
# What stands before a month or a year that is one.
BEFORE = frozenset(
    (
        "in", "of", "on", "since", "until", "till", "by", "before", "after", "during", "early", "late", "mid", "last",
        "next", "this", "between", "from", "en", "de", "du", "depuis", "debut", "fin", "mi", "avant", "apres", "entre",
        "mois", "year", "annee",
    )
)  # fmt: skip
PARTS = frozenset("morning afternoon evening night matin soir apres midi".split())


def day_number(word: str) -> int | None:
    """5 of "5", "5th" and "1er"; None for what is no day of a month."""
    for ending in ("st", "nd", "rd", "th", "er"):
        word = word.removesuffix(ending)
    return int(word) if word.isdigit() and len(word) < 3 and 1 <= int(word) <= 31 else None


def month(year: int, number: int) -> tuple[date, date]:
    """The first and the last day of a month; `number` may lie outside 1 to 12."""
    year, number = year + (number - 1) // 12, (number - 1) % 12 + 1
    first = date(year, number, 1)
    return first, (first + timedelta(31)).replace(day=1) - timedelta(1)


def moved(day: date, unit: str, by: int) -> date:
    """The day so many units later, or before; months keep the day as far as they have it."""
    if unit in ("day", "week", "weekend"):
        return day + timedelta(by * (1 if unit == "day" else 7))
    first, last = month(day.year, day.month + by * {"month": 1, "quarter": 3, "year": 12}[unit])
    return min(first.replace(day=min(day.day, last.day)), last)


def around(day: date, unit: str, step: int) -> tuple[date, date]:
    """The unit of the calendar in which a day lies, or one so many steps later: weeks begin on Monday."""
    if unit == "day":
        return day + timedelta(step), day + timedelta(step)
    if unit in ("week", "weekend"):
        monday = day - timedelta(day.weekday()) + timedelta(7 * step)
        return (monday if unit == "week" else monday + timedelta(5)), monday + timedelta(6)
    if unit == "month":
        return month(day.year, day.month + step)
    if unit == "quarter":
        first = day.month - (day.month - 1) % 3 + 3 * step
        return month(day.year, first)[0], month(day.year, first + 2)[1]
    return date(day.year + step, 1, 1), date(day.year + step, 12, 31)


def season(first: int, year: int) -> tuple[date, date]:
    """The three months of a season of a year; winter begins in December."""
    return month(year, first)[0], month(year, first + 2)[1]


def nearest_season(first: int, today: date, step: int) -> tuple[date, date]:
    """The latest that has begun (`step` 0), the latest that is over (-1), the next one (1)."""
    year = today.year if season(first, today.year)[0] <= today else today.year - 1
    if step < 0 and season(first, year)[1] >= today:
        year -= 1
    return season(first, year + max(step, 0))


def nearest_month(number: int, today: date, step: int) -> tuple[date, date]:
    """The latest that has begun (`step` 0), the latest that is over (-1), the next one (1)."""
    year = today.year if number <= today.month else today.year - 1
    if step < 0 and (year, number) == (today.year, today.month):
        year -= 1
    return month(year + max(step, 0), number)


def latest_day(number: int, day: int, today: date) -> date:
    """The latest such day that has been; of 29 February the latest leap year's."""
    for year in range(today.year, max(today.year - 9, 0), -1):
        try:
            found = date(year, number, day)
        except ValueError:
            continue
        if found <= today:
            return found
    return date(today.year, number, day)


# What is asked about a time when nothing else is asked: "what happened", "quoi de neuf".
ASKING = frozenset(
    (
        "happen happened happens happening occurred going new news said say says tell told discuss discussed talk "
        "talked talking mention mentioned learn learned learnt know knew remember remembered recall recap summary "
        "summarize note notes noted memory memories entry entries journal log activity change changed changes update "
        "updates event events anything everything something things thing all show list did done do doing "
        "passe passes passer arrive arriver neuf nouveau nouveaux nouvelle nouvelles fait faits faire on aton dit dits "
        "parle parler discute discuter appris souvenir souvenirs tout tous toutes chose choses quoi montre montrer "
        "liste resume resumer recapitule evenement evenements rappelle rappeler retenu retenir"
    ).split()
)
