"""Pictures behind controls: layer, head, example, mask, temperature.

A viewer is made of the functions in `plots` and of ipywidgets. As the last line of a cell it shows itself: its
controls, its picture and the line beneath, each an output of its own. So picture and line stay where no kernel
runs (a printed page, a notebook opened again) and where ipywidgets is not installed. `viewer.states()` lists all
that the controls can reach, `viewer.draw_all()` draws it.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from . import plots
from .errors import check_callable, check_kind, check_list, check_number
from .plots.picture import lines_of
from .plots.values import allowed_by, array_of, label_lists, listed, matrix_of, one_mask, spelled, weights_of

__all__ = ["Viewer", "attention_viewer", "mask_viewer", "weights_viewer"]

PAD = "<pad>"
MOST_PREPARED = 16  # states whose labels are drawn ahead
VIEW = "application/vnd.jupyter.widget-view+json"
STALE = "The page was opened anew: if the picture does not follow, run this cell again."


def _ipywidgets() -> Any:
    """The library, or None where it is not installed."""
    try:
        import ipywidgets
    except ImportError:
        return None
    return ipywidgets


def _page() -> str | None:
    """The page from which the kernel was last asked for something; None where there is no kernel."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    return None if kernel is None else kernel.get_parent().get("header", {}).get("session")


