"""Everything runs on torch's meta device, where a tensor made elsewhere is an error: no GPU is needed."""

from types import SimpleNamespace

import pytest
import torch
from sizes import BATCH, D_K, D_MODEL, D_V, HEADS, KEY, QUERY
from torch import Tensor

from transformer_edu import attention, feedforward, heads, inspection, masks, model, norms, positions, relative, welcome

META = torch.device("meta")
MODULE = {"d_model": D_MODEL, "n_heads": HEADS}


def floats(*shape):
    return torch.empty(shape, device=META)


def bools(*shape):
    return torch.empty(shape, device=META, dtype=torch.bool)


def ids(*shape):
    return torch.empty(shape, device=META, dtype=torch.long)


QUERIES, KEYS, VALUES = (BATCH, HEADS, QUERY, D_K), (BATCH, HEADS, KEY, D_K), (BATCH, HEADS, KEY, D_V)
TOKENS, MEMORY = (BATCH, QUERY, D_MODEL), (BATCH, KEY, D_MODEL)


def attend(**options):
    return attention.scaled_dot_product_attention(floats(*QUERIES), floats(*KEYS), floats(*VALUES), **options)


def module(call=None, **options):
    made = heads.MultiHeadAttention(**MODULE, **options).to(META)
    return made(floats(*TOKENS), floats(*MEMORY), mask=bools(BATCH, 1, 1, KEY), **(call or {}))


def plain_matrices(d_ff=7):
    return floats(D_MODEL, d_ff), floats(d_ff), floats(d_ff, D_MODEL), floats(D_MODEL)


def gated_matrices(d_ff=7):
    return floats(D_MODEL, d_ff), floats(D_MODEL, d_ff), floats(d_ff, D_MODEL)


def layer(kind):
    return kind(d_model=D_MODEL, d_ff=7, dropout=0.1).to(META)(floats(*TOKENS))


def recorded():
    attention = heads.MultiHeadAttention(**MODULE).to(META)
    with inspection.record_attention(attention) as weights:
        attention(floats(*TOKENS))
    return weights[""]


VOCABULARIES = {"source_vocab_size": 9, "target_vocab_size": 11}


def built(**options):
    config = model.TransformerConfig(**VOCABULARIES, **MODULE, n_layers=1, dropout=0.1, **options)
    return model.build_transformer(config).to(META)


def answered(**options):
    masks_of_both = bools(BATCH, 1, 1, KEY), bools(QUERY, QUERY)
    return built(**options)(ids(BATCH, KEY), ids(BATCH, QUERY), *masks_of_both)


def bare_decoder_layer(pre_norm):
    def read(query, key, value, mask):
        return query + value.mean(1, keepdim=True)

    functions = ("self_attn", "cross_attn", "ffn", "norm1", "norm2", "norm3")
    parts = SimpleNamespace(**dict.fromkeys(functions, torch.tanh) | {"self_attn": read, "cross_attn": read})
    return model.decoder_layer(floats(*TOKENS), floats(*MEMORY), parts, None, None, pre_norm)


