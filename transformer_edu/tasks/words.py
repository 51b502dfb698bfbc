"""Numbers in English words to numbers in German words, whose order differs: fifty four, vier und fünfzig."""

from __future__ import annotations

from .draws import Draws
from .task import Example, Task
from .vocabulary import Vocabulary

__all__ = ["number_in_words", "number_words"]

ENGLISH = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
GERMAN = ("null", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf")
SHORTENED = {"sechs": "sech", "sieben": "sieb"}  # in front of zehn
ENGLISH_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
GERMAN_TENS = ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
HUNDRED, THOUSAND = (100, "hundred", "hundert"), (1000, "thousand", "tausend")
LIMIT = 1_000_000


def number_words(*, max_digits: int = 6) -> Task:
    """English number words to German ones, for numbers of 1 to `max_digits` digits.

    Each number of digits is equally likely. If each number were, nine in ten would have six digits, and a model
    would hardly ever see a short one. Zero is left out: no other number says anything about its word.

    >>> example = number_words().examples(3)[2]
    >>> example.source, example.target
    (('twenty', 'two'), ('zwei', 'und', 'zwanzig'))
    """
    if type(max_digits) is not int or not 1 <= max_digits <= 6:
        raise ValueError(f"max_digits must lie in 1..6, got {max_digits!r}: the words end below a million")

    def draw(draws: Draws) -> Example:
        n_digits = 1 + draws.below(max_digits)
        least = 10 ** (n_digits - 1)
        return number_in_words(least + draws.below(10**n_digits - least))

    english = (*ENGLISH[1:], *ENGLISH_TENS, HUNDRED[1], THOUSAND[1])
    german = (*GERMAN[1:], "eins", *SHORTENED.values(), "und", *GERMAN_TENS, HUNDRED[2], THOUSAND[2])
    return Task("number words", Vocabulary(english), Vocabulary(german), draw)


def number_in_words(number: int) -> Example:
    """A number from 0 to 999,999 in English and in German, and which German words say which English ones.

    German writes its words together: "".join(target) is what stands in a book. `und` says nothing that an English
    word says, so it is aligned with none.

    >>> example = number_in_words(54)
    >>> example.source, example.target, example.alignment
    (('fifty', 'four'), ('vier', 'und', 'fünfzig'), ((1,), (), (0,)))
    """
    if type(number) is not int or not 0 <= number < LIMIT:
        raise ValueError(f"number must be a whole number from 0 to {LIMIT - 1}, got {number!r}")
    english, german, alignment = _words(number, last=True)
    return Example(tuple(english), tuple(german), tuple(alignment), str(number))


def _words(number: int, *, last: bool) -> tuple[list[str], list[str], list[tuple[int, ...]]]:
    """English words, German words, and the places of the English words that each German word says.

    `last`: nothing follows, so that 1 is `eins`; before hundert and tausend it is `ein`.
    """
    if number < 20:
        german = _below_twenty(number, last)
        return [ENGLISH[number]], german, [(0,)] * len(german)
    if number < 100:
        tens, ones = number // 10 - 2, number % 10
        if not ones:
            return [ENGLISH_TENS[tens]], [GERMAN_TENS[tens]], [(0,)]
        return [ENGLISH_TENS[tens], ENGLISH[ones]], [GERMAN[ones], "und", GERMAN_TENS[tens]], [(1,), (), (0,)]
    size, in_english, in_german = THOUSAND if number >= 1000 else HUNDRED
    english, german, alignment = _words(number // size, last=False)
    alignment = [*alignment, (len(english),)]
    english, german = [*english, in_english], [*german, in_german]
    if number % size:
        more_english, more_german, more = _words(number % size, last=last)
        alignment += [tuple(len(english) + place for place in places) for places in more]
        english, german = english + more_english, german + more_german
    return english, german, alignment


def _below_twenty(number: int, last: bool) -> list[str]:
    if number == 1 and last:
        return ["eins"]
    if number < 13:
        return [GERMAN[number]]
    ones = GERMAN[number - 10]
    return [SHORTENED.get(ones, ones), "zehn"]
