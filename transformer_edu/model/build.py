"""From sizes and names to a whole model: the only place where a config is read."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ..errors import check_choice, check_count, check_divides, check_flag, check_kind
from ..feedforward import FeedForward, GatedFeedForward
from ..heads import MultiHeadAttention
from ..norms import LayerNorm, RMSNorm
from ..positions import LearnedPositions, SinusoidalPositions, TokenEmbedding
from ..relative import AlibiPosition, RotaryPosition, ShawPosition, T5Position, XLPosition
from .initial import SCHEMES, initialise, tie_weights
from .layers import DecoderLayer, EncoderLayer
from .stacks import Decoder, Embedding, Encoder, Transformer

__all__ = ["TransformerConfig", "build_transformer", "modern_layer"]

GATED = {"glu": "sigmoid", "geglu": "gelu", "swiglu": "silu"}  # feed-forward layers with gates, and their activation
CHOICES = {
    "norm": ("layer", "rms"),
    "feed_forward": ("relu", "gelu", "silu", *GATED),
    "position": ("none", "sinusoid", "learned", "shaw", "transformer_xl", "t5", "alibi", "rotary"),
    "initial": SCHEMES,
}


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """What `build_transformer` needs to know. Frozen: a config describes one model, and no module keeps it."""

    source_vocab_size: int
    target_vocab_size: int
    d_model: int = 64
    n_heads: int = 4
    n_kv_heads: int | None = None  # as n_heads
    n_layers: int = 2  # in each of the two stacks
    d_ff: int | None = None  # 4 * d_model
    placement: str = "pre"  # or "post"
    norm: str = "layer"  # or "rms"
    feed_forward: str = "relu"  # or "gelu", "silu", or gated: "glu", "geglu", "swiglu"
    position: str = "sinusoid"  # or "learned", "none", or relative: "shaw", "transformer_xl", "t5", "alibi", "rotary"
    max_length: int = 512  # of learned positions
    dropout: float = 0.0
    final_norm: bool | None = None  # behind both stacks; as the placement needs it: with "pre", not with "post"
    tie_weights: bool = False  # output layer and target embedding share one matrix
    initial: str = "xavier"  # or "gpt2"


def build_transformer(config: TransformerConfig) -> Transformer:
    """The encoder-decoder that `config` describes, with random weights from torch's generator.

    Raises ValueError for a name that is not known or sizes that do not fit.

    >>> config = TransformerConfig(source_vocab_size=10, target_vocab_size=12, d_model=8, n_heads=2, n_layers=1)
    >>> import torch
    >>> ids = torch.tensor([[3, 4, 5]])
    >>> build_transformer(config)(ids, ids[:, :2]).shape
    torch.Size([1, 2, 12])
    """
    _check(config)
    closed = config.placement == "pre" if config.final_norm is None else config.final_norm

    def layer(kind: type[nn.Module], bidirectional: bool) -> nn.Module:
        count = 2 if kind is EncoderLayer else 3
        cross = {} if kind is EncoderLayer else {"cross_attention": _attention(config, None)}
        return kind(
            self_attention=_attention(config, _relative(config, bidirectional)),
            **cross,
            feed_forward=_feed_forward(config),
            norms=[_norm(config) for _ in range(count)],
            placement=config.placement,
            dropout=config.dropout,
        )

    encoder = [layer(EncoderLayer, True) for _ in range(config.n_layers)]
    decoder = [layer(DecoderLayer, False) for _ in range(config.n_layers)]
    model = Transformer(
        encoder=Encoder(encoder, final_norm=_norm(config) if closed else None),
        decoder=Decoder(decoder, final_norm=_norm(config) if closed else None),
        source_embedding=_embedding(config, config.source_vocab_size),
        target_embedding=_embedding(config, config.target_vocab_size),
        output=nn.Linear(config.d_model, config.target_vocab_size),
    )
    if config.tie_weights:
        tie_weights(model.output, model.target_embedding.tokens)
    return initialise(model, config.initial)


def _check(config: TransformerConfig) -> None:
    """Raise for what no part would name as the config does; each part checks its own sizes."""
    check_kind("config", config, TransformerConfig, "a TransformerConfig")
    for name in ("source_vocab_size", "target_vocab_size", "d_model", "n_layers"):
        check_count(name, getattr(config, name))
    check_divides("n_heads", config.n_heads, "d_model", config.d_model, why="each head gets d_model / n_heads columns")
    for name, choices in CHOICES.items():
        check_choice(name, getattr(config, name), choices)
    check_flag("tie_weights", config.tie_weights)
    if config.final_norm is not None:
        check_flag("final_norm", config.final_norm)


def _attention(config: TransformerConfig, position: nn.Module | None) -> MultiHeadAttention:
    return MultiHeadAttention(
        d_model=config.d_model,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        position=position,
        dropout=config.dropout,
    )


def _relative(config: TransformerConfig, bidirectional: bool) -> nn.Module | None:
    """The scheme of one self-attention; cross-attention has none, since memory and target do not share a scale."""
    sizes = {"d_model": config.d_model, "n_heads": config.n_heads}
    return {
        "shaw": lambda: ShawPosition(d_k=config.d_model // config.n_heads, max_distance=8),
        "transformer_xl": lambda: XLPosition(**sizes),
        "t5": lambda: T5Position(n_heads=config.n_heads, bidirectional=bidirectional),
        "alibi": lambda: AlibiPosition(n_heads=config.n_heads),
        "rotary": lambda: RotaryPosition(),
    }.get(config.position, lambda: None)()


def _feed_forward(config: TransformerConfig) -> nn.Module:
    d_ff = 4 * config.d_model if config.d_ff is None else config.d_ff
    sizes = {"d_model": config.d_model, "d_ff": d_ff, "dropout": config.dropout}
    if config.feed_forward in GATED:
        return GatedFeedForward(**sizes, activation=GATED[config.feed_forward])
    return FeedForward(**sizes, activation=config.feed_forward)


def _norm(config: TransformerConfig) -> nn.Module:
    return (LayerNorm if config.norm == "layer" else RMSNorm)(d_model=config.d_model)


def _embedding(config: TransformerConfig, vocab_size: int) -> Embedding:
    positions = {
        "sinusoid": lambda: SinusoidalPositions(d_model=config.d_model),
        "learned": lambda: LearnedPositions(max_length=config.max_length, d_model=config.d_model),
    }.get(config.position, lambda: None)()
    tokens = TokenEmbedding(vocab_size=vocab_size, d_model=config.d_model)
    return Embedding(tokens=tokens, positions=positions, dropout=config.dropout)


def modern_layer(
    *, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, eps: float = 1e-6, base: float = 10000.0
) -> EncoderLayer:
    """The layer of today's language models, from the same parts; give it a causal mask.

    Pre-norm with RMS norm, grouped heads, rotary positions (half-split pairs), a SwiGLU feed-forward, no biases.
    Touvron et al. 2023, "LLaMA", section 2.2, and its successors.

    >>> import torch
    >>> modern_layer(d_model=8, n_heads=4, n_kv_heads=2, d_ff=6)(torch.zeros(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """
    return EncoderLayer(
        self_attention=MultiHeadAttention(
            d_model=d_model,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            bias=False,
            position=RotaryPosition(base=base, pairing="half_split"),
        ),
        feed_forward=GatedFeedForward(d_model=d_model, d_ff=d_ff),
        norms=[RMSNorm(d_model=d_model, eps=eps) for _ in range(2)],
        placement="pre",
    )
