"""Layer norm, RMS norm, and where they stand beside the residual.

    layer norm   (x - mean) / sqrt(variance + eps) * gamma + beta
    RMS norm     x / sqrt(mean of squares + eps) * gamma
    pre-norm     x + f(norm(x))
    post-norm    norm(x + f(x))

All statistics are those of one token: they run over the last axis, and no token reads another.

Ba, Kiros and Hinton 2016, "Layer Normalization", section 3; Zhang and Sennrich 2019, "Root Mean Square Layer
Normalization", section 3; Vaswani et al. 2017, section 3.1 (post-norm) and 5.4 (dropout); Xiong et al. 2020, "On Layer
Normalization in the Transformer Architecture" (pre-norm against post-norm). The lesson is notebooks/05_norms.ipynb.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .errors import check_choice, check_count, check_number, check_share, check_tensor, shape_text

__all__ = ["LayerNorm", "RMSNorm", "Residual", "layer_norm", "residual_block", "rms_norm"]

PLACEMENTS = ("pre", "post")
CONFUSIONS = ("normed_residual", "sum_not_normed", "no_residual")  # written by mistake, kept for comparison
MODES = PLACEMENTS + CONFUSIONS


# ---------------------------------------------------------------- the norms
def layer_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    eps: float = 1e-5,
    *,
    unbiased: bool = False,
    eps_outside: bool = False,
) -> Tensor:
    """Give each token mean 0 and variance 1, then the learnt scale `gamma` and shift `beta`. Same shape and dtype as x.

    Args:
        x: (..., d_model), float. The statistics are computed in float32 at least, so that float16 cannot overflow.
        gamma: (d_model,), what each column is multiplied by.
        beta: (d_model,), what is added to each column.
        eps: keeps a token of equal numbers from 0 / 0; it becomes `beta`.
        unbiased: divide the squared deviations by d_model - 1, and not by d_model.
        eps_outside: add `eps` to the standard deviation, and not to the variance under the root.

    Without the two options these are torch's numbers; with both, those of programs that follow "The Annotated
    Transformer" (there with eps 1e-6).

    Raises ValueError for gamma or beta of another width than x, and TypeError for an x that is not float.

    >>> layer_norm(torch.tensor([[4.0, 2.0, 0.0, 2.0]]), torch.ones(4), torch.zeros(4), eps=0.0)
    tensor([[ 1.4142,  0.0000, -1.4142,  0.0000]])
    """
    _check_tokens(x, gamma=gamma, beta=beta)
    if unbiased and x.shape[-1] < 2:
        raise ValueError("unbiased divides by d_model - 1, and d_model is 1: leave unbiased=False")
    wide = _at_least_float32(x)
    centred = wide - wide.mean(-1, keepdim=True)
    if eps_outside:
        spread = wide.std(-1, correction=int(unbiased), keepdim=True) + eps  # (..., 1)
    else:
        spread = (wide.var(-1, correction=int(unbiased), keepdim=True) + eps).sqrt()  # (..., 1)
    return (centred / spread * gamma + beta).to(x.dtype)


def rms_norm(x: Tensor, gamma: Tensor, eps: float = 1e-6) -> Tensor:
    """Divide each token by the root of its mean square; nothing is subtracted. Same shape and dtype as x.

    `x` is (..., d_model), float, and `gamma` (d_model,) multiplies each column. The squares are taken in float32 at
    least: in float16 the square of 256 is infinite already.

    Raises ValueError for a gamma of another width than x, and TypeError for an x that is not float.

    >>> rms_norm(torch.tensor([[3.0, 4.0, 0.0, 0.0]]), torch.ones(4))
    tensor([[1.2000, 1.6000, 0.0000, 0.0000]])
    """
    _check_tokens(x, gamma=gamma)
    wide = _at_least_float32(x)
    mean_square = wide.square().mean(-1, keepdim=True)  # (..., 1)
    return (wide / (mean_square + eps).sqrt() * gamma).to(x.dtype)


def _at_least_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _check_tokens(x: object, **parameters: object) -> None:
    """Raise unless x is (..., d_model), float, and each parameter (d_model,)."""
    check_tensor("x", x, dims=("d_model",), leading=True)
    if not x.is_floating_point():
        raise TypeError(f"x must be a float tensor, got {x.dtype}: x.float() makes one")
    for name, parameter in parameters.items():
        check_tensor(name, parameter, dims=("d_model",))
        if parameter.shape[0] != x.shape[-1]:
            raise ValueError(
                f"{name} must have one number for each of the {x.shape[-1]} columns of x {shape_text(x)}, "
                f"got {parameter.shape[0]}"
            )


class LayerNorm(nn.Module):
    """`layer_norm` with learnt `gamma`, at first 1, and `beta`, at first 0: (..., d_model) -> (..., d_model).

    The options are those of the function. With the usual ones torch's fused kernel does the work.

    >>> LayerNorm(d_model=4)(torch.tensor([[4.0, 2.0, 0.0, 2.0]])).detach()
    tensor([[ 1.4142,  0.0000, -1.4142,  0.0000]])
    """

    def __init__(self, *, d_model: int, eps: float = 1e-5, unbiased: bool = False, eps_outside: bool = False) -> None:
        super().__init__()
        check_count("d_model", d_model)
        check_number("eps", eps, least=0)
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps, self.unbiased, self.eps_outside = eps, unbiased, eps_outside

    def forward(self, x: Tensor) -> Tensor:
        gamma, beta, usual = self.gamma, self.beta, not (self.unbiased or self.eps_outside)
        if usual and isinstance(x, Tensor) and x.dtype == gamma.dtype and x.shape[-1:] == gamma.shape:
            return F.layer_norm(x, gamma.shape, gamma, beta, self.eps)
        return layer_norm(x, gamma, beta, self.eps, unbiased=self.unbiased, eps_outside=self.eps_outside)


class RMSNorm(nn.Module):
    """`rms_norm` with a learnt `gamma`, at first 1: (..., d_model) -> (..., d_model).

    >>> RMSNorm(d_model=4)(torch.tensor([[3.0, 4.0, 0.0, 0.0]])).detach()
    tensor([[1.2000, 1.6000, 0.0000, 0.0000]])
    """

    def __init__(self, *, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        check_count("d_model", d_model)
        check_number("eps", eps, least=0)
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.gamma, self.eps)


# ---------------------------------------------------------------- the residual
def residual_block(x: Tensor, f: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor], mode: str) -> Tensor:
    """What a sub-layer `f` adds to `x`, with a norm before or after. Same shape as x.

    Args:
        x: (..., d_model).
        f: attention or feed-forward, (..., d_model) -> (..., d_model).
        norm: (..., d_model) -> (..., d_model).
        mode: "pre" for x + f(norm(x)), where x itself goes on without a norm, or "post" for norm(x + f(x)).
            Three confusions of them: "normed_residual" is z + f(z) with z = norm(x), where the norm stands before the
            sub-layer and x itself does not go on; "sum_not_normed" is norm(x) + f(x); "no_residual" is norm(f(x)).

    Raises ValueError for any other mode, and for an `f` that returns another shape than x; TypeError if it returns no
    tensor.

    >>> def double(y): return 2 * y
    >>> def norm(y): return layer_norm(y, torch.ones(2), torch.zeros(2), eps=0.0)
    >>> x = torch.tensor([1.0, 3.0])
    >>> residual_block(x, double, norm, "pre"), residual_block(x, double, norm, "post")
    (tensor([-1.,  5.]), tensor([-1.,  1.]))
    """
    check_tensor("x", x, dims=("d_model",), leading=True)
    check_choice("mode", mode, MODES)
    if mode == "pre":
        return x + _sublayer(f, norm(x))
    if mode == "post":
        return norm(x + _sublayer(f, x))
    if mode == "no_residual":
        return norm(_sublayer(f, x))
    normed = norm(x)
    return normed + _sublayer(f, normed if mode == "normed_residual" else x)


def _sublayer(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """f(x), known to have the shape of x: another one would broadcast without a word."""
    y = f(x)
    if not isinstance(y, Tensor):
        tuple_hint = ": attention returns (output, weights), and only the output is added" * isinstance(y, tuple)
        raise TypeError(f"f must return a torch.Tensor, got {type(y).__name__}{tuple_hint}")
    if y.shape != x.shape:
        raise ValueError(
            f"f must return the shape of its input {shape_text(x)}, got {shape_text(y)}: the two are added"
        )
    return y


class Residual(nn.Module):
    """A sub-layer with its residual, norm and dropout: (batch, length, d_model) -> (batch, length, d_model).

    Args:
        norm: LayerNorm or RMSNorm, or any module that keeps the shape.
        sublayer: attention or feed-forward. What it returns may be a tensor, or a tuple that begins with it, as
            attention's (output, weights).
        dropout: share of the sub-layer's output set to 0 in training mode, before it is added.
        placement: "pre", "post", or one of the confusions of `residual_block`.

    A stack of pre-norm layers needs one more norm at its end: nothing else normalises what goes on beside the
    sub-layers.

    >>> block = Residual(norm=LayerNorm(d_model=4), sublayer=nn.Linear(4, 4), placement="post")
    >>> block(torch.zeros(1, 3, 4)).shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, *, norm: nn.Module, sublayer: nn.Module, placement: str, dropout: float = 0.0) -> None:
        super().__init__()
        check_choice("placement", placement, MODES)
        check_share("dropout", dropout, of="the numbers in the sub-layer's output")
        self.norm, self.sublayer = norm, sublayer
        self.dropout, self.placement = dropout, placement

    def forward(self, x: Tensor, *args: object, **kwargs: object) -> Tensor:
        """What comes after `x` goes to the sub-layer as it is: `block(x, mask=mask)`, `block(x, memory)`."""

        def f(y: Tensor) -> Tensor:
            output = self.sublayer(y, *args, **kwargs)
            output = output[0] if isinstance(output, tuple) else output
            return F.dropout(output, self.dropout) if self.dropout and self.training else output

        return residual_block(x, f, self.norm, self.placement)
