"""The exercise decoder_layer of lesson 08: how people wire self-attention, cross-attention and feed-forward.

The two placements of the norm are two programs, which go wrong together or one at a time. The one wrong implementation
therefore has each switch twice, with the ending _pre and _post.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F

from ..masks import causal_mask
from ..model import decoder_layer
from .exercise import Mistake, Probe, Result, Symptom
from .model_parts import D_MODEL, GRADIENT_CUT, LayerExercise, alone_right, make_parts, table
from .norm_parts import numbers
from .outcome import same_value
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen

__all__ = ["DECODER_LAYER"]

Function = Callable[[Tensor], Tensor]

# How a sub-layer f, a norm n, the state x and the residual r (usually x) are put together.
FORMULAS: dict[str, Callable[[Tensor, Tensor, Function, Function], Tensor]] = {
    "before": lambda x, r, f, n: r + f(n(x)),
    "after": lambda x, r, f, n: n(r + f(x)),
    "no_norm": lambda x, r, f, n: r + f(x),
    "no_residual_before": lambda x, r, f, n: f(n(x)),
    "no_residual_after": lambda x, r, f, n: n(f(x)),
    "bare": lambda x, r, f, n: f(x),
    "skipped": lambda x, r, f, n: x,
    "norm_only": lambda x, r, f, n: n(x),
    "both": lambda x, r, f, n: n(r + f(n(x))),
    "normed_residual": lambda x, r, f, n: n(x) + f(n(x)),
    "normed_residual_alone": lambda x, r, f, n: n(x) + f(x),
    "norm_of_f": lambda x, r, f, n: r + n(f(x)),
    "sandwich": lambda x, r, f, n: r + n(f(n(x))),
    "residual_after_norm": lambda x, r, f, n: r + n(r + f(x)),
    "twice": lambda x, r, f, n: r + f(n(r + f(n(x)))),
    "doubled": lambda x, r, f, n: r + r + f(n(x)),
    "doubled_after": lambda x, r, f, n: n(r + r + f(x)),
}

RIGHT = {
    "order": "self cross ffn",
    "self": "given", "cross": "given", "ffn": "given",
    "self_norm": "1", "cross_norm": "2", "ffn_norm": "3",
    "self_residual": "x", "cross_residual": "x", "ffn_residual": "x",
    "self_inputs": "a a a", "cross_inputs": "a memory memory", "ffn_inputs": "a",
    "self_mask": "target", "cross_mask": "memory",
    "self_part": "self_attn", "cross_part": "cross_attn", "ffn_part": "ffn",
    "end": "x", "changed": "no",
}  # fmt: skip


def _mask(which: str, target: Tensor, memory: Tensor | None) -> Tensor | None:
    return {
        "target": lambda: target,
        "memory": lambda: memory,
        "none": lambda: None,
        "target_inverted": lambda: ~target,
        "memory_inverted": lambda: ~memory,
        "both": lambda: target if memory is None else target & memory,
    }[which]()


def wire(
    x: Tensor,
    memory: Tensor,
    parts: object,
    tgt_mask: Tensor,
    mem_mask: Tensor | None,
    pre_norm: bool,
    **switches: str,
) -> object:
    """What a reader makes of the parts; with no switch set it is right."""
    ending = "_pre" if pre_norm else "_post"
    s = RIGHT | {key.removesuffix(ending): value for key, value in switches.items() if key.endswith(ending)}
    # The layer's input, the state one sub-layer ago, what the last sub-layer gave before its residual.
    known = {"start": x, "before": x, "raw": x, "memory": memory, "x": x}
    for step in s["order"].split():
        state = known["x"]
        norm = getattr(parts, "norm" + s[step + "_norm"])
        part = getattr(parts, s[step + "_part"])

        def pick(word: str, a: Tensor | None = None, norm: Function = norm) -> Tensor:
            first, _, rest = word.partition(" ")
            if rest:
                return (norm if first == "norm" else getattr(parts, first))(pick(rest, a))
            return a if word == "a" else known[word]

        def f(a: Tensor, step: str = step, part: Callable = part, pick: Callable = pick) -> Tensor:
            given = [pick(word.replace("_", " "), a) for word in s[step + "_inputs"].split()]
            if step != "ffn" and s[step + "_part"] != "ffn":
                given.append(_mask(s[step + "_mask"], tgt_mask, mem_mask))
            known["raw"] = part(*given)
            return known["raw"]

        formula = {"given": "before" if pre_norm else "after"}.get(s[step], s[step])
        known["x"] = FORMULAS[formula](state, pick(s[step + "_residual"]), f, norm)
        known["before"] = state
    if s["changed"] == "x":
        x += 1.0
    if s["changed"] == "memory":
        memory += 1.0
    return _ended(known["x"], known["start"], memory, parts, s["end"])


def _ended(x: Tensor, start: Tensor, memory: Tensor, parts: object, end: str) -> object:
    return {
        "x": lambda: x,
        "normed": lambda: parts.norm3(x),
        "first_norm": lambda: parts.norm1(x),
        "memory": lambda: memory.clone(),
        "plus_input": lambda: x + start,
        "nothing": lambda: None,
    }[end]()


# ---------------------------------------------------------------- the gallery
PRE = "x = x + f(norm(x))"
POST = "x = norm(x + f(x))"
SUBLAYERS = {"self": "self-attention", "cross": "cross-attention", "ffn": "the feed-forward network"}
ONLY = {"pre": "With pre_norm True, and only there: ", "post": "With pre_norm False, and only there: "}


def _one(
    name: str, sentence: str, *, modes: str = "", rare: bool = False, alone: bool = False, **switches: str
) -> Iterator[Mistake]:
    """One mistake, made in both placements or in one of them; a rare one only in both, if nothing else is said."""
    for mode in (modes or ("both" if rare or alone else "both pre post")).split():
        endings = ("pre", "post") if mode == "both" else (mode,)
        yield Mistake(
            name if mode == "both" else f"{mode}_{name}",
            ONLY.get(mode, "") + sentence,
            switches={f"{key}_{ending}": value for key, value in switches.items() for ending in endings},
            rare=rare,
            alone=alone,
        )


def _all(formula: str, ending: str) -> dict[str, str]:
    """One formula for the three sub-layers."""
    return {f"{step}_{ending}": formula for step in SUBLAYERS}


def _placements() -> Iterator[Mistake]:
    """One formula wherever the norm stands."""
    yield Mistake(
        "always_pre_norm",
        f"You compute the pre-norm layer whatever pre_norm says. Where it is False, the norm comes last: {POST}, for "
        "each of the three sub-layers.",
        switches=_all("before", "post"),
    )
    yield Mistake(
        "always_post_norm",
        f"You compute the post-norm layer whatever pre_norm says. Where it is True, f gets the normed state: {PRE}, "
        "for each of the three sub-layers.",
        switches=_all("after", "pre"),
    )
    yield Mistake(
        "placements_exchanged",
        f"The two placements are exchanged: with pre_norm True each sub-layer is {PRE}, with False it is {POST}.",
        switches=_all("after", "pre") | _all("before", "post"),
    )
    for name, formula, sentence in (
        ("norms_missing", "no_norm", "No norm is used: each sub-layer has one of its own, norm1, norm2 and norm3."),
        (
            "normed_twice",
            "both",
            "Each sub-layer is normalised twice, before f and after the sum: only one place is right, which of them "
            "pre_norm says.",
        ),
        (
            "norm_of_sublayer_alone",
            "norm_of_f",
            f"Only what a sub-layer gives is normalised, x + norm(f(x)). The norm stands before f ({PRE}) or around "
            f"the sum ({POST}).",
        ),
        (
            "norm_around_sublayer",
            "sandwich",
            f"Each sub-layer is normalised before and after f, x + norm(f(norm(x))). Here it is {PRE} or {POST}.",
        ),
        (
            "residual_of_normed",
            "normed_residual",
            f"The residual carries the normed state, norm(x) + f(norm(x)). Pre-norm leaves x as it came ({PRE}), "
            f"post-norm normalises the sum ({POST}).",
        ),
        (
            "residuals_missing",
            "bare",
            "There is neither a residual nor a norm: what a sub-layer gives takes the place of x, and must be added to "
            "it.",
        ),
        (
            "sum_added_again",
            "residual_after_norm",
            f"The state is added twice, x + norm(x + f(x)): once is enough, {PRE} or {POST}.",
        ),
    ):
        both = _all(formula, "pre") | _all(formula, "post")
        yield Mistake(name, sentence, switches=both, alone=True)
        for mode in ("pre", "post"):
            yield Mistake(f"{mode}_{name}", ONLY[mode] + sentence, switches=_all(formula, mode), alone=True)
    gone = "The residuals are missing: what a sub-layer gives takes the place of x, and must be added to it."
    before, after = _all("no_residual_before", "pre"), _all("no_residual_after", "post")
    yield Mistake("residuals_missing", gone, switches=before | after, alone=True)
    yield Mistake("pre_residuals_missing", ONLY["pre"] + gone, switches=before, alone=True)
    yield Mistake("post_residuals_missing", ONLY["post"] + gone, switches=after, alone=True)


def _sublayer(step: str) -> Iterator[Mistake]:
    """What goes wrong with any one of the three."""
    what, norm = SUBLAYERS[step], {"self": "norm1", "cross": "norm2", "ffn": "norm3"}[step]
    key = {"self": "self_attention", "cross": "cross_attention", "ffn": "feed_forward"}[step]
    residual = (
        f"The residual around {what} is missing: what it gives takes the place of the state. Each of the three "
        "sub-layers adds to it."
    )
    yield Mistake(
        f"{key}_residual_missing",
        residual,
        switches={f"{step}_pre": "no_residual_before", f"{step}_post": "no_residual_after"},
    )
    yield from _one(f"{key}_residual_missing", residual, modes="pre", **{step: "no_residual_before"})
    yield from _one(f"{key}_residual_missing", residual, modes="post", **{step: "no_residual_after"})
    skipped = f"The result does not depend on {what}: the layer has three sub-layers, and this one is left out."
    yield Mistake(f"{key}_skipped", skipped, switches={f"{step}_pre": "skipped", f"{step}_post": "norm_only"})
    yield from _one(f"{key}_skipped", skipped, **{step: "skipped"})
    yield from _one(f"{key}_skipped", skipped, modes="post", **{step: "norm_only"})
    yield from _one(f"{key}_norm_missing", f"The norm of {what} is missing, {norm}.", **{step: "no_norm"})
    yield from _one(
        f"{key}_residual_of_normed",
        f"The residual around {what} carries {norm}(x), where pre-norm lets x itself go on. Is x overwritten, "
        f"x = {norm}(x)?",
        modes="pre",
        **{step: "normed_residual"},
    )
    yield from _one(f"{key}_norm_misplaced", f"Around {what} you compute {POST}, and it must be {PRE}.", modes="pre",
                    **{step: "after"})  # fmt: skip
    yield from _one(f"{key}_norm_misplaced", f"Around {what} you compute {PRE}, and it must be {POST}.", modes="post",
                    **{step: "before"})  # fmt: skip
    yield from _one(
        f"{key}_normed_twice", f"Around {what} the norm is used twice, before f and after the sum: one is too many.",
        rare=True, **{step: "both"},
    )  # fmt: skip
    yield from _one(
        f"{key}_norm_of_sublayer", f"Around {what} the norm is used only on what f gives, x + norm(f(x)): it is "
        f"{PRE} (pre_norm) or {POST}.", rare=True, **{step: "norm_of_f"},
    )  # fmt: skip
    for wrong in "123":
        if f"norm{wrong}" != norm:
            yield from _one(
                f"{key}_wrong_norm", f"{what[0].upper() + what[1:]} has norm{wrong}, and its own is {norm}.",
                modes="both pre post", rare=True, **{f"{step}_norm": wrong},
            )  # fmt: skip


def _norms() -> Iterator[Mistake]:
    for numbers_, name, sentence in (
        ("111", "one_norm_for_all", "All three sub-layers have norm1: each has its own, norm1, norm2, norm3."),
        ("222", "one_norm_for_all", "All three sub-layers have norm2: each has its own, norm1, norm2, norm3."),
        ("333", "one_norm_for_all", "All three sub-layers have norm3: each has its own, norm1, norm2, norm3."),
        ("132", "norms_exchanged", "The norms norm2 and norm3 have changed places: norm2 belongs to cross-attention, "
         "norm3 to the feed-forward network."),
        ("213", "norms_exchanged", "The norms norm1 and norm2 have changed places: norm1 belongs to self-attention, "
         "norm2 to cross-attention."),
        ("321", "norms_exchanged", "The norms norm1 and norm3 have changed places: norm1 belongs to self-attention, "
         "norm3 to the feed-forward network."),
        ("231", "norms_exchanged", "The norms stand one sub-layer off: norm1 belongs to self-attention, norm2 to "
         "cross-attention, norm3 to the feed-forward network."),
        ("312", "norms_exchanged", "The norms stand one sub-layer off: norm1 belongs to self-attention, norm2 to "
         "cross-attention, norm3 to the feed-forward network."),
    ):  # fmt: skip
        keys = dict(zip(("self_norm", "cross_norm", "ffn_norm"), numbers_, strict=True))
        yield from _one(name, sentence, rare=True, **keys)


CAUSAL = (
    "Self-attention runs without its mask, so a place sees the tokens after it, which it is to predict. Shifting the "
    "input is not enough: give it tgt_mask."
)
PADDED = "Cross-attention runs without its mask, so padding of the source is read too: give it mem_mask."
NO_MEMORY = (
    "Cross-attention reads the decoder's own states, and the memory has no effect: the decoder is a language model "
    "that never sees the source. Its keys and values are the memory."
)
CHAIN = "The sub-layers are a chain: cross-attention asks with the state after self-attention, residual included."
MEMORY_NORMED = (
    "The memory is normalised again. It has had the encoder's last norm, and goes into cross-attention as it is: only "
    "the query is normalised."
)
ORDER = "The order is self-attention, cross-attention, feed-forward network."


def _attentions() -> Iterator[Mistake]:
    yield from _one("self_mask_missing", CAUSAL, self_mask="none")
    yield from _one("memory_mask_missing", PADDED, cross_mask="none")
    yield from _one(
        "masks_exchanged",
        "The masks have changed places: tgt_mask (who may see whom among the target tokens) belongs to self-attention, "
        "mem_mask (padding of the source) to cross-attention.",
        self_mask="memory",
        cross_mask="target",
    )
    yield from _one(
        "memory_mask_in_self",
        "Self-attention gets mem_mask, which is about the source: its own is tgt_mask, and without it a place sees the "
        "tokens after it.",
        self_mask="memory",
    )
    yield from _one(
        "target_mask_in_cross",
        "Cross-attention gets tgt_mask, which is about the target tokens: every one of them may read the whole memory, "
        "except for padding, which mem_mask says.",
        cross_mask="target",
    )
    yield from _one("masks_combined", "Self-attention gets both masks at once: mem_mask is about the source, and says "
                    "nothing of target tokens.", rare=True, self_mask="both")  # fmt: skip
    yield from _one("masks_combined", "Cross-attention gets both masks at once: tgt_mask is about target tokens, and "
                    "each of them may read the whole memory.", rare=True, cross_mask="both")  # fmt: skip
    yield from _one("self_mask_inverted", "The mask tgt_mask is inverted: True already means that this query may "
                    "attend to this key.", rare=True, self_mask="target_inverted")  # fmt: skip
    yield from _one("memory_mask_inverted", "The mask mem_mask is inverted: True already means that this query may "
                    "attend to this key.", rare=True, cross_mask="memory_inverted")  # fmt: skip
    for mask in ("memory", "none", "target"):
        yield from _one("memory_unused", NO_MEMORY, rare=mask != "none", cross_inputs="a a a", cross_mask=mask)
    yield from _one("memory_unused", NO_MEMORY, modes="pre", cross_inputs="x x x")
    yield from _one(
        "values_from_decoder",
        "The keys of cross-attention come from the memory, its values from the decoder: a weight then points at a "
        "source token, and a target token is read. Keys and values come from the same sequence, the memory.",
        cross_inputs="a memory a",
    )
    yield from _one("values_from_decoder", "The values of cross-attention are the decoder's own un-normed state: keys "
                    "and values both come from the memory.", modes="pre", cross_inputs="a memory x")  # fmt: skip
    yield from _one(
        "keys_from_decoder",
        "The values of cross-attention come from the memory, its keys from the decoder: keys and values come from the "
        "same sequence, the memory.",
        cross_inputs="a a memory",
    )
    yield from _one(
        "query_from_memory",
        "The query of cross-attention comes from the memory, and its keys and values from the decoder: the decoder "
        "asks, and the memory is what is read.",
        cross_inputs="memory a a",
    )
    yield from _one("query_from_memory", "The query of cross-attention comes from the memory: the memory reads itself, "
                    "and the decoder's state is not asked for.", cross_inputs="memory memory memory")  # fmt: skip
    yield from _one("query_from_memory", "The query of cross-attention comes from the memory, and its values from the "
                    "decoder: it is the other way round.", rare=True, cross_inputs="memory memory a")  # fmt: skip
    yield Mistake(
        "query_without_residual",
        f"Cross-attention asks with what self-attention gives, without the residual. {CHAIN}",
        switches={"cross_inputs_pre": "norm_raw memory memory", "cross_inputs_post": "raw memory memory"},
    )
    yield from _one("query_without_residual", f"Cross-attention asks with what self-attention gives, without residual "
                    f"and norm. {CHAIN}", cross_inputs="raw memory memory", modes="pre")  # fmt: skip
    yield from _one("query_without_residual", f"Cross-attention asks with what self-attention gives, without the "
                    f"residual. {CHAIN}", cross_inputs="norm_raw memory memory", modes="pre")  # fmt: skip
    yield from _one("query_without_residual", f"Cross-attention asks with what self-attention gives, without residual "
                    f"and norm. {CHAIN}", cross_inputs="raw memory memory", modes="post")  # fmt: skip
    yield Mistake(
        "query_from_input",
        f"Cross-attention asks with the layer's input: both attentions run beside each other. {CHAIN}",
        switches={"cross_inputs_pre": "norm_start memory memory", "cross_inputs_post": "start memory memory"},
    )
    yield from _one("query_from_input", f"Cross-attention asks with the layer's input. {CHAIN}", modes="pre post",
                    cross_inputs="start memory memory")  # fmt: skip
    yield from _one("query_from_input", f"Cross-attention asks with the layer's input. {CHAIN}", modes="pre",
                    cross_inputs="norm_start memory memory")  # fmt: skip
    for query in ("norm1_start", "norm_norm1_start"):
        yield from _one("query_from_input", f"Cross-attention asks with the layer's normed input. {CHAIN}", modes="pre",
                        cross_inputs=f"{query} memory memory")  # fmt: skip
    yield from _one("memory_normed", MEMORY_NORMED, cross_inputs="a norm_memory norm_memory")
    yield from _one("memory_normed", "The keys of cross-attention are normalised again: keys and values are the memory "
                    "as it is.", rare=True, cross_inputs="a norm_memory memory")  # fmt: skip
    yield from _one("memory_normed", "The values of cross-attention are normalised again: keys and values are the "
                    "memory as it is.", rare=True, cross_inputs="a memory norm_memory")  # fmt: skip
    yield from _one("memory_normed", "Cross-attention normalises the memory in place of the query: norm2 is for the "
                    "decoder's state, the memory goes in as it is.", modes="pre",
                    cross_inputs="x norm_memory norm_memory")  # fmt: skip
    for norm in ("norm1", "norm3"):
        yield from _one("memory_normed", f"The memory is normalised again, by {norm}: it has had the encoder's last "
                        "norm, and goes in as it is.", modes="both pre",
                        cross_inputs=f"a {norm}_memory {norm}_memory")  # fmt: skip
    for inputs, sentence in (
        ("a x x", "In self-attention only the query is normed: query, keys and values are the same normed state."),
        ("x a a", "In self-attention the query is not normed: query, keys and values are the same normed state."),
        ("a a x", "In self-attention the values are not normed: query, keys and values are the same normed state."),
        ("a x a", "In self-attention the keys are not normed: query, keys and values are the same normed state."),
        ("x x a", "In self-attention only the values are normed: query, keys and values are the same normed state."),
    ):
        yield from _one("self_inputs_not_normed", sentence, modes="pre", self_inputs=inputs)
    yield from _one(
        "self_attention_reads_memory",
        "Self-attention reads the memory: there its query, keys and values are all the decoder's own state.",
        self_inputs="a memory memory",
        self_mask="memory",
    )
    yield from _one("self_attention_reads_memory", "Self-attention reads the memory: there its query, keys and values "
                    "are all the decoder's own state.", rare=True, self_inputs="a memory memory")  # fmt: skip
    yield from _one("self_attention_reads_memory", "The values of self-attention come from the memory: there query, "
                    "keys and values are all the decoder's own state.", rare=True,
                    self_inputs="a a memory")  # fmt: skip
    yield from _one(
        "one_attention_for_both",
        "Both attentions are parts.self_attn: the second is parts.cross_attn, with weights of its own.",
        cross_part="self_attn",
    )
    yield from _one(
        "one_attention_for_both",
        "Both attentions are parts.cross_attn: the first is parts.self_attn, with weights of its own.",
        self_part="cross_attn",
    )
    yield from _one(
        "attentions_exchanged",
        "The two attention parts have changed places: self_attn is for the target tokens among themselves, cross_attn "
        "for the memory.",
        self_part="cross_attn",
        cross_part="self_attn",
    )


def _chain() -> Iterator[Mistake]:
    yield from _one("feed_forward_too_early", f"The feed-forward network runs before cross-attention. {ORDER}",
                    order="self ffn cross")  # fmt: skip
    yield from _one("cross_before_self", f"Cross-attention runs before self-attention. {ORDER}", order="cross self ffn")
    yield from _one("feed_forward_too_early", f"The feed-forward network runs first. {ORDER}", rare=True,
                    order="ffn self cross")  # fmt: skip
    yield from _one("order_reversed", f"The sub-layers run from the last to the first. {ORDER}", rare=True,
                    order="ffn cross self")  # fmt: skip
    yield from _one("cross_before_self", f"Cross-attention runs first, self-attention last. {ORDER}", rare=True,
                    order="cross ffn self")  # fmt: skip
    yield from _one("feed_forward_too_early", f"The feed-forward network runs before cross-attention, with norm2, and "
                    f"cross-attention with norm3. {ORDER}", order="self ffn cross", ffn_norm="2",
                    cross_norm="3")  # fmt: skip
    yield from _one("cross_before_self", f"Cross-attention runs before self-attention, with norm1, and self-attention "
                    f"with norm2. {ORDER}", order="cross self ffn", cross_norm="1", self_norm="2")  # fmt: skip
    yield from _one("cross_attention_skipped", "Cross-attention is left out, and the feed-forward network has norm2: "
                    "this is a layer of the encoder.", rare=True, order="self ffn", ffn_norm="2")  # fmt: skip
    yield from _one("self_attention_twice", "Self-attention runs twice.", rare=True, order="self self cross ffn")
    yield from _one("cross_attention_twice", "Cross-attention runs twice.", rare=True, order="self cross cross ffn")
    yield from _one("feed_forward_twice", "The feed-forward network runs twice: once, after cross-attention.",
                    rare=True, order="self cross ffn ffn")  # fmt: skip
    yield from _one("feed_forward_twice", "The feed-forward network runs twice, also between the two attentions: once, "
                    "at the end, is right.", rare=True, order="self ffn cross ffn")  # fmt: skip
    yield from _one(
        "cross_residual_from_input",
        "The residual around cross-attention is the layer's input, not the state after self-attention: what that gave "
        "is lost.",
        cross_residual="start",
    )
    yield from _one(
        "cross_residual_is_memory",
        "Cross-attention adds to the memory, and it must add to the decoder's state.",
        cross_residual="memory",
    )
    yield from _one("cross_residual_is_sublayer", "The residual around cross-attention is what self-attention gives, "
                    "not the state after it.", rare=True, cross_residual="raw")  # fmt: skip
    yield from _one(
        "ffn_residual_from_input",
        "The residual around the feed-forward network is the layer's input, not the state after cross-attention: what "
        "both attentions gave is lost but for what passes through the network.",
        ffn_residual="start",
    )
    yield from _one(
        "ffn_residual_before_cross",
        "The residual around the feed-forward network is the state before cross-attention, not the one after it.",
        ffn_residual="before",
    )
    yield from _one("ffn_gets_cross_alone", "The feed-forward network gets what cross-attention gives, without the "
                    "residual: it gets the state.", ffn_inputs="raw")  # fmt: skip
    yield from _one("ffn_gets_cross_alone", "The feed-forward network gets what cross-attention gives, without the "
                    "residual: it gets the state.", modes="pre", ffn_inputs="norm_raw")  # fmt: skip
    yield from _one("ffn_gets_layer_input", "The feed-forward network gets the layer's input: the sub-layers are a "
                    "chain, and it gets the state after cross-attention.", ffn_inputs="start")  # fmt: skip
    yield from _one("ffn_gets_layer_input", "The feed-forward network gets the layer's input: the sub-layers are a "
                    "chain, and it gets the state after cross-attention.", modes="pre",
                    ffn_inputs="norm_start")  # fmt: skip
    same = "The feed-forward network gets what cross-attention gets as its query: it gets the state after it."
    yield Mistake(
        "ffn_gets_cross_input", same, switches={"ffn_inputs_pre": "norm2_before", "ffn_inputs_post": "before"}
    )
    yield from _one("ffn_gets_cross_input", same, modes="pre", ffn_inputs="norm2_before")
    yield from _one("ffn_gets_cross_input", same, modes="pre post", ffn_inputs="before")
    yield from _one("ffn_gets_cross_input", same, modes="pre", ffn_inputs="norm_before")
    yield from _one(
        "one_norm_too_many",
        "The result is normalised once more at the end: in a pre-norm layer nothing is, and the stack has one last "
        "norm behind all layers.",
        modes="pre",
        end="normed",
    )
    yield from _one("one_norm_too_many", "The result is normalised once more at the end, by norm3: one is enough.",
                    modes="post", end="normed")  # fmt: skip
    yield from _one("input_added_again", "The layer's input is added once more at the end: each sub-layer has its "
                    "residual, and the layer has none of its own.", end="plus_input")  # fmt: skip
    yield from _one("memory_returned", "You return the memory: the result is the decoder's state.", modes="both",
                    alone=True, end="memory")  # fmt: skip
    yield from _one("nothing_returned", "Nothing comes back: a return is missing.", modes="both pre post", alone=True,
                    end="nothing")  # fmt: skip
    yield from _one(
        "changes_x",
        "The caller's x is changed: x += ... works on it in place. Write x = x + ..., which makes a new tensor.",
        changed="x",
    )
    yield from _one("changes_memory", "The caller's memory is changed, and every layer of the decoder reads the same.",
                    changed="memory")  # fmt: skip


def _side_by_side(
    x: Tensor, memory: Tensor, parts: object, tgt_mask: Tensor, mem_mask: Tensor | None, pre_norm: bool
) -> Tensor:
    a, b, c = (parts.norm1(x), parts.norm2(x), parts.norm3(x)) if pre_norm else (x, x, x)
    y = x + parts.self_attn(a, a, a, tgt_mask) + parts.cross_attn(b, memory, memory, mem_mask) + parts.ffn(c)
    return y if pre_norm else parts.norm3(y)


def _own_norm(
    x: Tensor, memory: Tensor, parts: object, tgt_mask: Tensor, mem_mask: Tensor | None, pre_norm: bool
) -> object:
    def norm(y: Tensor) -> Tensor:
        return F.layer_norm(y, y.shape[-1:])

    own = SimpleNamespace(
        self_attn=parts.self_attn, cross_attn=parts.cross_attn, ffn=parts.ffn, norm1=norm, norm2=norm, norm3=norm
    )
    return wire(x, memory, own, tgt_mask, mem_mask, pre_norm)


WHOLE = (
    Mistake(
        "side_by_side",
        "The three sub-layers all get the layer's input, and their results are added. They must be a chain: each gets "
        "the state after the one before it.",
        wrong=_side_by_side,
    ),
    Mistake(
        "x_and_memory_exchanged",
        "The arguments x and memory have changed places: it is x that goes through the three sub-layers, and the "
        "memory is only read, by cross-attention.",
        wrong=lambda x, memory, *others: wire(memory, x, *others),
    ),
    Mistake(
        "own_norm",
        "You use a layer norm of your own in place of parts.norm1, norm2 and norm3, which have parameters that they "
        "have learnt.",
        wrong=_own_norm,
    ),
)
MISTAKES = (
    *_placements(),
    *WHOLE,
    *_attentions(),
    *(mistake for step in SUBLAYERS for mistake in _sublayer(step)),
    *_chain(),
    *_norms(),
)


# ---------------------------------------------------------------- symptoms
SAME = "3 target and 3 source tokens, memory padded"
CHANGED = "the same with another last token (sequence 0), padding (1), memory (2)"


def _mode(mode: str) -> str:
    return f", pre_norm {mode == 'pre'}"


def _pairs(seen: Seen, *at: int) -> list[tuple[Tensor, Tensor]]:
    """What the reader's function gave there before and after the change, for each placement."""
    found = table(seen) or {}
    return [(found[SAME + _mode(m)][1][at], found[CHANGED + _mode(m)][1][at]) for m in ("pre", "post") if found]


