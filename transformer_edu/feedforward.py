"""The feed-forward layer: each token is worked on by itself, with the same weights at every position.

    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2

Vaswani et al. 2017, "Attention Is All You Need", section 3.3, which also says that this is two convolutions of width 1.
Gated forms: Shazeer 2020, "GLU Variants Improve Transformer". The lesson is notebooks/04_feedforward.ipynb.
"""

from __future__ import annotations

import functools

from torch import Tensor, nn
from torch.nn import functional as F

from .errors import check_choice, check_count, check_share, check_tensor, shape_text

__all__ = [
    "ConvolutionFeedForward",
    "FeedForward",
    "GatedFeedForward",
    "feed_forward",
    "gated_d_ff",
    "geglu",
    "glu",
    "swiglu",
]

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,  # x Phi(x), exact
    "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),  # the approximation that GPT-2 uses
    "silu": F.silu,  # x sigmoid(x), also called swish
    "sigmoid": F.sigmoid,
}


# ---------------------------------------------------------------- bare matrices, as on paper
def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """relu(x w1 + b1) w2 + b2, at every position by itself: (..., d_model) -> (..., d_model).

    Args:
        x: (..., d_model).
        w1, b1: (d_model, d_ff) and (d_ff,): what each hidden unit responds to, and from where on.
        w2, b2: (d_ff, d_model) and (d_model,): what each hidden unit writes, and what is always written.

    Raises ValueError for matrices that do not fit. Vaswani et al. 2017, equation 2.

    >>> import torch
    >>> x = torch.tensor([[1.0, 2.0], [-3.0, 1.0]])  # two tokens of width 2
    >>> w1, w2 = torch.tensor([[1.0], [1.0]]), torch.tensor([[10.0, 0.0]])  # one hidden unit: the sum, if positive
    >>> feed_forward(x, w1, torch.zeros(1), w2, torch.zeros(2)).tolist()
    [[30.0, 0.0], [0.0, 0.0]]
    """
    _check_matrices(x, {"w1": w1}, {"w2": w2})
    for name, bias, width in (("b1", b1, w1.shape[1]), ("b2", b2, w2.shape[1])):
        check_tensor(name, bias, dims=("width",))
        if len(bias) != width:
            raise ValueError(f"{name} must have one number for each of the {width} columns, got {len(bias)}")
    hidden = F.relu(x @ w1 + b1)  # (..., d_ff)
    return hidden @ w2 + b2  # (..., d_model)


def glu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """(sigmoid(x w_gate) * (x w_up)) w_down: (..., d_model) -> (..., d_model). Shapes as in `swiglu`.

    The gated linear unit of Dauphin et al. 2017 as a feed-forward layer (Shazeer 2020, equation 6).

    >>> import torch
    >>> glu(torch.tensor([[4.0]]), torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1, 1)).tolist()  # half open
    [[2.0]]
    """
    return _gated(x, w_gate, w_up, w_down, "sigmoid")


def geglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """(gelu(x w_gate) * (x w_up)) w_down: (..., d_model) -> (..., d_model). Shapes as in `swiglu`.

    Shazeer 2020, equation 6.

    >>> import torch
    >>> geglu(torch.tensor([[4.0]]), torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1, 1)).tolist()  # closed
    [[0.0]]
    """
    return _gated(x, w_gate, w_up, w_down, "gelu")


def swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """(silu(x w_gate) * (x w_up)) w_down: (..., d_model) -> (..., d_model).

    Args:
        x: (..., d_model).
        w_gate, w_up: (d_model, d_ff). silu(x w_gate) says how far each hidden unit is open, x w_up what passes.
        w_down: (d_ff, d_model).

    Raises ValueError for matrices that do not fit. Shazeer 2020, equation 6: no biases.

    >>> import torch
    >>> x = torch.tensor([[20.0, 3.0], [-20.0, 3.0]])  # the first number opens or closes the gate of the second
    >>> w_gate, w_up = torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [1.0]])
    >>> swiglu(x, w_gate, w_up, torch.tensor([[1.0, 0.0]])).round().tolist()
    [[60.0, 0.0], [-0.0, -0.0]]
    """
    return _gated(x, w_gate, w_up, w_down, "silu")


def _gated(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor, activation: str) -> Tensor:
    _check_matrices(x, {"w_gate": w_gate, "w_up": w_up}, {"w_down": w_down})
    hidden = ACTIVATIONS[activation](x @ w_gate) * (x @ w_up)  # (..., d_ff)
    return hidden @ w_down  # (..., d_model)


