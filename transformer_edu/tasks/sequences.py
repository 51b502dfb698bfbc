"""Sequences of letters to copy, to reverse, to sort; pairs to remember and to look up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_lowercase

from ..errors import check_count
from .draws import Draws
from .task import Example, Task
from .vocabulary import Vocabulary

__all__ = ["copy", "recall", "reverse", "sort"]

DIGITS = "0123456789"


def copy(*, n_symbols: int = 16, lengths: tuple[int, int] = (4, 10)) -> Task:
    """Say the sequence again. `n_symbols` letters, from lengths[0] to lengths[1] of them, each length equally likely.

    >>> example = copy().examples(1)[0]
    >>> example.source == example.target
    True
    """
    return _sequences("copy", n_symbols, lengths, lambda source: source)


def reverse(*, n_symbols: int = 16, lengths: tuple[int, int] = (4, 10)) -> Task:
    """Say the sequence backwards. Options as in `copy`.

    >>> example = reverse().examples(1)[0]
    >>> example.source == example.target[::-1]
    True
    """
    return _sequences("reverse", n_symbols, lengths, lambda source: source[::-1])


def sort(*, n_symbols: int = 16, lengths: tuple[int, int] = (4, 10)) -> Task:
    """Say the letters in the order of the alphabet. Options as in `copy`.

    Sequences of the same letters are one key, so that no sorted sequence of the test set is one of the training set.

    >>> example = sort().examples(1)[0]
    >>> sorted(example.source) == list(example.target)
    True
    """
    return _sequences("sort", n_symbols, lengths, lambda source: tuple(sorted(source)))


def _sequences(name: str, n_symbols: int, lengths: tuple[int, int], answer: Callable[[tuple], tuple]) -> Task:
    check_count("n_symbols", n_symbols, least=2)
    if n_symbols > len(ascii_lowercase):
        raise ValueError(f"n_symbols must be at most {len(ascii_lowercase)}, got {n_symbols}: the symbols are letters")
    pair = isinstance(lengths, tuple | list) and [type(length) for length in lengths] == [int, int]
    if not pair or not 1 <= lengths[0] <= lengths[1]:
        raise ValueError(f"lengths must be (shortest, longest) with 1 <= shortest <= longest, got {lengths}")
    least, most = lengths
    letters = ascii_lowercase[:n_symbols]

    def draw(draws: Draws) -> Example:
        length = least + draws.below(most - least + 1)
        source = tuple(draws.choice(letters) for _ in range(length))
        target = answer(source)
        return Example(source, target, _aligned(name, source, target), " ".join(target))

    return Task(name, Vocabulary(letters), Vocabulary(letters), draw)


def _aligned(name: str, source: Sequence[str], target: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Copy and reverse move each place to one other; sorting cannot tell equal letters apart, so it may take any."""
    if name == "sort":
        return tuple(tuple(i for i, letter in enumerate(source) if letter == wanted) for wanted in target)
    places = range(len(source)) if name == "copy" else reversed(range(len(source)))
    return tuple((place,) for place in places)


def recall(*, n_keys: int = 8, n_pairs: int = 4, n_queries: int = 2) -> Task:
    """Associative recall: letters each with a digit, then a question mark and some of the letters; say their digits.

    a 3 c 7 b 3 ? b c -> 3 7. The letters of one sequence differ, its digits may not; n_queries <= n_pairs <= n_keys.
    The induction heads of language models do this; Ba et al. 2016, "Using Fast Weights to Attend to the Recent Past",
    section 4.1.

    >>> example = recall().examples(1)[0]
    >>> at = example.source.index(example.source[-1])  # where the last letter asked for stands with its digit
    >>> example.source[at + 1] == example.target[-1]
    True
    """
    for name, value in (("n_keys", n_keys), ("n_pairs", n_pairs), ("n_queries", n_queries)):
        check_count(name, value)
    if not n_queries <= n_pairs <= n_keys <= len(ascii_lowercase):
        raise ValueError(
            f"n_queries <= n_pairs <= n_keys <= {len(ascii_lowercase)} must hold, got {n_queries}, {n_pairs}, {n_keys}"
        )
    letters = ascii_lowercase[:n_keys]

    def draw(draws: Draws) -> Example:
        keys = draws.sample(letters, n_pairs)
        values = [draws.choice(DIGITS) for _ in keys]
        asked = draws.sample(range(n_pairs), n_queries)
        source = [token for pair in zip(keys, values, strict=True) for token in pair]
        source = (*source, "?", *(keys[i] for i in asked))
        alignment = tuple((2 * i + 1,) for i in asked)
        return Example(source, tuple(values[i] for i in asked), alignment, " ".join(source))

    return Task("recall", Vocabulary([*letters, *DIGITS, "?"]), Vocabulary(DIGITS), draw)
