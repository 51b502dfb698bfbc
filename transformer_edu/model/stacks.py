"""Layers on top of each other, and the whole encoder-decoder.

    memory = encoder(source)
    logits = output(decoder(target_in, memory))

Vaswani et al. 2017, sections 3.1 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor, nn
from torch.nn import functional as F

from ..cache import KeyValueCache
from ..errors import check_callable, check_count, check_flag, check_list, check_module, check_share

__all__ = ["Decoder", "Embedding", "Encoder", "Transformer", "build_stack", "run_stack"]


def build_stack(make_layer: Callable[[], nn.Module], n: int) -> nn.Sequential:
    """`n` layers with parameters of their own, one made by each call of `make_layer`; forward applies them in turn.

    >>> stack = build_stack(lambda: nn.Linear(2, 2, bias=False), 3)
    >>> len(stack), sum(p.numel() for p in stack.parameters())
    (3, 12)
    """
    check_count("n", n)
    if isinstance(make_layer, nn.Module) or not callable(make_layer):
        raise TypeError(
            f"make_layer must be a function that makes a new layer at each call, got {type(make_layer).__name__}"
        )
    return nn.Sequential(*_different(make_layer() for _ in range(n)))


def run_stack(
    x: Tensor, layers: Iterable[Callable], mask: Tensor | None, final_norm: Callable[[Tensor], Tensor], pre_norm: bool
) -> Tensor:
    """x through every layer(x, mask) in turn, and through `final_norm` if the layers are pre-norm. Same shape.

    In a pre-norm stack nothing normalises what goes on beside the sub-layers, so it grows from layer to layer;
    the last layer of a post-norm stack ends with a norm anyway.

    >>> import torch
    >>> def add_one(x, mask): return x + 1
    >>> def half(x): return x / 2
    >>> run_stack(torch.tensor(2.0), [add_one, add_one], None, half, pre_norm=True).item()
    2.0
    """
    check_list("layers", layers, of="layers")
    check_flag("pre_norm", pre_norm)
    if pre_norm:
        check_callable("final_norm", final_norm, "final_norm(x)")
    for layer in layers:
        check_callable("each layer", layer, "layer(x, mask)")
        x = layer(x, mask)
    return final_norm(x) if pre_norm else x


def _different(layers: Iterable[nn.Module]) -> list[nn.Module]:
    check_list("layers", layers, of="layers")
    layers = list(layers)
    if not layers:
        raise ValueError("layers must hold at least one layer, got none")
    for i, layer in enumerate(layers):
        check_module(f"layers[{i}]", layer)
    if len({id(layer) for layer in layers}) < len(layers):
        raise ValueError(
            "layers must be different modules, got one of them twice: they would share their weights. "
            "Make each by a call of its own, and not as [layer] * n"
        )
    return layers


def _check_given(**parts: nn.Module | None) -> None:
    for name, part in parts.items():
        if part is not None:
            check_callable(name, part, f"{name}(x)")


class Encoder(nn.Module):
    """EncoderLayers in turn, then a norm if one is given: (batch, length, d_model) -> the memory, same shape.

    Args:
        layers: the layers, each a module of its own.
        final_norm: pre-norm layers need one; torch's `nn.Transformer` has one behind post-norm layers too.
    """

    def __init__(self, layers: Iterable[nn.Module], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_different(layers))
        _check_given(final_norm=final_norm)
        self.final_norm = final_norm

    def forward(self, x: Tensor, mask: Tensor | None = None, *, cache: KeyValueCache | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask) if cache is None else layer(x, mask, cache=cache)
        return x if self.final_norm is None else self.final_norm(x)


class Decoder(nn.Module):
    """DecoderLayers in turn, each of which reads the same memory, then a norm if one is given.

    Arguments as in Encoder; (batch, target, d_model) and memory (batch, source, d_model) -> (batch, target, d_model).
    """

    def __init__(self, layers: Iterable[nn.Module], *, final_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_different(layers))
        _check_given(final_norm=final_norm)
        self.final_norm = final_norm

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        given = {} if cache is None else {"cache": cache}
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask, **given)
        return x if self.final_norm is None else self.final_norm(x)


class Embedding(nn.Module):
    """Token ids to what the first layer takes: (batch, length) -> (batch, length, d_model).

    Args:
        tokens: TokenEmbedding, or any module from ids to vectors.
        positions: SinusoidalPositions or LearnedPositions; None where the attention knows the order (relative).
        dropout: share of the sum's entries set to 0 in training mode.
    """

    def __init__(self, *, tokens: nn.Module, positions: nn.Module | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        check_callable("tokens", tokens, "tokens(ids)")
        _check_given(positions=positions)
        check_share("dropout", dropout, of="the entries")
        self.tokens, self.positions, self.dropout = tokens, positions, dropout

    def forward(self, ids: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        """ids (batch, length), the first at position `offset`, or each at its own in `positions` (batch, length)."""
        x = self.tokens(ids)  # (batch, length, d_model)
        if self.positions is not None:
            x = self.positions(x, offset=offset, positions=positions)
        return F.dropout(x, self.dropout) if self.dropout and self.training else x


class Transformer(nn.Module):
    """The encoder-decoder, made of ready parts.

    Args:
        encoder, decoder: Encoder and Decoder.
        source_embedding, target_embedding: from ids to (batch, length, d_model); without one the input is taken as
            embedded already.
        output: from (batch, target, d_model) to logits (batch, target, vocab_size), usually nn.Linear; without one the
            decoder's output is returned.

    Masks are bool, True = may attend, broadcastable to (batch, heads, query, key).
    """

    def __init__(
        self,
        *,
        encoder: nn.Module,
        decoder: nn.Module,
        source_embedding: nn.Module | None = None,
        target_embedding: nn.Module | None = None,
        output: nn.Module | None = None,
    ) -> None:
        super().__init__()
        check_callable("encoder", encoder, "encoder(x, mask)")
        check_callable("decoder", decoder, "decoder(x, memory, mask, memory_mask)")
        _check_given(source_embedding=source_embedding, target_embedding=target_embedding, output=output)
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder, self.decoder, self.output = encoder, decoder, output

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """The memory (batch, source, d_model) of ids (batch, source)."""
        x = source if self.source_embedding is None else self.source_embedding(source)
        return self.encoder(x, source_mask)

    def decode(
        self,
        target_in: Tensor,
        memory: Tensor,
        target_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        positions: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """The logits (batch, target, vocab_size) of the token after each of target_in (batch, target).

        With a cache target_in holds the new tokens alone; they stand behind those that the cache has, unless their
        `positions` (batch, target) are given.
        """
        x = target_in
        if self.target_embedding is not None:
            where = {"positions": positions} if positions is not None else {"offset": cache.length} if cache else {}
            x = self.target_embedding(target_in, **where)
        given = {} if cache is None else {"cache": cache}
        x = self.decoder(x, memory, target_mask, memory_mask, **given)
        return x if self.output is None else self.output(x)

    def forward(
        self,
        source: Tensor,
        target_in: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Logits (batch, target, vocab_size). The decoder reads the memory under `source_mask` unless `memory_mask`
        is given: what is padding for the encoder is padding for the decoder.
        """
        memory = self.encode(source, source_mask)
        return self.decode(target_in, memory, target_mask, source_mask if memory_mask is None else memory_mask)