def _check_matrices(x: Tensor, into: dict[str, Tensor], out_of: dict[str, Tensor]) -> None:
    """Raise unless the matrices `into` lead from the width of x to one d_ff, and those `out_of` back from it."""
    check_tensor("x", x, dims=("d_model",), leading=True)
    for name, matrix in (into | out_of).items():
        check_tensor(name, matrix, dims=("d_model", "d_ff") if name in into else ("d_ff", "d_model"))
    d_model, (rows, columns) = x.shape[-1], next(iter(into.values())).shape
    d_ff = rows if rows != d_model == columns else columns  # as if a transposed matrix were meant as it should be
    for name, matrix in into.items():
        _check_shape(name, matrix, (d_model, d_ff), "(d_model, d_ff)")
    for name, matrix in out_of.items():
        _check_shape(name, matrix, (d_ff, d_model), "(d_ff, d_model)")


def _check_shape(name: str, matrix: Tensor, shape: tuple[int, int], axes: str) -> None:
    if tuple(matrix.shape) == shape:
        return
    way_out = f": {name}.T would fit" if tuple(matrix.shape) == shape[::-1] else ""
    raise ValueError(f"{name} must have shape {shape} = {axes}, got {shape_text(matrix)}{way_out}")


def gated_d_ff(d_ff: int, *, multiple_of: int = 1) -> int:
    """The d_ff of a gated layer with as many weights as a plain layer has with this d_ff: two thirds of it.

    A gated layer has three matrices where a plain one has two (Shazeer 2020, section 3). Rounded down, so that it never
    has more; with `multiple_of`, then up to the next multiple, which suits the hardware.

    >>> gated_d_ff(3072), gated_d_ff(16384, multiple_of=256)
    (2048, 11008)
    """
    check_count("d_ff", d_ff, least=2)
    check_count("multiple_of", multiple_of)
    two_thirds = 2 * d_ff // 3
    return -(-two_thirds // multiple_of) * multiple_of


# ---------------------------------------------------------------- modules
class _PositionWise(nn.Module):
    """What the layers below share: hidden units, dropout on them, and the way back to d_model."""

    def __init__(self, *, d_model: int, d_ff: int, activation: str, dropout: float) -> None:
        super().__init__()
        check_count("d_model", d_model)
        check_count("d_ff", d_ff)
        check_choice("activation", activation, tuple(ACTIVATIONS))
        check_share("dropout", dropout, of="the hidden units")
        self.d_model, self.d_ff = d_model, d_ff
        self.activation, self.dropout = activation, dropout

    def hidden(self, x: Tensor) -> Tensor:
        """What each hidden unit gives for each token, before dropout: (..., d_model) -> (..., d_ff)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model)."""
        return self.down_projection(self._dropped(self.hidden(x)))  # (..., d_model)

    def _dropped(self, hidden: Tensor) -> Tensor:
        return F.dropout(hidden, self.dropout) if self.dropout and self.training else hidden

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}, dropout={self.dropout}"

    def _check_tokens(self, x: Tensor, axes: tuple[str, ...] = ("d_model",)) -> None:
        check_tensor("x", x, dims=axes, leading=len(axes) == 1)
        if not x.is_floating_point():
            raise TypeError(f"x must be a float tensor, got {x.dtype}: token ids become vectors in an embedding first")
        if x.shape[-1] != self.d_model:
            raise ValueError(
                f"this layer takes tokens of width d_model ({self.d_model}), got width {x.shape[-1]} in {shape_text(x)}"
            )