def _differs(*at: int) -> Callable[[Seen], bool]:
    """Whether a change of the input that must not be seen there is seen."""
    return lambda seen: any(not same_value(*pair) for pair in _pairs(seen, *at))


def _memory_unused(seen: Seen) -> bool:
    pairs = _pairs(seen, 2)
    return bool(pairs) and all(same_value(*pair) for pair in pairs)


def _same_in_both_modes(seen: Seen) -> bool:
    found = table(seen)
    return found is not None and same_value(*(found[SAME + _mode(mode)][1] for mode in ("pre", "post")))


SYMPTOMS = (
    GRADIENT_CUT,
    CHANGES_INPUT,
    MORE_RESULTS,
    ONLY_SHAPE,
    Symptom(
        "future_seen",
        "Your result at the first target token changes with the last one, which it is to predict: the future leaks in. "
        "tgt_mask must reach self-attention, and nothing but the state of a token itself may go round it.",
        _differs(0, 0),
    ),
    Symptom(
        "memory_without_effect",
        "Your result for a sequence stays the same with another memory: the decoder does not see its source. "
        "Cross-attention takes its keys and values from the memory.",
        _memory_unused,
    ),
    Symptom(
        "padding_seen",
        "Your result changes with the numbers in the padding of the memory: mem_mask must reach cross-attention, and "
        "the memory is read nowhere else.",
        _differs(1),
    ),
    Symptom(
        "mode_ignored",
        f"Both placements give the same numbers: pre_norm is not looked at. With True each sub-layer is {PRE}, with "
        f"False it is {POST}.",
        _same_in_both_modes,
    ),
    Symptom(
        "post_wrong",
        f"In the cases tried here it is right with pre_norm True, and not with False. There each sub-layer is {POST}.",
        alone_right(lambda probe: probe.make()[5]),
    ),
    Symptom(
        "pre_wrong",
        f"In the cases tried here it is right with pre_norm False, and not with True. There each sub-layer is {PRE}, "
        "and the memory goes in as it is.",
        alone_right(lambda probe: not probe.make()[5]),
    ),
)


