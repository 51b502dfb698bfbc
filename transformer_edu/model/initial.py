"""How the weights begin, and weights that stand in two places."""

from __future__ import annotations

import math

from torch import nn

from ..errors import check_choice, check_module, shape_text
from ..positions import LearnedPositions, TokenEmbedding

__all__ = ["initialise", "tie_weights"]

SCHEMES = ("xavier", "gpt2")
WRITERS = ("output_projection", "down_projection")  # the layers that write into the residual


def initialise(model: nn.Module, scheme: str) -> nn.Module:
    """Draw the matrices of `model` anew, from torch's own generator, set biases to 0, and return the model.

    Args:
        model: any model of this course's parts. Norms, and tables of relative positions, keep what they begin with.
        scheme: "xavier": each linear layer (d_out, d_in) uniform with variance 2 / (d_in + d_out), so that neither
            numbers nor gradients grow on their way through it (Glorot and Bengio 2010, section 4.2); embeddings keep
            what they begin with, which their scale decides. "gpt2": linear layers and embeddings normal with standard
            deviation 0.02; what writes into the residual is divided by the root of the number of such writers, so
            that their sum does not grow with depth (Radford et al. 2019, section 2.3).

    >>> import torch
    >>> bool(initialise(nn.Linear(100, 100), "gpt2").weight.std() < 0.03)
    True
    """
    check_module("model", model)
    check_choice("scheme", scheme, SCHEMES)
    linear = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear | nn.Conv1d)}
    embeddings = [m for m in model.modules() if isinstance(m, TokenEmbedding | LearnedPositions)]
    tables = [parameter for embedding in embeddings for parameter in embedding.parameters()]
    shrink = math.sqrt(max(1, sum(name.endswith(WRITERS) for name in linear)))
    for name, module in linear.items():
        if module.bias is not None:
            nn.init.zeros_(module.bias)
        if scheme == "gpt2":
            nn.init.normal_(module.weight, std=0.02 / (shrink if name.endswith(WRITERS) else 1.0))
        elif not any(module.weight is table for table in tables):
            nn.init.xavier_uniform_(module.weight)
    if scheme == "gpt2":
        for table in tables:
            nn.init.normal_(table, std=0.02)
    return model


def tie_weights(output: nn.Linear, embedding: nn.Module) -> None:
    """Let the output layer read with the rows that the embedding writes with: one matrix (vocab_size, d_model).

    A token's logit is then the dot product of the decoder's answer with that token's vector. Vaswani et al. 2017,
    section 3.4; Press and Wolf 2017. Raises ValueError where the shapes differ.

    >>> output, embedding = nn.Linear(4, 10), TokenEmbedding(vocab_size=10, d_model=4)
    >>> tie_weights(output, embedding)
    >>> output.weight is embedding.weight
    True
    """
    for name, module in (("output", output), ("embedding", embedding)):
        check_module(name, module)
        if not isinstance(getattr(module, "weight", None), nn.Parameter):
            raise TypeError(
                f"{name} must have a weight (vocab_size, d_model), got {type(module).__name__} without one: "
                "of an Embedding give its tokens"
            )
    if output.weight.shape != embedding.weight.shape:
        raise ValueError(
            f"output and embedding must have weights of one shape (vocab_size, d_model), "
            f"got {shape_text(output.weight)} and {shape_text(embedding.weight)}"
        )
    output.weight = embedding.weight
