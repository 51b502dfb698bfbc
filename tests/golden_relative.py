"""How each kind of golden file about relative positions is computed with this package."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch
from golden_case import Case, Comparisons, first, split_name
from torch import Tensor

from transformer_edu.attention import scaled_dot_product_attention
from transformer_edu.heads import MultiHeadAttention
from transformer_edu.relative import (
    AlibiPosition,
    ShawPosition,
    T5Position,
    XLPosition,
    alibi_bias,
    alibi_slopes,
    causal_shift,
    distances,
    relative_shift,
    rope,
    shaw_index,
    t5_bucket,
)

Results = dict[str, Tensor]  # by the last component of an entry's name


# ---------------------------------------------------------------- what all kinds share
def runs(case: Case, compute: Callable[[str, bool], Results]) -> Comparisons:
    """Each run of a file, with weights and by the fused kernel; `compute` takes the run's tag."""
    known = {"y", "attn", "scores", "loss", "bias", "bucket", "index", "slopes", "bias_distance", "bias_key"}
    known |= {"matrix_ac", "matrix_bd", "matrix_bd_unshifted", "cos", "sin"}
    inputs = {name.rpartition(".")[2] for name in case.group("in")}
    entries: dict[str, list[tuple[str, str]]] = {}
    for prefix in ("mid", "out", "grad"):
        weights = set(NAMES) | {name.rpartition(".")[0] for name in NAMES} - {""}
        for name in case.group(prefix):
            tag, leaf = split_name(name, (inputs | weights) if prefix == "grad" else (known | weights))
            entries.setdefault(tag, []).append((f"{prefix}.{name}", f"grad {leaf}" if prefix == "grad" else leaf))
    shared = entries.get("", [])
    for tag in [tag for tag in entries if tag] or [""]:  # what has no tag belongs to each run
        for need_weights in (True, False):
            mine = compute(tag, need_weights)
            for entry, leaf in [*entries[tag], *(shared if tag else [])]:
                if leaf in mine:
                    yield entry, *comparable(leaf, mine, case.tensors[entry])


def comparable(leaf: str, mine: Results, golden: Tensor) -> tuple[Tensor, Tensor]:
    """Scores only where they are allowed: elsewhere each system fills in its own huge negative number."""
    if leaf == "scores":
        allowed = golden > -1e4
        return mine["scores"][allowed], golden[allowed]
    return mine[leaf], golden


def leaves(case: Case, tag: str) -> Results:
    """The inputs of a run, ready to take gradients."""
    return {name: t.clone().requires_grad_(t.is_floating_point()) for name, t in case.group("in", tag).items()}


def given_mask(tag: str, inputs: Results) -> Tensor | None:
    """The run's own mask, True = may attend, with an axis for the heads."""
    mask = first(inputs, "mask", "attn_mask")
    if mask is None or re.match("no_?mask|unmasked|none", tag):
        return None
    return (mask != 0)[:, None] if mask.dim() == 3 else mask != 0


def mask_of(case: Case, tag: str, inputs: Results, shape: torch.Size) -> Tensor | None:
    """The one given, or the causal one where the case speaks of it."""
    if first(inputs, "mask", "attn_mask") is not None:
        return given_mask(tag, inputs)
    causal = case.option("causal", "is_causal")
    if causal is None:
        text = f"{case.name} {tag} {case.description}".lower().replace("_", " ")
        causal = bool(re.search(r"\bcausal\b", text)) and "no mask" not in text
    return distances(*shape[-2:]) <= 0 if causal else None


def qkv(inputs: Results) -> list[Tensor]:
    """Queries, keys and values, by whichever name."""
    query = first(inputs, "query", "q", "x")
    key = first(inputs, "key", "k", default=query)
    return [query, key, first(inputs, "value", "v", default=key)]


def attend(
    case: Case, tag: str, need_weights: bool, inputs: Results, prepared: tuple, scale: float, **options
) -> Results:
    """Attention over heads that a position has prepared."""
    query, key, bias = prepared
    scores = scale * query @ key.transpose(-2, -1)
    scores = scores if bias is None else scores + bias
    mask = mask_of(case, tag, inputs, scores.shape)
    y, attn = scaled_dot_product_attention(
        query, key, qkv(inputs)[2], mask, bias=bias, scale=scale, need_weights=need_weights, **options
    )
    results = {"y": y, "scores": scores} | ({"attn": attn} if need_weights else {})
    return results | gradients(case, y, inputs)


def gradients(case: Case, y: Tensor, parameters: Results) -> Results:
    """Of the mean or sum, as the case says, of y times its cotangent."""
    if not case.group("grad"):
        return {}
    product = y * parameters.get("cotangent", torch.ones(()))
    loss = product.sum() if "sum(" in case.description else product.mean()
    loss.backward()
    return {"loss": loss} | {f"grad {name}": t.grad for name, t in parameters.items() if t.grad is not None}