# ---------------------------------------------------------------- probes
def _given(targets: int, sources: int, what: str, mode: str) -> Callable[[], tuple]:
    @functools.cache
    def tensors() -> tuple[Tensor, ...]:
        x, memory = numbers(3, targets, D_MODEL, seed=31), numbers(3, sources, D_MODEL, seed=32)
        if what == CHANGED:
            other = numbers(2 + sources, D_MODEL, seed=33)
            x[0, -1], memory[1, -1], memory[2] = other[0], other[1], other[2:]
        allowed = torch.arange(sources) < torch.tensor([[sources], [sources - 1], [sources]])  # (batch, source)
        return x, memory, causal_mask(targets)[None], allowed[:, None]  # masks (1, target, target), (batch, 1, source)

    def make() -> tuple:
        x, memory, tgt_mask, mem_mask = (tensor.clone() for tensor in tensors())
        return x, memory, make_parts(), tgt_mask, mem_mask if sources == 3 else None, mode == "pre"

    return make


def _probe(targets: int, sources: int, what: str, mode: str, **options: bool) -> Probe:
    other = "_post" if mode == "pre" else "_pre"
    blind = tuple(key + other for key in RIGHT)
    return Probe(what + _mode(mode), _given(targets, sources, what, mode), blind_to=blind, **options)


DECODER_LAYER = LayerExercise(
    name="model.decoder_layer",
    reference=decoder_layer,
    results=(Result("result", ("batch", "target token", "column")),),
    probes=(
        *(_probe(3, 3, what, mode) for what in (SAME, CHANGED) for mode in ("post", "pre")),
        *(
            _probe(2, 4, "2 target and 4 source tokens, mem_mask None", mode, edge=True, gradients=True)
            for mode in ("post", "pre")
        ),
    ),
    compound=wire,
    at_once=2,
    mistakes=MISTAKES,
    symptoms=SYMPTOMS,
)