class Viewer:
    """Pictures behind controls.

    draw     called with one value for each control, by name; returns a Picture
    choices  name -> the control's values: a sequence, or a function of the choices made before it, a dict.
             Words make a menu, numbers a slider
    start    values to begin with; the first of each control otherwise
    quick    as `draw`, but may return a picture drawn before and filled again; its `quick_png` is shown
    """

    def __init__(
        self, draw: Callable[..., plots.Picture], choices: Mapping[str, Any], *,
        start: Mapping[str, Any] | None = None, quick: Callable[..., plots.Picture] | None = None,
    ) -> None:  # fmt: skip
        check_callable("draw", draw, "draw(**state) -> Picture")
        check_kind("choices", choices, Mapping, "a dict from names to values")
        if quick is not None:
            check_callable("quick", quick, "quick(**state) -> Picture")
        start = {} if start is None else start
        check_kind("start", start, Mapping, "a dict from names to values")
        if unknown := [name for name in start if name not in choices]:
            raise ValueError(f"start must name controls, {', '.join(map(repr, choices))}, got {unknown[0]!r}")
        self.draw, self._choices, self._quick = draw, dict(choices), quick
        self.start = self._nearest(start)
        self.first = draw(**self.start)
        check_kind("what draw returns", self.first, plots.Picture, "a Picture")
        self.line = self.first.alt_text  # the line that is seen, or which error was raised
        self._later: tuple[dict, dict] | None = None  # the picture that is seen, once a control has moved
        self._settling = False
        self._picture_id, self._line_id = uuid4().hex, uuid4().hex
        self._shown_on: str | None = None

    def states(self) -> list[dict[str, Any]]:
        """Every state that the controls can reach."""
        return list(self._states({}))

    def _states(self, state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if len(state) == len(self._choices):
            yield state
            return
        name = list(self._choices)[len(state)]
        for option in self._options(name, state):
            yield from self._states(state | {name: option})

    def draw_all(self) -> list[plots.Picture]:
        """A new picture of every state, an error raised where one cannot be drawn: for tests."""
        return [self.draw(**state) for state in self.states()]

    def _options(self, name: str, state: Mapping[str, Any]) -> list[Any]:
        options = self._choices[name]
        options = options(dict(state)) if callable(options) else options
        check_list(f"choices[{name!r}]", options, of="values")
        return list(options)

    def _nearest(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """The wanted values where they can be had, else the first ones."""
        state: dict[str, Any] = {}
        for name in self._choices:
            options = self._options(name, state)
            if not options:
                raise ValueError(f"choices[{name!r}] must hold one value or more, got none")
            state[name] = wanted[name] if wanted.get(name) in options else options[0]
        return state

    @cached_property
    def controls(self) -> dict[str, Any]:
        """The widget of each control, by name. Assigning to its `value` does what a hand on it does."""
        made: dict[str, Any] = {}
        for name, value in self.start.items():
            options = self._options(name, {before: self.start[before] for before in made})
            kind, more = _ipywidgets().SelectionSlider, {"continuous_update": False}
            if isinstance(options[0], str):
                kind, more = _ipywidgets().Dropdown, {}
            more["style"] = {"description_width": "initial"}  # or a long name is cut
            made[name] = kind(options=_labelled(options), value=value, description=name, **more)
            made[name].layout.display = "none" if len(options) == 1 else None
            made[name].layout.margin = "2px 16px 2px 2px"  # or a menu touches the next name
            made[name].observe(self._changed, "value")
        return made

    @cached_property
    def note(self) -> Any:
        """The widget that says what to do where the picture cannot follow."""
        return _ipywidgets().HTML()

    @cached_property
    def widget(self) -> Any:
        """The controls as one ipywidgets box."""
        controls = _ipywidgets().HBox(list(self.controls.values()))
        controls.layout.flex_flow = "row wrap"
        if self._quick:
            self._quick(**self.start)  # so that the first change does not wait for what is prepared
        return _ipywidgets().VBox([controls, self.note])

    @property
    def png(self) -> bytes | None:
        """The picture that is seen; None after an error."""
        return self._repr_mimebundle_()[0].get("image/png")

    def _changed(self, _change: Any) -> None:
        if self._settling:
            return
        self._settling = True  # offering other values changes values: one redraw is enough
        try:
            state = self._nearest({name: control.value for name, control in self.controls.items()})
            for at, (name, value) in enumerate(state.items()):
                options = _labelled(self._options(name, dict(list(state.items())[:at])))
                control = self.controls[name]
                if list(control.options) != options:
                    control.options = options
                control.value = value
                control.layout.display = "none" if len(options) == 1 else None
        finally:
            self._settling = False
        self._redraw(state)

    def _redraw(self, state: Mapping[str, Any]) -> None:
        try:
            picture = (self._quick or self.draw)(**state)
            self._later, self.line = self._quick_bundle(picture) if self._quick else picture.bundle(), picture.alt_text
        except Exception as error:  # the last picture would be taken for this one
            self._later, self.line = ({}, {}), f"{type(error).__name__}: {error}"
            raise
        finally:
            self._update()

    def _quick_bundle(self, picture: plots.Picture) -> tuple[dict, dict]:
        return {"image/png": picture.quick_png()}, {"image/png": {"alt": picture.alt_text}}

    def _update(self) -> None:
        """Change picture and line where they are shown."""
        if self._shown_on is None:
            return
        self._display(update=True)
        self.note.value = "" if self._shown_on == _page() else html.escape(STALE)

    def _display(self, **how: Any) -> None:
        from IPython.display import display

        data, metadata = self._repr_mimebundle_()
        display(data, metadata=metadata, raw=True, display_id=self._picture_id, **how)
        display({"text/plain": lines_of(self.line)}, raw=True, display_id=self._line_id, **how)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self._controls_bundle(), raw=True)
        self._display()
        self._shown_on = _page()

    def _controls_bundle(self) -> dict[str, Any]:
        if _ipywidgets() is None:
            note = "The controls need ipywidgets (python -m pip install ipywidgets); this is the first picture."
            return {"text/plain": note}
        view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return {"text/plain": f"<Controls: {', '.join(self._choices)}. They need a running notebook>", VIEW: view}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        data, metadata = self._later or self.first.bundle(whole=self._quick is not None)
        return data | {"text/plain": repr(self)}, metadata

    def __repr__(self) -> str:
        return f"<Viewer: {len(self.states())} pictures by {', '.join(self._choices)}. {self.line}>"


def _labelled(options: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(option if isinstance(option, str) else f"{option:g}", option) for option in options]


class _Frame(NamedTuple):
    """What one state shows: labels, and what the plot function and `refill` take."""

    queries: Sequence[str]
    keys: Sequence[str]
    arrays: tuple
    title: str


def _viewer(plot: Callable, frame: Callable[..., _Frame], choices: Mapping[str, Any], **more: Any) -> Viewer:
    """A viewer that draws the labels of a picture once, and fills it again while they stay."""
    drawn: dict[tuple, plots.Picture] = {}

    def draw(**state: Any) -> plots.Picture:
        queries, keys, (first, *rest), title = frame(**state)
        return plot(first, queries, keys, *rest, title=title)

    def labelled(state: Mapping[str, Any]) -> plots.Picture:
        seen = frame(**state)
        labels = (tuple(seen.queries), tuple(seen.keys))
        if labels not in drawn:
            drawn[labels] = draw(**state)
            drawn[labels].quick_png()
        return drawn[labels]

    def quick(**state: Any) -> plots.Picture:
        if not drawn:  # before the first picture is shown, so that no later change waits for new labels
            for each in viewer.states()[:MOST_PREPARED]:
                labelled(each)
        seen = frame(**state)
        return labelled(state).refill(*seen.arrays, seen.title)

    viewer = Viewer(draw, choices, quick=quick, **more)
    return viewer


def attention_viewer(
    maps: Any, queries: Any = None, keys: Any = None, mask: Any = None, *, control: str = "layer", exact: bool = True
) -> Viewer:
    """One head of one layer at a time.

    maps  name -> weights (heads, query, key), or a list of them, one for each layer; leading axes of size 1
          are dropped, so what `record_attention` gives for one forward pass of one example fits as it is
    queries, keys, mask  as in `plots.attention_map`; each may also be a mapping from the same names
    control  what the names name, where it is no layer: "step" for {1: weights, 50: weights}, taken during a training
    exact  False where the weights come from training, as in `plots.attention_map`

    Raises ValueError, here and not at a touch of a control, for all that `plots.attention_map` refuses, and for a
    control that is no word, or "head", which the other control is called.
    """
    if not isinstance(control, str) or control in ("", "head"):
        raise ValueError(f"control must be a word for what maps names, such as 'step', and not 'head', got {control!r}")
    named = isinstance(maps, Mapping)
    if not named and not isinstance(maps, Iterable):
        raise TypeError(f"maps must be a dict from names to weights, or a list of weights, got {maps!r}")
    items = list(maps.items() if named else enumerate(maps))
    if not len(items):
        raise ValueError("maps must hold the weights of one layer or more, got none")
    layers = {name: _heads(f"maps[{name!r}]", weights) for name, weights in items}
    labels = {
        name: label_lists(weights.shape[1:], _of("queries", queries, name), _of("keys", keys, name))
        for name, weights in layers.items()
    }
    allowed = {name: allowed_by(_of("mask", mask, name), weights.shape) for name, weights in layers.items()}

    def frame(head: int, **chosen: Any) -> _Frame:
        layer = chosen[control]
        title = f"{layer}, head {head}" if isinstance(layer, str) else f"{control} {layer}, head {head}"
        return _Frame(*labels[layer], (layers[layer][head], allowed[layer][head]), title)

    choices = {control: list(layers), "head": lambda state: range(len(layers[state[control]]))}
    return _viewer(partial(plots.attention_map, exact=exact), frame, choices)


def _heads(name: str, weights: Any) -> np.ndarray:
    array = array_of(weights, name)
    while array.ndim > 3 and len(array) == 1:
        array = array[0]
    try:
        return weights_of(array, "(heads, query, key)")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _of(argument: str, value: Any, name: Any) -> Any:
    """What holds for one layer, of a mapping from the layers' names or of the same for all of them."""
    if not isinstance(value, Mapping):
        return value
    if name not in value:
        raise ValueError(f"{argument} must have an entry for each name of maps, got none for {name!r}")
    return value[name]


def mask_viewer(masks: Mapping[str, Callable[[int, int], Any]], tokens: Any, queries: Any = None) -> Viewer:
    """One kind of mask at a time, over a sentence whose first `length` tokens are real, and the rest padding.

    masks    name -> function(length, max_length) that returns a bool mask (query, key), or with leading axes
             of size 1, for example {"padding": lambda length, size: padding_mask([length], size)}
    tokens   a sentence of max_length tokens, or a mapping from the name of an example to such a sentence
    queries  the tokens that look, where they are not the same sentence (a cross mask); they hold no padding

    Raises TypeError for masks without names, ValueError, at once, for a mask that `plots.mask_picture` refuses.
    """
    if not isinstance(masks, Mapping):
        raise TypeError(f"masks must be a dict from names to functions, got {type(masks).__name__}")
    examples = tokens if isinstance(tokens, Mapping) else {"": tokens}
    examples = {name: _words(f"tokens[{name!r}]" if name else "tokens", words) for name, words in examples.items()}
    queries = listed("queries", queries)
    for name, part in (("masks", masks), ("tokens", examples)):
        if not part:
            raise ValueError(f"{name} must hold one entry or more, got none")
    for name, function in masks.items():
        check_callable(f"masks[{name!r}]", function, "f(length, max_length) -> mask")

    def frame(mask: str, length: int, example: str = "") -> _Frame:
        words = examples[example]
        keys = words[:length] + [PAD] * (len(words) - length)
        array = masks[mask](length, len(words))
        return _Frame(keys if queries is None else list(queries), keys, (array,), f"{mask} mask, length {length}")

    choices = {"mask": list(masks)} | ({"example": list(examples)} if isinstance(tokens, Mapping) else {})
    choices["length"] = lambda state: range(1, len(examples[state.get("example", "")]) + 1)
    viewer = _viewer(plots.mask_picture, frame, choices)
    for state in viewer.states():
        seen = frame(**state)
        label_lists(one_mask(seen.arrays[0], seen.queries).shape, seen.queries, seen.keys)
    return viewer


def _words(name: str, words: Any) -> list[str]:
    words = listed(name, words)
    if not words:
        raise ValueError(f"{name} must hold one token or more, got none")
    return [spelled(word) for word in words]


def weights_viewer(
    scores: Any, queries: Any = None, keys: Any = None, mask: Any = None,
    temperatures: Sequence[float] = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0), *,
    words: tuple[str, str] | None = None,
) -> Viewer:  # fmt: skip
    """The weights softmax(scores / temperature), from nearly one key for each query to nearly all alike.

    scores  (query, key); minus infinity, and what the bool mask forbids, gets no weight
    temperatures  positive numbers; the viewer begins at the one nearest to 1
    words  what a row is and what a column is, where they are no query and no key: ("last token", "next token").
           Their labels are still `queries` and `keys`; what the softmax gives is drawn by `plots.probability_map`

    Raises ValueError as `plots.attention_map` does, for a temperature that is not positive, and for words that are
    not two.
    """
    scores = matrix_of("scores", scores, blocked=True)
    check_list("temperatures", temperatures, of="numbers")
    temperatures = array_of(temperatures, "temperatures").tolist()
    if not temperatures:
        raise ValueError("temperatures must hold one number or more, got none")
    for temperature in temperatures:
        check_number("each of temperatures", temperature, above=0)
    labels = label_lists(scores.shape, queries, keys)
    allowed = allowed_by(mask, scores.shape) & np.isfinite(scores)

    def frame(temperature: float) -> _Frame:
        weights = _softmax(np.where(allowed, scores, -np.inf) / temperature)
        arrays = (weights, allowed) if words is None else (weights,)
        return _Frame(*labels, arrays, f"temperature {temperature:g}")

    start = min(temperatures, key=lambda temperature: abs(np.log(temperature)))
    plot = plots.attention_map if words is None else partial(plots.probability_map, words=words)
    return _viewer(plot, frame, {"temperature": list(temperatures)}, start={"temperature": start})


def _softmax(scores: np.ndarray) -> np.ndarray:
    """Softmax over keys; a row with nothing to attend to is all 0."""
    top = scores.max(axis=-1, keepdims=True)
    parts = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = parts.sum(axis=-1, keepdims=True)
    return parts / np.where(total > 0, total, 1.0)
