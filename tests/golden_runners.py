"""How each kind of golden file is computed with this package.

A runner takes a case and yields (entry, mine, golden) for each entry it can compute; the start of the file's
name chooses it. What a published system calls True, how it treats an empty row and how it names its weights
is said here, in its `System`: the package itself has one convention.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import golden_model
import golden_norms
import golden_positions
import golden_relative
import golden_systems
import golden_training
import torch
from golden_case import Case, Comparisons, first, split_name
from torch import Tensor

from transformer_edu.attention import scaled_dot_product_attention
from transformer_edu.heads import MultiHeadAttention, merge_heads, repeat_heads, split_heads
from transformer_edu.masks import causal_mask, combine_masks, cross_mask


# ---------------------------------------------------------------- masks and heads alone
def masks_of_000(case: Case) -> Comparisons:
    """True = masked there, for every query row; a length above the width masks nothing."""
    for name, golden in case.group("out").items():
        tag, _, leaf = name.rpartition(".")
        batch, n_queries, n_keys = golden.shape
        if leaf.startswith(("subsequent", "causal", "dec_mask")):
            allowed = causal_mask(n_keys).expand(batch, -1, -1)
        else:
            lengths = first(case.group("in", tag), "lens", "X_lens", "lengths")
            allowed = cross_mask(lengths.clamp(max=n_keys), n_queries, n_keys)[:, 0]
        yield f"out.{name}", ~allowed, golden


def heads(case: Case) -> Comparisons:
    """Split, merge, and the plain reshape that people take for them."""
    outputs = case.group("out")
    for name, golden in outputs.items():
        tag, _, leaf = name.rpartition(".")
        inputs = case.group("in", tag)
        x = first(inputs, "x", default=next(iter(inputs.values())))
        n_heads = case.option("heads", "n_heads", "num_heads", "n_head", "head")
        n_heads = n_heads or next(t.shape[1] for t in (x, *outputs.values()) if t.dim() == 4)
        split = x if x.dim() == 4 else split_heads(x, n_heads)
        if "wrong" in leaf:
            mine = (x if golden.dim() == 4 else split).reshape(golden.shape)
        else:
            mine = split if golden.dim() == 4 else merge_heads(split)
        yield f"out.{name}", mine, golden


# ---------------------------------------------------------------- what each system means
QUERY, KEY, VALUE = "query_projection.linear", "key_projection.linear", "value_projection.linear"
OUTPUT = "output_projection"


def names(query: str, key: str, value: str, output: str) -> dict[str, tuple[str, ...]]:
    """A system's names of its weights, each with the parameter of ours that it is."""
    pairs = {query: QUERY, key: KEY, value: VALUE, output: OUTPUT}
    return {f"{theirs}.{kind}": (f"{ours}.{kind}",) for theirs, ours in pairs.items() for kind in ("weight", "bias")}


TORCH_NAMES = names("q_proj", "k_proj", "v_proj", "out_proj") | {
    "q_proj_weight": (f"{QUERY}.weight",),
    "k_proj_weight": (f"{KEY}.weight",),
    "v_proj_weight": (f"{VALUE}.weight",),
    "in_proj_weight": (f"{QUERY}.weight", f"{KEY}.weight", f"{VALUE}.weight"),  # one below the other
    "in_proj_bias": (f"{QUERY}.bias", f"{KEY}.bias", f"{VALUE}.bias"),
}


@dataclass(frozen=True)
class System:
    true_attends: bool = True  # what True, and any number but 0, says in a mask
    float_is_bias: bool = False  # a float mask is added to the scores, and not read as 0 and 1
    empty_rows: str = "zero"
    folds_heads: bool = False  # a mask of three axes is (batch * heads, query, key), not one for all heads
    has_is_causal: bool = False  # `causal` is an option of its own, and masks broadcast as they are
    shared_projections: bool = False
    divides_by_d_model: bool = False  # the scores, by sqrt(d_model) instead of sqrt(d_k)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