CALLS = {
    "masks.padding_mask": lambda: masks.padding_mask(ids(BATCH), KEY),
    "masks.padding_mask_from_ids": lambda: masks.padding_mask_from_ids(ids(BATCH, KEY), 0),
    "masks.causal_mask": lambda: masks.causal_mask(KEY, device=META),
    "masks.sliding_window_mask": lambda: masks.sliding_window_mask(KEY, left=2, right=1, device=META),
    "masks.chunk_mask": lambda: masks.chunk_mask(KEY, chunk=2, left_chunks=1, device=META),
    "masks.cross_mask": lambda: masks.cross_mask(ids(BATCH), QUERY, KEY),
    "masks.decoder_mask": lambda: masks.decoder_mask(ids(BATCH), KEY),
    "masks.combine_masks": lambda: masks.combine_masks(bools(BATCH, 1, 1, KEY), None, bools(QUERY, KEY)),
    "masks.empty_rows": lambda: masks.empty_rows(bools(QUERY, KEY)),
    "masks.to_additive": lambda: masks.to_additive(bools(QUERY, KEY), torch.bfloat16),
    "masks.from_additive": lambda: masks.from_additive(floats(QUERY, KEY)),
    "masks.to_integers": lambda: masks.to_integers(bools(QUERY, KEY)),
    "masks.from_integers": lambda: masks.from_integers(ids(QUERY, KEY)),
    "masks.to_multihead": lambda: masks.to_multihead(bools(QUERY, KEY), BATCH, HEADS),
    "masks.from_multihead": lambda: masks.from_multihead(
        bools(BATCH * HEADS, QUERY, KEY), bools(BATCH, KEY), n_heads=HEADS
    ),
    "attention.softmax": lambda: attention.softmax(floats(QUERY, KEY)),
    "attention.scaled_dot_product_attention": lambda: attend(),
    "attention.scaled_dot_product_attention, with everything": lambda: attend(
        mask=bools(BATCH, 1, 1, KEY), bias=floats(QUERY, KEY), scale=0.5, dropout=0.1
    ),
    "attention.scaled_dot_product_attention, uniform": lambda: attend(mask=bools(KEY), empty_rows="uniform"),
    "attention.scaled_dot_product_attention, fused": lambda: attend(
        mask=bools(BATCH, 1, 1, KEY), bias=floats(QUERY, KEY), need_weights=False
    ),
    "attention.scaled_dot_product_attention, fused with a mask of one axis": lambda: attend(
        mask=bools(KEY), need_weights=False
    ),
    "feedforward.feed_forward": lambda: feedforward.feed_forward(floats(*TOKENS), *plain_matrices()),
    "feedforward.glu": lambda: feedforward.glu(floats(*TOKENS), *gated_matrices()),
    "feedforward.geglu": lambda: feedforward.geglu(floats(*TOKENS), *gated_matrices()),
    "feedforward.swiglu": lambda: feedforward.swiglu(floats(*TOKENS), *gated_matrices()),
    "feedforward.FeedForward": lambda: layer(feedforward.FeedForward),
    "feedforward.ConvolutionFeedForward": lambda: layer(feedforward.ConvolutionFeedForward),
    "feedforward.ConvolutionFeedForward, to linear": lambda: (
        feedforward.ConvolutionFeedForward(d_model=D_MODEL, d_ff=7).to(META).to_linear()(floats(*TOKENS))
    ),
    "feedforward.GatedFeedForward": lambda: layer(feedforward.GatedFeedForward),
    "heads.split_heads": lambda: heads.split_heads(floats(*TOKENS), HEADS),
    "heads.merge_heads": lambda: heads.merge_heads(floats(*QUERIES)),
    "heads.repeat_heads": lambda: heads.repeat_heads(floats(*KEYS), 2),
    "heads.multi_head_attention": lambda: heads.multi_head_attention(
        floats(*TOKENS),
        floats(*MEMORY),
        {name: floats(D_MODEL, D_MODEL) for name in "qkvo"},
        HEADS,
        bools(KEY),
    ),
    "heads.HeadProjection": lambda: heads.HeadProjection(d_in=D_MODEL, n_heads=HEADS, d_head=D_K).to(META)(
        floats(*TOKENS)
    ),
    "heads.MultiHeadAttention": lambda: module(),
    "heads.MultiHeadAttention, weights": lambda: module({"need_weights": True}, dropout=0.1),
    "heads.MultiHeadAttention, shared": lambda: module(shared_projections=True, empty_rows="uniform"),
    "heads.MultiHeadAttention, grouped": lambda: module(n_kv_heads=1, d_k=D_K, d_v=D_V),
    "positions.embed_tokens": lambda: positions.embed_tokens(ids(BATCH, KEY), floats(9, D_MODEL)),
    "positions.TokenEmbedding": lambda: positions.TokenEmbedding(vocab_size=9, d_model=D_MODEL, pad_id=0).to(META)(
        ids(BATCH, KEY)
    ),
    "positions.sinusoids": lambda: positions.sinusoids(ids(BATCH, KEY), D_MODEL),
    "positions.sinusoidal_positions": lambda: positions.sinusoidal_positions(KEY, D_MODEL, offset=3, device=META),
    "positions.add_positions": lambda: positions.add_positions(floats(*MEMORY), floats(9, D_MODEL), offset=2),
    "positions.add_positions, given": lambda: positions.add_positions(
        floats(*MEMORY), floats(9, D_MODEL), positions=ids(BATCH, KEY)
    ),
    "positions.SinusoidalPositions": lambda: positions.SinusoidalPositions(d_model=D_MODEL, dropout=0.1)(
        floats(*MEMORY), offset=2
    ),
    "positions.SinusoidalPositions, given": lambda: positions.SinusoidalPositions(d_model=D_MODEL)(
        floats(*MEMORY), positions=ids(BATCH, KEY)
    ),
    "positions.LearnedPositions": lambda: positions.LearnedPositions(max_length=9, d_model=D_MODEL).to(META)(
        floats(*MEMORY), positions=ids(1, KEY)
    ),
    "positions.position_ids": lambda: positions.position_ids(bools(BATCH, KEY)),
    "norms.layer_norm": lambda: norms.layer_norm(floats(*TOKENS), floats(D_MODEL), floats(D_MODEL)),
    "norms.layer_norm, its other form": lambda: norms.layer_norm(
        floats(*TOKENS), floats(D_MODEL), floats(D_MODEL), unbiased=True, eps_outside=True
    ),
    "norms.rms_norm": lambda: norms.rms_norm(floats(*TOKENS), floats(D_MODEL)),
    "norms.LayerNorm": lambda: norms.LayerNorm(d_model=D_MODEL).to(META)(floats(*TOKENS)),
    "norms.RMSNorm": lambda: norms.RMSNorm(d_model=D_MODEL).to(META)(floats(*TOKENS)),
    "norms.residual_block": lambda: norms.residual_block(floats(*TOKENS), torch.tanh, torch.sin, "post"),
    "norms.Residual": lambda: norms.Residual(
        norm=norms.RMSNorm(d_model=D_MODEL), sublayer=heads.MultiHeadAttention(**MODULE), placement="pre", dropout=0.1
    ).to(META)(floats(*TOKENS), floats(*MEMORY), mask=bools(BATCH, 1, 1, KEY)),
    "relative.distances": lambda: relative.distances(QUERY, KEY, device=META),
    "relative.relative_shift": lambda: relative.relative_shift(floats(QUERY, QUERY + KEY - 1)),
    "relative.causal_shift": lambda: relative.causal_shift(floats(QUERY, KEY), zero_future=True),
    "relative.relative_table": lambda: relative.relative_table(KEY, D_MODEL, device=META),
    "relative.relative_scores": lambda: relative.relative_scores(
        floats(*QUERIES), floats(*KEYS), floats(HEADS, QUERY + KEY - 1, D_K), floats(HEADS, D_K), floats(HEADS, D_K)
    ),
    "relative.shaw_index": lambda: relative.shaw_index(QUERY, KEY, 2, device=META),
    "relative.t5_bucket": lambda: relative.t5_bucket(ids(QUERY, KEY)),
    "relative.alibi_slopes": lambda: relative.alibi_slopes(HEADS, device=META),
    "relative.alibi_bias": lambda: relative.alibi_bias(HEADS, QUERY, KEY, device=META),
    "relative.rope": lambda: relative.rope(floats(*QUERIES), ids(BATCH, QUERY)),
    "relative.rope, without positions": lambda: relative.rope(floats(*QUERIES), pairing="half_split", width=4),
    "relative.pairing_order": lambda: relative.pairing_order(D_K, device=META),
    "relative.Position": lambda: module(position=relative.Position()),
    "relative.ShawPosition": lambda: module(position=relative.ShawPosition(d_k=D_K, max_distance=2)),
    "relative.XLPosition": lambda: module(position=relative.XLPosition(d_model=D_MODEL, n_heads=HEADS)),
    "relative.XLPosition, causal": lambda: module(
        position=relative.XLPosition(d_model=D_MODEL, n_heads=HEADS, causal=True)
    ),
    "relative.T5Position": lambda: module({"need_weights": True}, position=relative.T5Position(n_heads=HEADS)),
    "relative.AlibiPosition": lambda: module(position=relative.AlibiPosition(n_heads=HEADS)),
    "relative.RotaryPosition": lambda: module(position=relative.RotaryPosition()),
    "model.EncoderLayer": lambda: built().encoder.layers[0](floats(*MEMORY), bools(BATCH, 1, 1, KEY)),
    "model.DecoderLayer": lambda: built().decoder.layers[0](
        floats(*TOKENS), floats(*MEMORY), bools(QUERY, QUERY), bools(BATCH, 1, 1, KEY)
    ),
    "model.Encoder": lambda: built().encoder(floats(*MEMORY), bools(BATCH, 1, 1, KEY)),
    "model.Decoder": lambda: built().decoder(floats(*TOKENS), floats(*MEMORY), bools(QUERY, QUERY)),
    "model.Embedding": lambda: built().source_embedding(ids(BATCH, KEY), offset=2),
    "model.Transformer": lambda: answered(),
    "model.build_transformer": lambda: answered(placement="post", position="learned", tie_weights=True),
    "model.build_transformer, with parts of today": lambda: answered(
        norm="rms", feed_forward="swiglu", position="rotary", n_kv_heads=1, initial="gpt2"
    ),
    "model.modern_layer": lambda: model.modern_layer(**MODULE, n_kv_heads=1, d_ff=7).to(META)(floats(*TOKENS)),
    "model.decoder_layer": lambda: bare_decoder_layer(True),
    "model.decoder_layer, post": lambda: bare_decoder_layer(False),
    "model.build_stack": lambda: model.build_stack(torch.nn.Tanh, 2)(floats(*TOKENS)),
    "model.run_stack": lambda: model.run_stack(floats(*TOKENS), [torch.add] * 2, floats(QUERY, 1), torch.sin, True),
    "model.shift_right": lambda: model.shift_right(ids(BATCH, QUERY), 1, 0),
    "model.initialise": lambda: list(model.initialise(built(), "gpt2").parameters()),
    "model.tie_weights": lambda: list(built(tie_weights=True).parameters()),
    "inspection.record_attention": recorded,
    "welcome.mix": lambda: welcome.mix(floats(QUERY, KEY), floats(KEY, D_V)),
}