class FeedForward(_PositionWise):
    """Two linear layers with an activation between them, applied to each token by itself.

    Args:
        d_model: width of the tokens, before and after.
        d_ff: number of hidden units; 4 * d_model in most models.
        activation: "relu", "gelu", "gelu_tanh", "silu" or "sigmoid".
        bias: whether both linear layers add one.
        dropout: share of the hidden units set to 0 in training mode, after the activation.

    `up_projection` holds W_1 and b_1, `down_projection` W_2 and b_2 of the paper (section 3.3).

    >>> import torch
    >>> layer = FeedForward(d_model=4, d_ff=16)
    >>> layer(torch.zeros(1, 3, 4)).shape, layer.hidden(torch.zeros(1, 3, 4)).shape
    (torch.Size([1, 3, 4]), torch.Size([1, 3, 16]))
    """

    def __init__(
        self, *, d_model: int, d_ff: int, activation: str = "relu", bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__(d_model=d_model, d_ff=d_ff, activation=activation, dropout=dropout)
        self.up_projection = nn.Linear(d_model, d_ff, bias)
        self.down_projection = nn.Linear(d_ff, d_model, bias)

    def hidden(self, x: Tensor) -> Tensor:
        self._check_tokens(x)
        return ACTIVATIONS[self.activation](self.up_projection(x))  # (..., d_ff)


class ConvolutionFeedForward(_PositionWise):
    """The same as two convolutions of width 1 along the sequence, as older programs write it.

    Arguments as in FeedForward, but tokens come as (batch, length, d_model). `from_linear` and `to_linear` carry the
    weights over: a convolution's weight (out, in, width) of width 1 is a linear layer's (out, in) with one axis more.

    >>> import torch
    >>> linear = FeedForward(d_model=4, d_ff=16)
    >>> x = torch.ones(1, 3, 4)
    >>> torch.allclose(ConvolutionFeedForward.from_linear(linear)(x), linear(x), atol=1e-6)
    True
    """

    def __init__(
        self, *, d_model: int, d_ff: int, activation: str = "relu", bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__(d_model=d_model, d_ff=d_ff, activation=activation, dropout=dropout)
        self.up_projection = nn.Conv1d(d_model, d_ff, kernel_size=1, bias=bias)
        self.down_projection = nn.Conv1d(d_ff, d_model, kernel_size=1, bias=bias)

    def hidden(self, x: Tensor) -> Tensor:
        self._check_tokens(x, ("batch", "length", "d_model"))
        channels_first = x.transpose(1, 2)  # (batch, d_model, length)
        return ACTIVATIONS[self.activation](self.up_projection(channels_first)).transpose(1, 2)  # (batch, length, d_ff)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) -> (batch, length, d_model)."""
        dropped = self._dropped(self.hidden(x))  # (batch, length, d_ff)
        return self.down_projection(dropped.transpose(1, 2)).transpose(1, 2)  # (batch, length, d_model)

    @classmethod
    def from_linear(cls, layer: FeedForward) -> ConvolutionFeedForward:
        """A layer of convolutions with a copy of the weights of two linear layers."""
        return _converted(layer, cls)

    def to_linear(self) -> FeedForward:
        """A layer of two linear layers with a copy of these weights."""
        return _converted(self, FeedForward)


def _converted(layer: _PositionWise, kind: type[_PositionWise]) -> _PositionWise:
    state = layer.state_dict()
    weight = state["up_projection.weight"]
    made = kind(
        d_model=layer.d_model,
        d_ff=layer.d_ff,
        activation=layer.activation,
        bias="up_projection.bias" in state,
        dropout=layer.dropout,
    ).to(weight)  # same device and dtype
    made.load_state_dict({name: x.reshape(made.get_parameter(name).shape) for name, x in state.items()})
    return made.train(layer.training)


class GatedFeedForward(_PositionWise):
    """A feed-forward layer whose hidden units are multiplied by gates: (activation(x W_gate) * (x W_up)) W_down.

    Args:
        d_model: width of the tokens, before and after.
        d_ff: number of hidden units; `gated_d_ff` gives the number that costs as much as a plain layer.
        activation: of the gate: "sigmoid" is GLU, "gelu" GEGLU, "silu" SwiGLU, "relu" ReGLU.
        bias: whether the three linear layers add one; Shazeer's do not.
        dropout: share of the hidden units set to 0 in training mode, after the product with the gates.

    >>> layer = GatedFeedForward(d_model=4, d_ff=gated_d_ff(12))
    >>> plain = FeedForward(d_model=4, d_ff=12, bias=False)
    >>> sum(p.numel() for p in layer.parameters()), sum(p.numel() for p in plain.parameters())
    (96, 96)
    """

    def __init__(
        self, *, d_model: int, d_ff: int, activation: str = "silu", bias: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__(d_model=d_model, d_ff=d_ff, activation=activation, dropout=dropout)
        self.gate_projection = nn.Linear(d_model, d_ff, bias)
        self.up_projection = nn.Linear(d_model, d_ff, bias)
        self.down_projection = nn.Linear(d_ff, d_model, bias)

    def gate(self, x: Tensor) -> Tensor:
        """How far each hidden unit is open for each token: (..., d_model) -> (..., d_ff)."""
        self._check_tokens(x)
        return ACTIVATIONS[self.activation](self.gate_projection(x))  # (..., d_ff)

    def hidden(self, x: Tensor) -> Tensor:
        return self.gate(x) * self.up_projection(x)  # (..., d_ff)
