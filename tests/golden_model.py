"""How each kind of golden file about layers and whole models is computed with this package."""

from __future__ import annotations

from collections.abc import Callable

import torch
from golden_case import Case, Comparisons, first, split_name
from torch import Tensor, nn

from transformer_edu.feedforward import FeedForward
from transformer_edu.heads import MultiHeadAttention
from transformer_edu.masks import causal_mask, combine_masks
from transformer_edu.model import Decoder, DecoderLayer, Encoder, EncoderLayer, Transformer, modern_layer
from transformer_edu.norms import LayerNorm

# ---------------------------------------------------------------- torch's names
PARTS = {
    "self_attn.out_proj": "self_attention.sublayer.output_projection",
    "multihead_attn.out_proj": "cross_attention.sublayer.output_projection",
    "linear1": "feed_forward.sublayer.up_projection",
    "linear2": "feed_forward.sublayer.down_projection",
    "norm1": "self_attention.norm",
    "norm2": "cross_attention.norm",  # of an encoder layer: feed_forward.norm
    "norm3": "feed_forward.norm",
    "norm": "final_norm",
}
ATTENTIONS = {"self_attn": "self_attention.sublayer", "multihead_attn": "cross_attention.sublayer"}
NORM = {"weight": "gamma", "bias": "beta"}


def our_names(theirs: str, state: dict[str, Tensor]) -> list[str]:
    """The parameter of ours that is torch's `theirs`; the three whose rows stand below each other in in_proj."""
    path, _, leaf = theirs.rpartition(".")
    before, _, last = path.rpartition(".")
    if leaf.startswith("in_proj_"):
        kind = leaf.removeprefix("in_proj_")
        start = f"{before}.".lstrip(".") + ATTENTIONS[last]
        return [f"{start}.{part}_projection.linear.{kind}" for part in ("query", "key", "value")]
    part = next(name for name in sorted(PARTS, key=len, reverse=True) if path == name or path.endswith(f".{name}"))
    layer = path.removesuffix(part)
    ours = PARTS[part]
    if part == "norm2" and f"{layer}norm3.weight" not in state:
        ours = "feed_forward.norm"
    return [f"{layer}{ours}.{NORM[leaf] if 'norm' in part else leaf}"]