def tensors(result):
    if isinstance(result, Tensor):
        return [result]
    return [tensor for part in result if part is not None for tensor in tensors(part)]


@pytest.mark.parametrize("name", CALLS)
def test_every_tensor_stays_on_the_device_of_the_inputs(name):
    results = tensors(CALLS[name]())
    assert results and all(result.device == META for result in results)


@pytest.mark.parametrize("need_weights", [True, False])
def test_the_backward_pass_stays_there_too(need_weights):
    attention = heads.MultiHeadAttention(**MODULE).to(META)
    output, _ = attention(floats(*TOKENS), mask=bools(QUERY, QUERY), need_weights=need_weights)
    output.sum().backward()
    assert all(parameter.grad.device == META for parameter in attention.parameters())


def test_a_module_may_be_made_on_the_device():
    config = model.TransformerConfig(**VOCABULARIES, **MODULE)
    with META:
        made = heads.MultiHeadAttention(**MODULE), model.build_transformer(config)
    assert all(parameter.device == META for module in made for parameter in module.parameters())


WITHOUT_TENSORS = {"feedforward.gated_d_ff", "model.IGNORE", "model.ParameterRow", "model.TransformerConfig"}
WITHOUT_TENSORS |= {"model.count_flops", "model.count_parameters", "model.parameter_table"}
FROM_LISTS = {"model.decoder_io"}  # its tensors begin on the CPU


def test_every_public_name_is_run_here():
    public = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (masks, attention, feedforward, heads, positions, norms, relative, model, inspection, welcome)
        for name in module.__all__
    }
    assert {name.partition(",")[0] for name in CALLS} == public - WITHOUT_TENSORS - FROM_LISTS


def test_the_meta_device_finds_a_tensor_made_elsewhere():
    with pytest.raises(RuntimeError, match="meta"):
        masks.combine_masks(bools(QUERY, KEY)) & torch.ones(QUERY, KEY, dtype=torch.bool)
