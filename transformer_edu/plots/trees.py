"""The hypotheses of a beam as a tree that grows to the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes

from ..errors import check_int, check_list
from .drawing import LETTER, sheet, style, width, written
from .picture import Picture
from .values import floats_of, number, sentence, spelled

HIGH, GAP = 0.36, 0.1  # inches of a node, and between two of them
PATH, LIVE, OUT = "#08519c", "0.35", "0.6"  # the best path, what goes on, what goes no further
LOOKS = {"best": (PATH, 2.2, "-"), "live": (LIVE, 0.9, "-"), "ended": (LIVE, 1.8, "-"), "out": (OUT, 0.9, (0, (3, 2)))}


@dataclass(eq=False)
class _Node:
    """One hypothesis: its last token, its score, and what became of it."""

    label: str
    score: float
    round: int
    parent: _Node | None = None
    ended: bool = False
    best: bool = False
    children: list[_Node] = field(default_factory=list)
    row: float = 0.0

    def path(self) -> list[_Node]:
        """From the first token to this one."""
        return [*(self.parent.path() if self.parent and self.parent.round >= 0 else []), self]


def beam_tree(
    tokens: Sequence[Sequence[Any]],
    scores: Sequence[Sequence[float]],
    parents: Sequence[Sequence[int]],
    ended: Sequence[Sequence[bool]] | None = None,
    *,
    best: tuple[int, int] | None = None,
    start: Any = "<start>",
    title: str | None = None,
    exact: bool = True,
) -> Picture:
    """A beam search from left to right: a column for each round, a node for each hypothesis.

    tokens   [round][i], the token that hypothesis i gained in that round
    scores   [round][i], its score with that token, of any size: a sum of log-probabilities
    parents  [round][i], which hypothesis of the round before it continues; those of the first one continue `start`
    ended    [round][i], True where a hypothesis is complete; none are if it is left out
    best     (round, i) of the one that wins: the path to it is drawn thick
    exact    False where the scores come from training, and so differ a little from machine to machine: the alt text
             then names none

    A filled node has ended. A dashed one goes no further: it is in no later round, since others had better
    continuations. Raises ValueError for lists that do not fit each other, for a parent that is not there or has ended,
    and for a `best` that is not there.
    """
    root, levels = _grown(tokens, scores, parents, ended, start)
    if best is not None:
        for node in _at(levels, best).path():
            node.best = True
    rows = _spread(root, 0)
    with style():
        ax = _drawn(root, levels, rows, title)
    return Picture([ax], sentence("Beam", title, _in_words(levels, best, exact)))


def _grown(tokens: Any, scores: Any, parents: Any, ended: Any, start: Any) -> tuple[_Node, list[list[_Node]]]:
    """The root and the nodes of each round, each linked to its parent."""
    sizes = _sizes("tokens", tokens)
    if not sizes or not all(sizes):
        raise ValueError(f"tokens must have at least one round, and each round a hypothesis, got rounds of {sizes}")
    ended = [[False] * size for size in sizes] if ended is None else ended
    for name, lists in (("scores", scores), ("parents", parents), ("ended", ended)):
        got = _sizes(name, lists)
        if got != sizes:
            raise ValueError(f"{name} must have one entry for each token, in rounds of {sizes}, got rounds of {got}")
    root, levels = _Node(written(spelled(start)), 0.0, -1), []
    for column, size in enumerate(sizes):
        before = levels[-1] if levels else [root]
        level = []
        for i in range(size):
            place = parents[column][i]
            check_int(f"parents[{column}][{i}]", place)
            if not 0 <= place < len(before) or before[place].ended:
                there = "which ended" if 0 <= place < len(before) else f"of {len(before)}"
                raise ValueError(f"parents[{column}][{i}] is hypothesis {place} of the round before, {there}")
            label, score = (
                written(spelled(tokens[column][i])),
                float(floats_of(f"scores[{column}][{i}]", scores[column][i])),
            )
            node = _Node(label, score, column, before[place], bool(ended[column][i]))
            before[place].children.append(node)
            level.append(node)
        levels.append(level)
    return root, levels


def _sizes(name: str, rounds: Any) -> list[int]:
    check_list(name, rounds, of="rounds")
    for column, level in enumerate(rounds):
        check_list(f"{name}[{column}]", level, of="hypotheses")
    return [len(level) for level in rounds]


def _at(levels: list[list[_Node]], place: tuple[int, int]) -> _Node:
    if not isinstance(place, tuple | list) or len(place) != 2:
        raise TypeError(f"best must be a pair (round, i), got {place!r}")
    for each in place:
        check_int("each number of best", each)
    column, i = place
    if not (0 <= column < len(levels) and 0 <= i < len(levels[column])):
        raise ValueError(f"best is {tuple(place)}, but there is no hypothesis {i} of round {column}")
    return levels[column][i]


def _spread(node: _Node, row: int) -> int:
    """Give each leaf a row of its own, each parent the middle of its children; returns the next free row."""
    if not node.children:
        node.row = row
        return row + 1
    for child in sorted(node.children, key=lambda child: -child.score):
        row = _spread(child, row)
    node.row = (min(child.row for child in node.children) + max(child.row for child in node.children)) / 2
    return row


def _drawn(root: _Node, levels: list[list[_Node]], rows: int, title: str | None) -> Axes:
    columns = [[root], *levels]
    wide = [max(width(node.label) for node in level) + 0.16 for level in columns]
    wide = [max(each, width("\u221200.00", LETTER - 1.5) + 0.16) for each in wide]
    lefts = [0.05 + sum(wide[:i]) + 0.42 * i for i in range(len(columns))]
    top = 0.65 if title else 0.35
    size = (lefts[-1] + wide[-1] + 0.05, top + rows * (HIGH + GAP) + 0.05)
    (ax,) = sheet(size, [(0.0, 0.0, *size)])
    ax.set(xlim=(0, size[0]), ylim=(size[1], 0))
    ax.set_axis_off()
    if title:
        ax.text(0.05, 0.2, written(title), fontsize=LETTER + 1, va="center", parse_math=False)
    for level, left, across in zip(columns, lefts, wide, strict=True):
        if level[0] is not root:
            heading = f"round {level[0].round + 1}"
            ax.text(left + across / 2, top - 0.15, heading, fontsize=LETTER - 1, color="0.3", ha="center")
        for node in level:
            middle = top + (node.row + 0.5) * (HIGH + GAP)
            _frame(ax, node, (left, middle, across), last=node.round == len(levels) - 1)
            for child in node.children:
                end = top + (child.row + 0.5) * (HIGH + GAP)
                _branch(ax, child, (left + across, middle), (left + across + 0.42, end), last=len(levels) - 1)
    return ax


def _fate(node: _Node, last: bool) -> str:
    """Which of LOOKS a node has."""
    if node.best:
        return "best"
    return "ended" if node.ended else "live" if node.children or last or node.round < 0 else "out"


def _frame(ax: Axes, node: _Node, where: tuple[float, float, float], *, last: bool) -> None:
    left, middle, across = where
    colour, line, dash = LOOKS[_fate(node, last)]
    low, high = middle - HIGH / 2, middle + HIGH / 2
    face = "#deebf7" if node.ended else "white"
    corners = ([left, left + across, left + across, left], [low, low, high, high])
    ax.fill(*corners, facecolor=face, edgecolor=colour, linewidth=line, linestyle=dash, zorder=2)
    lone = node.round < 0
    ink = {"ha": "center", "va": "center", "color": "0.45" if _fate(node, last) == "out" else "black", "zorder": 3}
    x = left + across / 2
    ax.text(x, middle - (0 if lone else 0.07), node.label, fontsize=LETTER, parse_math=False, **ink)
    if not lone:
        ax.text(x, middle + 0.09, number(node.score), fontsize=LETTER - 1.5, **ink)


def _branch(ax: Axes, child: _Node, begin: tuple[float, float], end: tuple[float, float], *, last: int) -> None:
    colour, line, dash = LOOKS[_fate(child, child.round == last)]
    bend = (begin[0] + end[0]) / 2
    xs, ys = [begin[0], bend, bend, end[0]], [begin[1], begin[1], end[1], end[1]]
    line = {"ended": 0.9}.get(_fate(child, child.round == last), line)
    ax.plot(xs, ys, color=colour, linewidth=line, linestyle=dash, zorder=1.5 if child.best else 1)


def _in_words(levels: list[list[_Node]], best: tuple[int, int] | None, exact: bool) -> str:
    nodes = [node for level in levels for node in level]
    ends = [node for node in nodes if node.ended]
    fates = [_fate(node, node.round == len(levels) - 1) for node in nodes]
    text = f"{len(levels)} round{'s' * (len(levels) > 1)}, {len(nodes)} hypotheses, {len(ends)} of them ended"
    out = fates.count("out")
    text += f", {out} go{'es' * (out == 1)} no further"
    if best is not None:
        text += f". Best: {_told(_at(levels, best), exact)}"
    others = sorted((node for node in ends if not node.best), key=lambda node: -node.score)[:3]
    return text + (f". Others that ended: {'; '.join(_told(node, exact) for node in others)}" if others else "")


def _told(node: _Node, exact: bool) -> str:
    return " ".join(each.label for each in node.path()) + (f" {number(node.score)}" if exact else "")