SDPA = System(float_is_bias=True, has_is_causal=True)
MHA = System(true_attends=False, float_is_bias=True, folds_heads=True, names=TORCH_NAMES)
SYSTEM_000 = System(true_attends=False, empty_rows="uniform", names=names("W_Q", "W_K", "W_V", "W_out"))
SYSTEM_001 = System(empty_rows="uniform", names=names("linears.0", "linears.1", "linears.2", "linears.3"))
SYSTEM_002 = System(
    empty_rows="uniform",
    shared_projections=True,
    divides_by_d_model=True,
    names=names("queries", "keys", "values", "fc_out"),
)
SYSTEM_003 = System(names=names("linear_q", "linear_k", "linear_v", "linear_out"))


# ---------------------------------------------------------------- attention
RESULTS = ("y", "context", "output", "attn", "attn_avg", "weights", "scores", "loss")


def attention(case: Case, system: System) -> Comparisons:
    """Every run of a file, once with its weights and once by the fused kernel, and its gradients."""
    runs: dict[str, list[tuple[str, str]]] = {}
    for prefix in ("mid", "out", "grad"):
        known = {*RESULTS, *(name.rpartition(".")[0] for name in system.names)} - {""}
        if prefix == "grad":
            known = {*system.names, *(name.rpartition(".")[2] for name in case.group("in"))}
        for name in case.group(prefix):
            tag, leaf = split_name(name, known)
            runs.setdefault(tag, []).append((f"{prefix}.{name}", f"grad {leaf}" if prefix == "grad" else leaf))
    for tag, entries in runs.items():
        for need_weights in (True, False):
            mine = Run(case, tag, system, need_weights)
            for entry, leaf in entries:
                if leaf in mine.results:
                    yield entry, *mine.comparable(leaf, case.tensors[entry])


