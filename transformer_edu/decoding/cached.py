"""Decoding with a cache: the work of a step is that of its new tokens, and the past is looked up."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..attention import scaled_dot_product_attention
from ..cache import KeyValueCache
from ..errors import check_callable, check_count, check_float, check_ids, check_list, check_tensor, shape_text
from ..model import Transformer
from ..positions import position_ids

__all__ = ["CachedStep", "attend_step", "cached_causal_mask", "reorder_cache"]


def cached_causal_mask(n_new: int, n_total: int) -> Tensor:
    """A causal mask for queries that are the last `n_new` of `n_total` positions. bool (n_new, n_total).

    >>> cached_causal_mask(2, 4).int().tolist()
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    """
    check_count("n_new", n_new)
    check_count("n_total", n_total, least=n_new)
    query = torch.arange(n_total - n_new, n_total)[:, None]  # (n_new, 1)
    return torch.arange(n_total) <= query  # (n_new, n_total)


def attend_step(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cache: tuple[Tensor, Tensor] | None,
    rotate: Callable[[Tensor, Tensor], Tensor],
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Causal attention of new tokens, in pieces of any size: (output (batch, heads, new, d_v), the next cache).

    Args:
        query, key, value: of the new tokens alone, (batch, heads, new, d_k or d_v).
        cache: None for the first piece, then what the last call returned: rotated keys, and values, of all so far.
        rotate: (x, positions (new,)) -> x turned by its positions, as `relative.rope`.

    >>> one = torch.ones(1, 1, 1, 2)
    >>> output, cache = attend_step(one, one, one, None, lambda x, positions: x)
    >>> output, cache = attend_step(one, one, 3 * one, cache, lambda x, positions: x)
    >>> output.flatten().tolist(), cache[0].shape[2]
    ([2.0, 2.0], 2)
    """
    check_callable("rotate", rotate, "rotate(x, positions)")
    _check_pieces({"query": query, "key": key, "value": value}, cache)
    past = 0 if cache is None else cache[0].shape[2]
    positions = torch.arange(past, past + query.shape[2], device=query.device)  # (new,)
    query, key = rotate(query, positions), rotate(key, positions)
    if cache is not None:
        key, value = torch.cat([cache[0], key], 2), torch.cat([cache[1], value], 2)  # (batch, heads, total, d)
    mask = cached_causal_mask(query.shape[2], key.shape[2]).to(query.device)  # (new, total)
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    return output, (key, value)


def _check_pieces(new: dict[str, Tensor], cache: tuple[Tensor, Tensor] | None) -> None:
    """Raise unless query, key and value have the same new tokens, and the cache holds earlier keys and values."""
    for name, x in new.items():
        check_float(name, x, dims=("batch", "heads", "new", "d_v" if name == "value" else "d_k"))
        if x.shape[2] != new["query"].shape[2]:
            raise ValueError(
                f"{name} must have the new tokens that query has, got {shape_text(x)} and {shape_text(new['query'])}"
            )
    if cache is None:
        return
    _check_pair("cache", cache)
    for name, old in zip(("key", "value"), cache, strict=True):
        if old.shape[:2] + old.shape[3:] != new[name].shape[:2] + new[name].shape[3:]:
            raise ValueError(
                f"cache must hold {name}s of the batch, heads and width of the new ones, {shape_text(new[name])}, got "
                f"{shape_text(old)}: begin anew with None"
            )


def _check_pair(name: str, pair: object) -> None:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"{name} must be a pair (key, value) of tensors, got {type(pair).__name__}")
    for part, x in zip(("key", "value"), pair, strict=True):
        check_tensor(f"the {part} of {name}", x, dims=("batch", "heads", "length", "d"))


def reorder_cache(cache: list[tuple[Tensor, Tensor]], parents: Tensor) -> list[tuple[Tensor, Tensor]]:
    """A new cache in which hypothesis i has what `parents[i]` had: a pair (beam, heads, length, d) for each layer.

    >>> old = [(torch.tensor([1.0, 2.0]).view(2, 1, 1, 1), torch.tensor([3.0, 4.0]).view(2, 1, 1, 1))]
    >>> [(key.flatten().tolist(), value.flatten().tolist()) for key, value in reorder_cache(old, torch.tensor([1, 1]))]
    [([2.0, 2.0], [4.0, 4.0])]
    """
    check_list("cache", cache, of="pairs (key, value), one for each layer")
    check_ids("parents", parents, dims=("beam",))
    for layer, pair in enumerate(cache):
        _check_pair(f"cache[{layer}]", pair)
        if not all(0 <= parent < len(pair[0]) for parent in parents.tolist()):
            raise ValueError(
                f"parents must lie in 0..{len(pair[0]) - 1}, the hypotheses of the cache, got {parents.tolist()}"
            )
    return [(key[parents], value[parents]) for key, value in cache]