# ---------------------------------------------------------------- Shaw, T5, ALiBi: heads alone
def shaw(case: Case) -> Comparisons:
    def compute(tag: str, need_weights: bool) -> Results:
        inputs = leaves(case, tag)
        q, k, v = qkv(inputs)
        table_k, table_v = inputs["table_k"], inputs.get("table_v")
        clip = (len(table_k) - 1) // 2
        position = ShawPosition(d_k=q.shape[-1], max_distance=clip, d_v=v.shape[-1])
        replace_parameters(position, key_table=table_k, value_table=table_v)
        scale = case.option("scale", default=q.shape[-1] ** -0.5)
        prepared = position(q, k, scale=scale)
        extra_output = None if table_v is None else position.values
        results = attend(case, tag, need_weights, inputs, prepared, scale, extra_output=extra_output)
        return results | {"index": shaw_index(q.shape[-2], k.shape[-2], clip)}

    return runs(case, compute)


def t5(case: Case) -> Comparisons:
    options = {
        "bidirectional": case.option("bidirectional", default="causal" not in case.name),
        "num_buckets": case.option("num_buckets", default=32),
        "max_distance": case.option("max_distance", default=128),
    }
    if "q" not in case.group("in"):
        return t5_buckets(case, options)

    def compute(tag: str, need_weights: bool) -> Results:
        inputs = leaves(case, tag)
        (q, k, _), table = qkv(inputs), inputs["table"]
        position = T5Position(n_heads=q.shape[1], **options | {"num_buckets": len(table)})
        replace_parameters(position, table=table)
        scale = case.option("scale", default=1.0)
        prepared = position(q, k, scale=scale)
        bucket = t5_bucket(distances(q.shape[-2], k.shape[-2]), **options | {"num_buckets": len(table)})
        results = attend(case, tag, need_weights, inputs, prepared, scale)
        return results | {"bucket": bucket, "bias": prepared[2][None]}  # (1, heads, query, key)

    return runs(case, compute)


def t5_buckets(case: Case, options: dict) -> Comparisons:
    for name, golden in case.group("out").items():
        if size := re.search(r"(\d+)x(\d+)$", name):
            queries, keys = (torch.arange(int(number)) for number in size.groups())
            relative = keys - queries[:, None]
        else:
            relative = first(case.group("in", name.rpartition(".")[0]), "relative_position", "relative", "rel")
        yield f"out.{name}", t5_bucket(relative, **options), golden


def alibi(case: Case) -> Comparisons:
    if "q" not in case.group("in"):
        return ((f"out.{name}", alibi_slopes(len(golden)), golden) for name, golden in case.group("out").items())

    def compute(tag: str, need_weights: bool) -> Results:
        inputs = leaves(case, tag)
        q, k, _ = qkv(inputs)
        n_heads, scale = q.shape[1], case.option("scale", default=q.shape[-1] ** -0.5)
        slopes = alibi_slopes(n_heads)
        by_key = slopes[:, None, None] * torch.arange(k.shape[-2])  # the authors' own bias
        mine = {"slopes": slopes, "bias_distance": alibi_bias(n_heads, q.shape[-2], k.shape[-2]), "bias_key": by_key}
        prepared = AlibiPosition(n_heads=n_heads)(q, k, scale=scale)
        return attend(case, tag, need_weights, inputs, prepared, scale) | mine

    return runs(case, compute)


def replace_parameters(module: torch.nn.Module, **given: Tensor | None) -> None:
    """Put the case's own leaves in place of a module's parameters, so that gradients reach them."""
    for name, tensor in given.items():
        if tensor is not None:
            del module._parameters[name]
            setattr(module, name, tensor)


# ---------------------------------------------------------------- rotary
def rotary(case: Case) -> Comparisons:
    options = {"base": case.option("base", default=10000.0), "width": case.option("rotary_dim", "width")}

    def compute(tag: str, need_weights: bool) -> Results:
        inputs = leaves(case, tag)
        x = qkv(inputs)[0]
        name = f"{case.name} {tag}"
        pairing = "half_split" if "half" in name or "neox" in name else "interleaved"
        positions = inputs.get("positions")
        if "shifted" in tag:
            positions = torch.arange(x.shape[-2]) + case.option("shift")
        if "x" not in inputs:
            turned = [rope(t, positions, pairing=pairing, **options) for t in qkv(inputs)[:2]]
            scale = case.option("scale", default=x.shape[-1] ** -0.5)
            return attend(case, tag, need_weights, inputs, (*turned, None), scale)
        y = rope(x, positions, pairing=pairing, **options)
        return {"y": y} | angles(x, positions, pairing, options) | gradients(case, y, inputs)

    return runs(case, compute)


