"""Dates as people write them to the form of ISO 8601, letter by letter: 3rd of March, 1987 to 1987-03-03."""

from __future__ import annotations

from datetime import date
from string import Formatter

from ..errors import check_choice, check_kind
from .draws import Draws
from .task import Example, Task
from .vocabulary import Vocabulary

__all__ = ["DATE_FORMATS", "dates", "written_date"]

DATE_FORMATS = (
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{day}{th} of {month}, {year}",
    "{weekday}, {day} {month} {year}",
    "{weekday}, {month} {day}{th}, {year}",
    "{wkd} {day}/{month_number}/{year}",
    "{two_digit_day}.{two_digit_month}.{year}",
    "{day}-{mon}-{year}",
)
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
DAY, MONTH = ("day", "two_digit_day"), ("month", "mon", "month_number", "two_digit_month")  # names of the same thing


def dates() -> Task:
    """Eight English ways to write a date, to year-month-day; the tokens are characters. Years 1900 to 2099.

    >>> for example in dates().examples(3):
    ...     print("".join(example.source), "->", "".join(example.target))
    3-Jan-1950 -> 1950-01-03
    Thursday, July 6th, 1950 -> 1950-07-06
    19.02.2009 -> 2009-02-19
    """
    letters = {*"".join(MONTHS + WEEKDAYS), *"stndrdth of", *"0123456789", *",./-"}

    def draw(draws: Draws) -> Example:
        day = date.fromordinal(FIRST.toordinal() + draws.below(LAST.toordinal() - FIRST.toordinal() + 1))
        return written_date(day, draws.choice(DATE_FORMATS))

    return Task("dates", Vocabulary(sorted(letters)), Vocabulary("-0123456789"), draw)


def written_date(day: date, form: str) -> Example:
    """A date in one of the DATE_FORMATS, its ISO form, and which characters that is made from.

    A two-digit number is aligned digit by digit, both digits of a number written with one digit with that one, and
    both digits of a month with all letters of its name. The key is the date: all its forms are in the same set.

    >>> example = written_date(date(1987, 3, 3), DATE_FORMATS[2])
    >>> "".join(example.source), "".join(example.target), example.alignment[5]
    ('3rd of March, 1987', '1987-03-03', (7, 8, 9, 10, 11))
    """
    check_kind("day", day, date, "a datetime.date")
    check_choice("form", form, DATE_FORMATS)
    fields = {
        "year": str(day.year),
        "month": MONTHS[day.month - 1],
        "mon": MONTHS[day.month - 1][:3],
        "month_number": str(day.month),
        "two_digit_month": f"{day.month:02}",
        "day": str(day.day),
        "two_digit_day": f"{day.day:02}",
        "th": _ordinal(day.day),
        "weekday": WEEKDAYS[day.weekday()],
        "wkd": WEEKDAYS[day.weekday()][:3],
    }
    text, places = "", {}
    for literal, field, _, _ in Formatter().parse(form):
        text += literal
        if field:
            places[field] = range(len(text), len(text) + len(fields[field]))
            text += fields[field]
    month, number = (next(places[name] for name in names if name in places) for names in (MONTH, DAY))
    alignment = [(place,) for place in places["year"]] + [(), *_two(month), (), *_two(number)]
    return Example(tuple(text), tuple(day.isoformat()), tuple(alignment), day.isoformat())


def _two(places: range) -> list[tuple[int, ...]]:
    """What each of two digits is made from."""
    return [(place,) for place in places] if len(places) == 2 else [tuple(places)] * 2


def _ordinal(day: int) -> str:
    return "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