class CachedStep:
    """The next token's logits of a model, at the cost of the new tokens alone: a step for the functions above.

    Args:
        model: in evaluation mode.
        source: ids (batch, source); with one row, any number of hypotheses may look at it.
        source_mask: (batch, 1, 1, source), True = may attend.
        prompt_mask: bool (batch, length), True = real token, for prompts padded on the left to one length. Each row
            then counts its positions from its own first token.
        log_probabilities: answer (batch, vocab_size) log-probabilities, as `beam_search` wants them, and not logits
            (batch, 1, vocab_size).

    Call it with all tokens so far, as if there were no cache; those that it has seen are not computed again.
    """

    def __init__(
        self,
        model: Transformer,
        source: Tensor,
        source_mask: Tensor | None = None,
        *,
        prompt_mask: Tensor | None = None,
        log_probabilities: bool = False,
    ) -> None:
        _check_model(model)
        if prompt_mask is not None:
            check_tensor("prompt_mask", prompt_mask, dims=("batch", "length"))
            if prompt_mask.dtype != torch.bool:
                raise ValueError(f"prompt_mask must have dtype bool (True = real token), got {prompt_mask.dtype}")
        self.model, self.source_mask, self.log_probabilities = model, source_mask, log_probabilities
        with torch.no_grad():
            self.memory = model.encode(source, source_mask)
        self.prompt_mask, self.cache = prompt_mask, KeyValueCache()

    def __call__(self, ids: Tensor) -> Tensor:
        with torch.inference_mode():  # as no_grad, with less work for each operation
            logits = self._logits(ids)
            answer = logits[:, -1].log_softmax(-1) if self.log_probabilities else logits[:, -1:]
        return answer.clone()  # a tensor like any other

    def _logits(self, ids: Tensor) -> Tensor:
        """The logits (batch, new, vocab_size) behind each of the tokens that the cache has not seen."""
        start = self.cache.length
        if not start:
            self._check_prompt(ids)
        stop = ids.shape[1]
        if stop <= start:
            raise ValueError(f"ids must be longer than the {start} tokens seen so far, got {stop}: begin a new step")
        if len(self.memory) not in (1, len(ids)):
            raise ValueError(f"ids must have a row for each of the {len(self.memory)} sources, got {len(ids)}")
        new = ids[:, start:].to(self.memory.device)
        mask, positions = None, None  # one new token may see everything so far
        if stop - start > 1 or self.prompt_mask is not None:
            mask = cached_causal_mask(stop - start, stop).to(new.device)  # (new, total)
        if self.prompt_mask is not None:
            grown = self.prompt_mask.new_ones(len(ids), stop - self.prompt_mask.shape[1])
            real = torch.cat([self.prompt_mask, grown], 1)  # (batch, total)
            mask, positions = mask & real[:, None, None], position_ids(real)[:, start:]
        memory = self.memory.expand(len(ids), -1, -1)
        return self.model.decode(new, memory, mask, self.source_mask, positions=positions, cache=self.cache)

    def _check_prompt(self, ids: Tensor) -> None:
        check_ids("ids", ids, dims=("batch", "length"))
        mask = self.prompt_mask
        if mask is not None and (len(mask) != len(ids) or mask.shape[1] > ids.shape[1]):
            raise ValueError(
                f"prompt_mask must have the shape of the first ids, {shape_text(ids)}, got {shape_text(mask)}"
            )

    def reorder(self, parents: Tensor) -> None:
        """Go on with other hypotheses: number i was number `parents[i]`."""
        check_ids("parents", parents, dims=("batch",))
        self.cache.reorder(parents.to(self.memory.device))


def _check_model(model: object) -> None:
    if isinstance(model, type) or not (hasattr(model, "encode") and hasattr(model, "decode")):
        got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError(f"model must be a Transformer, or what has its encode and decode, got {got}")
    if getattr(model, "training", False):
        raise ValueError("model must be in evaluation mode, or dropout disturbs what it says: model.eval()")