class Run:
    """One run of a case: `results` holds all that this package computes of it, by the names of the file."""

    def __init__(self, case: Case, tag: str, system: System, need_weights: bool) -> None:
        self.case, self.tag, self.system = case, tag, system
        self.inputs = {
            name: t.clone().requires_grad_(t.is_floating_point()) for name, t in case.group("in", tag).items()
        }
        query = first(self.inputs, "query", "q", "x", "queries")
        key = first(self.inputs, "key", "k", "memory", "keys", default=query)
        value = first(self.inputs, "value", "v", "values", default=key)
        self.module = build(case, tag, system)
        self.unbatched = self.module is not None and query.dim() == 2
        to_ours, back = self.layout()
        query, key, value = to_ours(query), to_ours(key), to_ours(value)
        projected = self.project(query, key, value)
        scale = self.scale(projected[0].shape[-1], query.shape[-1])
        scores = scale * projected[0] @ projected[1].transpose(-2, -1)
        mask, bias = self.masks(scores.shape)
        dropout = 1.0 if "train mode" in case.description.lower() and "p = 1" in case.description else 0.0
        options = {
            "scale": scale,
            "dropout": dropout,
            "empty_rows": system.empty_rows,
            "need_weights": need_weights,
        }
        if self.module and bias is None:
            self.module.scale, self.module.dropout = scale, dropout
            y, weights = self.module(query, key, value, mask, need_weights=need_weights)
        else:
            y, weights = scaled_dot_product_attention(*projected, mask, bias=bias, **options)
        if self.module and bias is not None:  # which the module does not take: the same from its parts
            y = self.module.output_projection(merge_heads(y))
        scores = scores if bias is None else scores + bias
        self.allowed = (scores > -torch.inf) & (True if mask is None else mask)
        y = back(y)
        self.results = {"y": y, "output": y, "scores": scores} | ({} if self.module else {"context": y})
        if weights is not None:
            self.results |= {"attn": weights, "attn_avg": weights, "weights": weights}
        if self.module:
            theirs = dict.fromkeys(name.rpartition(".")[0] for name in system.names if name.endswith(".weight"))
            merged = [back(merge_heads(x)) for x in projected]
            self.results |= dict(zip(theirs, (*merged, y), strict=True))
        if case.group("grad"):
            self.backward(y)

    def layout(self) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
        """To (batch, length, width) and back: torch also has (length, batch, width) and (length, width)."""
        if self.unbatched:
            return (lambda x: x[None]), (lambda x: x[0])
        if self.module and self.case.option("batch_first", default=True) is False:
            return (lambda x: x.transpose(0, 1)), (lambda x: x.transpose(0, 1))
        return (lambda x: x), (lambda x: x)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Queries, keys and values of all heads."""
        if self.module:
            parts = self.module.query_projection, self.module.key_projection, self.module.value_projection
            return [part(x) for part, x in zip(parts, (query, key, value), strict=True)]
        times = query.shape[1] // key.shape[1] if query.dim() == 4 and key.shape[1] > 1 else 1
        return [query, repeat_heads(key, times), repeat_heads(value, times)] if times > 1 else [query, key, value]

    def scale(self, d_k: int, d_model: int) -> float:
        """As the tag (`scale_0.25`) or the config says, unless the tag is `default`; else 1 / sqrt(d_k)."""
        if said := re.match(r"scale_(\d+(\.\d+)?)", self.tag):
            return float(said[1])
        if "default" not in self.tag and self.case.option("scale") is not None:
            return self.case.option("scale")
        corrected = "corrected" in f"{self.tag} {self.case.name}"
        return 1 / math.sqrt(d_model if self.system.divides_by_d_model and not corrected else d_k)

    def masks(self, shape: torch.Size) -> tuple[Tensor | None, Tensor | None]:
        """The run's masks as one bool mask and one bias, either of which may be None."""
        mask = bias = None
        chosen = self.chosen_masks()
        for name, given in chosen.items():
            t = self.widened(name, given, shape)
            if t.is_floating_point() and self.system.float_is_bias:
                bias = t if bias is None else bias + t
            else:
                mask = combine_masks(mask, (t != 0) == self.system.true_attends)
        causal = "causal" in f"{self.case.name} {self.tag}" or self.case.option("is_causal", "causal")
        if causal and not self.no_mask() and all("padding" in name for name in chosen):
            n_queries, n_keys = shape[-2:]  # no other mask: the triangle, aligned at the top left
            mask = combine_masks(mask, causal_mask(max(n_queries, n_keys))[:n_queries, :n_keys])
        return mask, bias

    def no_mask(self) -> bool:
        return self.tag == "none" or any(words in self.tag for words in ("no_mask", "nomask", "unmasked"))

    def chosen_masks(self) -> dict[str, Tensor]:
        """The masks of this run: the one it is named after, or those that share a word with its tag, or all.

        So `full_mask` uses full_mask, `padding` key_padding_mask, `causal_padding` that and the other one,
        `masked` all of them.
        """
        masks = {name: t for name, t in self.inputs.items() if re.fullmatch(r"\w*(mask|bias)\w*", name)}
        ignored = "mask_ignored" in f"{self.tag} {self.case.name}"  # system 001's bug: masks given, never applied
        if self.no_mask() or ignored:
            return {}
        if self.tag in masks:
            return {self.tag: masks[self.tag]}
        said = set(self.tag.split("_"))
        shared = {name: t for name, t in masks.items() if said & words_of(name, t)}
        if "causal" in said and all("padding" in name for name in shared):
            causal = {} if self.system.has_is_causal else {n: t for n, t in masks.items() if "padding" not in n}
            return shared | causal
        return shared or masks

    def widened(self, name: str, mask: Tensor, shape: torch.Size) -> Tensor:
        """The mask with the axes (batch, heads, query, key), where its own do not broadcast as they are."""
        if len(shape) < 4 or self.system.has_is_causal:
            return mask
        if mask.dim() == 2 and "padding" in name:
            return mask[:, None, None, :]
        if mask.dim() == 3:
            return mask.unflatten(0, (-1, shape[1])) if self.system.folds_heads else mask[:, None]
        return mask

    def backward(self, y: Tensor) -> None:
        """Gradients of the mean or sum (as the case says) of y times its cotangent, and that loss."""
        product = y * self.inputs.get("cotangent", torch.ones(()))
        loss = product.sum() if "sum(" in self.case.description else product.mean()
        loss.backward()
        self.results["loss"] = loss
        self.results |= {f"grad {name}": t.grad for name, t in self.inputs.items() if t.grad is not None}
        if self.module:
            ours = dict(self.module.named_parameters())
            for theirs, parts in self.system.names.items():
                if all(part in ours for part in parts):
                    self.results[f"grad {theirs}"] = torch.cat([ours[part].grad for part in parts])

    def comparable(self, leaf: str, golden: Tensor) -> tuple[Tensor, Tensor]:
        """Mine and the golden one in the same form."""
        mine = self.results[leaf]
        if leaf in ("attn", "attn_avg", "weights"):
            mine = mine[0] if self.unbatched else mine
            mine = mine.mean(-3) if golden.dim() == mine.dim() - 1 else mine  # over the heads
            golden = golden.where(~golden.isnan(), 0)  # torch's NaN in an empty row: here it has weights 0 ...
        elif leaf == "scores":  # filled with another number where they are masked
            mine, golden = mine.broadcast_to(self.allowed.shape)[self.allowed], golden[self.allowed]
        elif leaf == "y" and self.module and golden.isnan().any():
            golden = golden.where(~golden.isnan(), self.module.output_projection.bias.detach())  # ... and output 0
        elif golden.dim() == mine.dim() + 1:
            golden = golden.flatten(-2)  # projected, with an axis for the heads
        return mine, golden