def angles(x: Tensor, positions: Tensor | None, pairing: str, options: dict) -> Results:
    """Cosine and sine: what becomes of the vector whose pairs are (1, 0) each."""
    width = x.shape[-1] if options["width"] is None else options["width"]
    columns = torch.arange(width)
    firsts = columns % 2 == 0 if pairing == "interleaved" else columns < width // 2
    turned = rope(firsts.float().expand(x.shape[-2], -1), positions, pairing=pairing, **options)
    return {"cos": turned[:, firsts], "sin": turned[:, ~firsts]}


# ---------------------------------------------------------------- Transformer-XL, in ESPnet's two versions
LINEARS = {
    "linear_q": "query_projection.linear",
    "linear_k": "key_projection.linear",
    "linear_v": "value_projection.linear",
    "linear_out": "output_projection",
}
NAMES = {f"{theirs}.{kind}": f"{ours}.{kind}" for theirs, ours in LINEARS.items() for kind in ("weight", "bias")} | {
    "linear_pos.weight": "position.distance_projection.weight",
    "pos_bias_u": "position.u",
    "pos_bias_v": "position.v",
}


class Given(XLPosition):
    """With the case's own table of distances."""

    given: Tensor

    def table(self, n_queries: int, n_keys: int) -> Tensor:
        return self.given


def transformer_xl(case: Case, *, causal: bool) -> Comparisons:
    def compute(tag: str, need_weights: bool) -> Results:
        inputs = leaves(case, tag)
        query, key, value = qkv(inputs)
        module = espnet_module(case.group("w", tag), causal)
        module.position.given = first(inputs, "pos_emb", "pos")
        if "p = 1" in case.description:
            module.dropout = 1.0
        mask = given_mask(tag, inputs)
        y, attn = module(query, key, value, mask, need_weights=need_weights)
        results = {"y": y} | ({"attn": attn} if need_weights else {})
        results |= middle(module, query, key, value) | {"linear_out": y}
        parameters = {theirs: module.get_parameter(ours) for theirs, ours in NAMES.items()}
        return results | gradients(case, y, inputs | parameters)

    return runs(case, compute)


def espnet_module(weights: Results, causal: bool) -> MultiHeadAttention:
    """Attention with ESPnet's weights."""
    (n_heads, d_k), d_model = weights["pos_bias_u"].shape, weights["linear_out.weight"].shape[0]
    position = Given(d_model=weights["linear_pos.weight"].shape[1], n_heads=n_heads, d_k=d_k, causal=causal)
    module = MultiHeadAttention(d_model=d_model, n_heads=n_heads, d_k=d_k, position=position)
    module.load_state_dict({ours: weights[theirs] for theirs, ours in NAMES.items()})
    return module


def middle(module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor) -> Results:
    """The two terms of the scores, before and after the shift, and the projections (batch, length, width)."""
    parts = {"linear_q": (module.query_projection, query), "linear_k": (module.key_projection, key)}
    parts["linear_v"] = (module.value_projection, value)
    results = {name: part.linear(x) for name, (part, x) in parts.items()}
    q, k = module.query_projection(query), module.key_projection(key)
    content, _, matrix_bd = module.position(q, k, scale=1.0)
    matrix_ac = content @ k.transpose(-2, -1)
    return results | {
        "matrix_ac": matrix_ac,
        "matrix_bd_unshifted": module.position.by_distance(q, k.shape[-2]),
        "matrix_bd": matrix_bd,
        "scores": (matrix_ac + matrix_bd) / math.sqrt(q.shape[-1]),
    }


def shifts(case: Case, *, causal: bool) -> Comparisons:
    """`shift_3x5` is of `x_3x5`; with zero_triu, what is right of the queries is 0."""
    for name, golden in case.group("out").items():
        size = name.rpartition("_")[2]
        x = first(case.group("in"), f"x_{size}", f"{size}.x", "x")
        zero = "zero_triu" in name
        yield f"out.{name}", causal_shift(x, zero_future=zero) if causal else relative_shift(x), golden


def espnet(case: Case, *, causal: bool) -> Comparisons:
    return transformer_xl(case, causal=causal) if case.group("w") else shifts(case, causal=causal)


RUNNERS: dict[str, Callable[[Case], Comparisons]] = {
    "alibi": alibi,
    "rel_": lambda case: espnet(case, causal=False),
    "rope": rotary,
    "s003_rel": lambda case: espnet(case, causal=True),
    "shaw": shaw,
    "t5": t5,
}
