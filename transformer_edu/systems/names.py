"""Weights saved under a public system's names, loaded into our parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from ..errors import check_kind, check_list, check_module, check_tensor, shape_text

__all__ = ["Names", "load_weights", "our_name"]

Names = Sequence[tuple[str, str]]  # regular expressions and what takes their place, one after the other


def our_name(theirs: str, names: Names) -> str:
    """What a system's parameter or module is called here.

    >>> our_name("layers.0.W_Q.weight", [(r"W_Q\\b", "query_projection.linear")])
    'layers.0.query_projection.linear.weight'
    """
    check_kind("theirs", theirs, str, "a name")
    check_list("names", names, of="pairs (pattern, what takes its place)")
    for pair in names:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"names must hold pairs (pattern, what takes its place), got {pair!r} among them")
        pattern, ours = pair
        theirs = re.sub(pattern, ours, theirs)
    return theirs


def load_weights(model: nn.Module, state: Mapping[str, Tensor], names: Names) -> None:
    """Load `state`, whose keys are a system's own, into `model`. Shapes may differ by axes of size 1.

    Raises ValueError for a parameter that is missing, left over, given twice, or of another shape.

    >>> import torch
    >>> model = nn.Linear(2, 1, bias=False)
    >>> load_weights(model, {"conv.weight": torch.tensor([[[3.0], [4.0]]])}, [(r"^conv\\.", "")])
    >>> model.weight.tolist()
    [[3.0, 4.0]]
    """
    check_module("model", model)
    check_kind("state", state, Mapping, "a dict from names to tensors, as a model's state_dict()")
    wanted, found = model.state_dict(), {}
    for theirs, tensor in state.items():
        check_tensor(f"state[{theirs!r}]", tensor)
        name = our_name(theirs, names)
        if name in found:
            raise ValueError(f"state must have one tensor for each parameter, got {theirs!r} as a second {name!r}")
        found[name] = tensor
    missing, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    if missing or extra:
        raise ValueError(f"the weights do not fit: missing {missing or 'none'}, left over {extra or 'none'}")
    for name, tensor in found.items():
        if [n for n in tensor.shape if n > 1] != [n for n in wanted[name].shape if n > 1]:
            raise ValueError(f"{name} must have shape {shape_text(wanted[name])}, got {shape_text(tensor)}")
    model.load_state_dict({name: tensor.reshape(wanted[name].shape) for name, tensor in found.items()})