def from_torch(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """torch's weights, or their gradients, under our names."""
    renamed = {}
    for theirs, tensor in state.items():
        ours = our_names(theirs, state)
        renamed |= dict(zip(ours, tensor.chunk(len(ours)), strict=True))
    return renamed


# ---------------------------------------------------------------- modules of a case's sizes
def attention(case: Case) -> MultiHeadAttention:
    return MultiHeadAttention(d_model=case.option("d_model"), n_heads=case.option("nhead"))


def norms(case: Case, count: int) -> list[LayerNorm]:
    return [LayerNorm(d_model=case.option("d_model"), eps=case.option("layer_norm_eps", "eps", default=1e-5))
            for _ in range(count)]  # fmt: skip


def shared_options(case: Case) -> dict:
    activation = case.option("activation", default="relu")
    sizes = {"d_model": case.option("d_model"), "d_ff": case.option("dim_feedforward")}
    return {
        "feed_forward": FeedForward(**sizes, activation=activation),
        "placement": "pre" if case.option("norm_first", default=False) else "post",
    }


def encoder_layer(case: Case) -> EncoderLayer:
    return EncoderLayer(self_attention=attention(case), norms=norms(case, 2), **shared_options(case))


def decoder_layer(case: Case) -> DecoderLayer:
    return DecoderLayer(
        self_attention=attention(case), cross_attention=attention(case), norms=norms(case, 3), **shared_options(case)
    )


def stack(kind: type[nn.Module], make: Callable[[Case], nn.Module], case: Case, closed: bool) -> nn.Module:
    n_layers = case.option("num_layers", "num_encoder_layers", default=2)
    return kind([make(case) for _ in range(n_layers)], final_norm=norms(case, 1)[0] if closed else None)


def whole(case: Case) -> Transformer:
    return Transformer(
        encoder=stack(Encoder, encoder_layer, case, closed="encoder.norm.weight" in case.group("w")),
        decoder=stack(Decoder, decoder_layer, case, closed="decoder.norm.weight" in case.group("w")),
    )


# ---------------------------------------------------------------- masks
def allowed(attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """torch's two masks, True = masked, as one of ours."""
    attn = None if attn_mask is None else (attn_mask == 0)  # bool, or a float mask of 0 and -inf
    return combine_masks(attn, None if padding is None else ~padding[:, None, None])


def chosen(inputs: dict[str, Tensor], tag: str, side: str) -> Tensor | None:
    """The masks of one side ("src", "tgt", "memory") that a run with this tag uses; without a tag, all."""
    attn = inputs.get(f"{side}_mask", inputs.get("mask") if side == "src" else None)
    padding = inputs.get(f"{side}_key_padding_mask")
    words = tag.split("_")
    if {"none", "unmasked", "nomask"} & set(words) or {"no", "mask"} <= set(words):
        return None
    use_padding = "padding" in words or "mode" in words or "grad" in words or not tag
    use_attn = "causal" in words or not tag or not {"padding", "mode", "grad"} & set(words)
    return allowed(attn if use_attn else None, padding if use_padding else None)


# ---------------------------------------------------------------- runners
LEAVES = {"y", "self_attn", "multihead_attn", "memory", "loss"}


def run(case: Case, make: Callable[[Case], nn.Module]) -> Comparisons:
    """Every run of a file: its output, what stands between, and the gradients of sum or mean of output * cotangent."""
    entries: dict[str, list[tuple[str, str]]] = {}
    for prefix in ("mid", "out"):
        for name in case.group(prefix):
            tag, leaf = split_name(name, LEAVES)
            entries.setdefault(tag, []).append((f"{prefix}.{name}", leaf))
    for tag, wanted in entries.items():
        model = make(case)
        model.load_state_dict(from_torch(case.group("w")))
        inputs = {n: t.clone().requires_grad_(t.is_floating_point()) for n, t in case.group("in", tag).items()}
        between: dict[str, Tensor] = {}
        note_attention(model, between)
        y = forward(model, inputs, tag)
        if "no_grad" in tag:  # torch's fast path: zeros at padded positions
            y = y.masked_fill(inputs["src_key_padding_mask"][..., None], 0.0)
        results = between | {"y": y}
        if case.group("grad"):
            product = y * inputs.get("cotangent", torch.ones(()))
            results["loss"] = product.sum() if "sum(" in case.description else product.mean()
            results["loss"].backward()
        for entry, leaf in wanted:
            yield entry, results[leaf], case.tensors[entry]
    if case.group("grad"):
        yield from gradients(case, model, inputs)


def forward(model: nn.Module, inputs: dict[str, Tensor], tag: str) -> Tensor:
    x, memory = first(inputs, "x", "src", "tgt"), inputs.get("memory")
    if isinstance(model, Transformer):
        masks = [chosen(inputs, tag, side) for side in ("src", "tgt")]
        memory_mask = chosen(inputs, tag, "memory") if "memory_key_padding_mask" in inputs else None
        return model(inputs["src"], inputs["tgt"], *masks, memory_mask)
    if memory is not None:
        return model(x, memory, chosen(inputs, tag, "tgt"), chosen(inputs, tag, "memory"))
    return model(x, chosen(inputs, tag, "src"))


def note_attention(model: nn.Module, between: dict[str, Tensor]) -> None:
    """Put what the attention sub-layers and the encoder return into `between`, under torch's names."""
    names = {"self_attention.sublayer": "self_attn", "cross_attention.sublayer": "multihead_attn", "encoder": "memory"}
    for name, module in model.named_modules():
        if name in names:

            def hook(_module: nn.Module, _args: object, output: object, key: str = names[name]) -> None:
                between[key] = output[0] if isinstance(output, tuple) else output

            module.register_forward_hook(hook)


def gradients(case: Case, model: nn.Module, inputs: dict[str, Tensor]) -> Comparisons:
    """Those of inputs by their names, those of weights by torch's; ours are put together as torch has them."""
    own = dict(model.named_parameters())
    weights = case.group("w")
    for name, golden in case.group("grad").items():
        if name in inputs:
            yield f"grad.{name}", inputs[name].grad, golden
        else:
            yield f"grad.{name}", torch.cat([own[ours].grad for ours in our_names(name, weights)]), golden


# ---------------------------------------------------------------- a modern layer
LLAMA = {
    "self_attn.q_proj": "self_attention.sublayer.query_projection.linear",
    "self_attn.k_proj": "self_attention.sublayer.key_projection.linear",
    "self_attn.v_proj": "self_attention.sublayer.value_projection.linear",
    "self_attn.o_proj": "self_attention.sublayer.output_projection",
    "mlp.gate_proj": "feed_forward.sublayer.gate_projection",
    "mlp.up_proj": "feed_forward.sublayer.up_projection",
    "mlp.down_proj": "feed_forward.sublayer.down_projection",
    "input_layernorm": "self_attention.norm",
    "post_attention_layernorm": "feed_forward.norm",
}


def llama(case: Case) -> Comparisons:
    def ours(name: str) -> str:
        path = LLAMA[name.removesuffix(".weight")]
        return f"{path}.gamma" if path.endswith("norm") else f"{path}.weight"

    sizes = {name: case.option(name) for name in ("d_model", "n_heads", "n_kv_heads", "d_ff", "eps", "base")}
    layer = modern_layer(**sizes)
    layer.load_state_dict({ours(name): t for name, t in case.group("w").items()})
    inputs = {name: t.clone().requires_grad_() for name, t in case.group("in").items()}
    y = layer(inputs["x"], causal_mask(inputs["x"].shape[1]))
    yield "out.y", y, case.tensors["out.y"]
    (y * inputs["cotangent"]).sum().backward()
    own = dict(layer.named_parameters())
    for name, golden in case.group("grad").items():
        yield f"grad.{name}", (inputs[name] if name in inputs else own[ours(name)]).grad, golden


RUNNERS: dict[str, Callable[[Case], Comparisons]] = {
    "encoder_layer": lambda case: run(case, encoder_layer),
    "encoder_stack": lambda case: run(
        case, lambda c: stack(Encoder, encoder_layer, c, closed="norm.weight" in c.group("w"))
    ),
    "decoder_layer": lambda case: run(case, decoder_layer),
    "llama_layer": llama,
    "transformer": lambda case: run(case, whole),
}