def build(case: Case, tag: str, system: System) -> MultiHeadAttention | None:
    """The module with the case's weights, or None if the case has none."""
    state = {}
    for theirs, t in case.group("w", tag).items():
        if theirs in system.names:
            parts = system.names[theirs]
            state |= dict(zip(parts, t.chunk(len(parts)), strict=True))
    if not state:
        return None
    n_heads = case.option("num_heads", "n_head", "n_heads", "heads", "head", "nhead")
    n_heads = n_heads or next(t.shape[1] for name, t in case.group("mid").items() if name.endswith("attn"))
    per_head = 1 if system.shared_projections else n_heads
    wide = n_heads if system.shared_projections else 1
    module = MultiHeadAttention(
        d_model=state[f"{OUTPUT}.weight"].shape[0],
        n_heads=n_heads,
        d_k=state[f"{QUERY}.weight"].shape[0] // per_head,
        d_v=state[f"{VALUE}.weight"].shape[0] // per_head,
        d_key_in=state[f"{KEY}.weight"].shape[1] * wide,
        d_value_in=state[f"{VALUE}.weight"].shape[1] * wide,
        bias=f"{QUERY}.bias" in state,
        output_bias=f"{OUTPUT}.bias" in state,
        shared_projections=system.shared_projections,
        empty_rows=system.empty_rows,
    )
    module.load_state_dict(state)
    return module.to(state[f"{QUERY}.weight"].dtype).train()


def words_of(name: str, mask: Tensor) -> set[str]:
    kind = "bool" if mask.dtype == torch.bool else "float" if mask.is_floating_point() else "int"
    return {*name.split("_"), kind} - {"mask"}


# ---------------------------------------------------------------- which runner
RUNNERS: dict[str, Callable[[Case], Comparisons]] = {
    "heads": heads,
    "mha": lambda case: attention(case, MHA),
    "s000_masks": masks_of_000,
    "s000_mha": lambda case: attention(case, SYSTEM_000),
    "s001_attention": lambda case: attention(case, SYSTEM_001),
    "s002_self_attention": lambda case: attention(case, SYSTEM_002),
    "s003_mha": lambda case: attention(case, SYSTEM_003),
    "sdpa": lambda case: attention(case, SDPA),
    **golden_model.RUNNERS,
    **golden_norms.RUNNERS,
    **golden_positions.RUNNERS,
    **golden_relative.RUNNERS,
    **golden_systems.RUNNERS,
    **golden_training.RUNNERS,
}


def runner_for(name: str) -> Callable[[Case], Comparisons] | None:
    """The runner of the longest prefix of a case's name, or None."""
    prefixes = [prefix for prefix in RUNNERS if name.startswith(prefix)]
    return RUNNERS[max(prefixes, key=len)] if prefixes else None
