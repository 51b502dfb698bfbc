"""Encoder and decoder layers: sub-layers with residuals, from ready parts.

    encoder layer   self-attention, feed-forward
    decoder layer   causal self-attention, attention to the memory, feed-forward

Vaswani et al. 2017, "Attention Is All You Need", section 3.1, and figure 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from torch import Tensor, nn

from ..cache import KeyValueCache
from ..errors import check_callable, check_flag, check_list, check_tensor
from ..norms import Residual

__all__ = ["DecoderLayer", "EncoderLayer", "decoder_layer"]


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with its residual and norm: (batch, length, d_model), same shape.

    With a causal mask this is also the layer of a decoder that stands alone, as in a language model.

    Args:
        self_attention: MultiHeadAttention, or any module with forward(x, mask=mask) -> output, or a tuple that
            begins with it.
        feed_forward: FeedForward, GatedFeedForward, or any module that keeps the shape.
        norms: two norms, for the two sub-layers in their order.
        placement: "post" (2017: norm after the sum) or "pre" (norm before the sub-layer).
        dropout: share of each sub-layer's output set to 0 in training mode, before it is added; one number, or one for
            each sub-layer.

    >>> import torch
    >>> from transformer_edu.feedforward import FeedForward
    >>> from transformer_edu.heads import MultiHeadAttention
    >>> from transformer_edu.norms import LayerNorm
    >>> layer = EncoderLayer(
    ...     self_attention=MultiHeadAttention(d_model=8, n_heads=2),
    ...     feed_forward=FeedForward(d_model=8, d_ff=16),
    ...     norms=[LayerNorm(d_model=8), LayerNorm(d_model=8)],
    ... )
    >>> layer(torch.zeros(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        *,
        self_attention: nn.Module,
        feed_forward: nn.Module,
        norms: Sequence[nn.Module],
        placement: str = "post",
        dropout: float | Sequence[float] = 0.0,
    ) -> None:
        super().__init__()
        sublayers = {"self_attention": self_attention, "feed_forward": feed_forward}
        self.self_attention, self.feed_forward = _residuals(sublayers, norms, placement=placement, dropout=dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, *, cache: KeyValueCache | None = None) -> Tensor:
        """x (batch, length, d_model); mask bool, broadcastable to (batch, heads, length, length).

        With a cache x holds the new tokens alone, and the mask has a column for each token so far.
        """
        check_tensor("x", x, dims=("batch", "length", "d_model"))
        x = self.self_attention(x, mask=mask, **_given(cache))
        return self.feed_forward(x)


class DecoderLayer(nn.Module):
    """Self-attention, attention to the memory, feed-forward: (batch, target, d_model), same shape.

    Args:
        self_attention: as in EncoderLayer; its mask should be causal.
        cross_attention: MultiHeadAttention, or any module with forward(x, memory, mask=mask).
        feed_forward: as in EncoderLayer.
        norms: three norms, for the three sub-layers in their order. The memory is not normalised here: the encoder's
            last norm has done that.
        placement, dropout: as in EncoderLayer.

    >>> import torch
    >>> from transformer_edu.feedforward import FeedForward
    >>> from transformer_edu.heads import MultiHeadAttention
    >>> from transformer_edu.norms import LayerNorm
    >>> layer = DecoderLayer(
    ...     self_attention=MultiHeadAttention(d_model=8, n_heads=2),
    ...     cross_attention=MultiHeadAttention(d_model=8, n_heads=2),
    ...     feed_forward=FeedForward(d_model=8, d_ff=16),
    ...     norms=[LayerNorm(d_model=8) for _ in range(3)],
    ... )
    >>> layer(torch.zeros(1, 3, 8), torch.zeros(1, 5, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        *,
        self_attention: nn.Module,
        cross_attention: nn.Module,
        feed_forward: nn.Module,
        norms: Sequence[nn.Module],
        placement: str = "post",
        dropout: float | Sequence[float] = 0.0,
    ) -> None:
        super().__init__()
        sublayers = {
            "self_attention": self_attention,
            "cross_attention": cross_attention,
            "feed_forward": feed_forward,
        }
        self.self_attention, self.cross_attention, self.feed_forward = _residuals(
            sublayers, norms, placement=placement, dropout=dropout
        )

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """x (batch, target, d_model) reads itself under `mask`, memory (batch, source, d_model) under `memory_mask`.

        With a cache x holds the new tokens alone, and the mask has a column for each token so far.
        """
        check_tensor("x", x, dims=("batch", "target", "d_model"))
        check_tensor("memory", memory, dims=("batch", "source", "d_model"))
        x = self.self_attention(x, mask=mask, **_given(cache))
        x = self.cross_attention(x, memory, mask=memory_mask, **_given(cache))
        return self.feed_forward(x)


def _given(cache: KeyValueCache | None) -> dict:
    """The cache as an argument where there is one: an attention of your own need not know of it otherwise."""
    return {} if cache is None else {"cache": cache}


def _residuals(
    sublayers: Mapping[str, nn.Module], norms: Sequence[nn.Module], *, placement: str, dropout: float | Sequence[float]
) -> list[Residual]:
    check_list("norms", norms, of="norms")
    norms, count = list(norms), len(sublayers)
    if len(norms) != count:
        raise ValueError(f"norms must hold one norm for each of the {count} sub-layers, got {len(norms)}")
    if len({id(norm) for norm in norms}) < count:
        raise ValueError("norms must be different modules, got one of them twice: each sub-layer learns its own")
    for name, part in (*sublayers.items(), *((f"norms[{i}]", norm) for i, norm in enumerate(norms))):
        check_callable(name, part, f"{name}(x)")
    if not isinstance(dropout, int | float):
        check_list("dropout", dropout, of="numbers, or one number")
    shares = [dropout] * count if isinstance(dropout, int | float) else list(dropout)
    if len(shares) != count:
        raise ValueError(f"dropout must be one number, or one for each of the {count} sub-layers, got {len(shares)}")
    return [
        Residual(norm=norm, sublayer=part, placement=placement, dropout=share)
        for part, norm, share in zip(sublayers.values(), norms, shares, strict=True)
    ]


class Parts(Protocol):
    """What `decoder_layer` is made of: three sub-layers and three norms, as attributes of any object."""

    def self_attn(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor: ...
    def cross_attn(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor: ...
    def ffn(self, x: Tensor) -> Tensor: ...
    def norm1(self, x: Tensor) -> Tensor: ...
    def norm2(self, x: Tensor) -> Tensor: ...
    def norm3(self, x: Tensor) -> Tensor: ...


def decoder_layer(
    x: Tensor, memory: Tensor, parts: Parts, tgt_mask: Tensor | None, mem_mask: Tensor | None, pre_norm: bool
) -> Tensor:
    """The decoder layer with bare functions, as on paper: (batch, target, d_model), same shape as x.

    `parts` has `self_attn(query, key, value, mask)`, `cross_attn(query, key, value, mask)`, `ffn(x)`, and `norm1`,
    `norm2`, `norm3`. With `pre_norm` each norm stands before its sub-layer, else after the sum.

    >>> import torch
    >>> from types import SimpleNamespace
    >>> def read(query, key, value, mask): return value.mean(1, keepdim=True)
    >>> def same(x): return x
    >>> parts = SimpleNamespace(self_attn=read, cross_attn=read, ffn=same, norm1=same, norm2=same, norm3=same)
    >>> x, memory = torch.tensor([[[1.0], [3.0]]]), torch.tensor([[[10.0]]])
    >>> decoder_layer(x, memory, parts, None, None, True).flatten().tolist()  # +2, +10, doubled
    [26.0, 30.0]
    """
    check_flag("pre_norm", pre_norm)
    check_tensor("x", x, dims=("batch", "target", "d_model"))
    check_tensor("memory", memory, dims=("batch", "source", "d_model"))
    for name in ("self_attn", "cross_attn", "ffn", "norm1", "norm2", "norm3"):
        check_callable(f"parts.{name}", getattr(parts, name, None), "see Parts")
    if pre_norm:
        normed = parts.norm1(x)
        x = x + parts.self_attn(normed, normed, normed, tgt_mask)
        x = x + parts.cross_attn(parts.norm2(x), memory, memory, mem_mask)
        return x + parts.ffn(parts.norm3(x))
    x = parts.norm1(x + parts.self_attn(x, x, x, tgt_mask))
    x = parts.norm2(x + parts.cross_attn(x, memory, memory, mem_mask))
    return parts.norm3(x + parts.ffn(x))
