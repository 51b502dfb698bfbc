"""System 002: post-norm, with one small projection that serves all heads."""

from __future__ import annotations

import math

from torch import Tensor, nn

from ..errors import check_count, check_ids, check_int, check_share
from ..feedforward import FeedForward
from ..heads import MultiHeadAttention
from ..masks import causal_mask, padding_mask_from_ids
from ..model import Decoder, DecoderLayer, Embedding, Encoder, EncoderLayer, Transformer
from ..norms import LayerNorm
from ..positions import LearnedPositions, TokenEmbedding

__all__ = ["NAMES_002", "System002"]

NAMES_002 = (
    (r"^encoder\.(embed_sum|word_embedding|position_embedding)", r"transformer.source_embedding.\1"),
    (r"^decoder\.(embed_sum|word_embedding|position_embedding)", r"transformer.target_embedding.\1"),
    (r"word_embedding", "tokens"),
    (r"position_embedding\.weight", "positions.table"),
    (r"\.embed_sum$", ""),
    (r"^decoder\.fc_out", "transformer.output"),
    (r"^(encoder|decoder)\.layers", r"transformer.\1.layers"),
    (r"\.transformer_block$", ""),
    (r"transformer_block\.attention", "cross_attention.sublayer"),
    (r"(\d)\.attention", r"\1.self_attention.sublayer"),
    (r"transformer_block\.norm1", "cross_attention.norm.0"),
    (r"(\d)\.norm1?\b(?!\.0)", r"\1.self_attention.norm.0"),
    (r"(transformer_block\.|(?<=\d)\.)norm2", r".feed_forward.norm.0"),
    (r"(transformer_block\.|(?<=\d)\.)feed_forward(?!\.norm)", r".feed_forward.sublayer"),
    (r"\.\.", "."),
    (r"sublayer\.0\b", "sublayer.up_projection"),
    (r"sublayer\.2\b", "sublayer.down_projection"),
    (r"queries\b", "query_projection.linear"),
    (r"keys\b", "key_projection.linear"),
    (r"values\b", "value_projection.linear"),
    (r"fc_out\b", "output_projection"),
    (r"norm\.0\.weight", "norm.0.gamma"),
    (r"norm\.0\.bias", "norm.0.beta"),
)


class System002(nn.Module):
    """The whole system: source and target ids -> logits (batch, target, vocab_size).

    Tokens are split into heads before they are projected, so one (d_k, d_k) matrix without bias serves all heads.
    Post-norm, learned positions, embeddings without a scale. Its mask fills with -1e20: empty_rows="uniform". Dropout
    stands behind each norm, on what goes on beside the next sub-layer.

    Args:
        correct_scale: divide by sqrt(d_k); the original divides by sqrt(d_model), which flattens the weights.
        mask_target_padding: hide padded target keys too; the original's target mask is causal alone.
        dropout: behind embedding and position, and behind each norm.
    """

    def __init__(
        self,
        *,
        source_vocab_size: int,
        target_vocab_size: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        max_length: int,
        source_pad_id: int = 0,
        target_pad_id: int = 0,
        correct_scale: bool = False,
        mask_target_padding: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_count("d_model", d_model)
        check_count("n_layers", n_layers)
        check_share("dropout", dropout, of="the numbers")
        check_int("source_pad_id", source_pad_id)
        check_int("target_pad_id", target_pad_id)
        self.source_pad_id, self.target_pad_id = source_pad_id, target_pad_id
        self.mask_target_padding = mask_target_padding
        scale = None if correct_scale else 1 / math.sqrt(d_model)

        def attention() -> MultiHeadAttention:
            sizes = {"d_model": d_model, "n_heads": n_heads}
            options = {"bias": False, "output_bias": True, "shared_projections": True, "empty_rows": "uniform"}
            return MultiHeadAttention(**sizes, **options, scale=scale)

        def shared(n_norms: int) -> dict:
            return {
                "feed_forward": FeedForward(d_model=d_model, d_ff=d_ff),
                "norms": [nn.Sequential(LayerNorm(d_model=d_model), nn.Dropout(dropout)) for _ in range(n_norms)],
            }

        def embedding(vocab_size: int) -> Embedding:
            positions = LearnedPositions(max_length=max_length, d_model=d_model)
            tokens = TokenEmbedding(vocab_size=vocab_size, d_model=d_model, scale=1.0)
            return Embedding(tokens=tokens, positions=positions, dropout=dropout)

        def decoder_layer() -> DecoderLayer:
            return DecoderLayer(self_attention=attention(), cross_attention=attention(), **shared(3))

        self.transformer = Transformer(
            encoder=Encoder([EncoderLayer(self_attention=attention(), **shared(2)) for _ in range(n_layers)]),
            decoder=Decoder([decoder_layer() for _ in range(n_layers)]),
            source_embedding=embedding(source_vocab_size),
            target_embedding=embedding(target_vocab_size),
            output=nn.Linear(d_model, target_vocab_size),
        )

    def masks(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """(source mask (batch, 1, 1, source), target mask (batch or 1, 1, target, target))."""
        check_ids("source", source, dims=("batch", "source"))
        check_ids("target", target, dims=("batch", "target"))
        source_mask = padding_mask_from_ids(source, self.source_pad_id)
        causal = causal_mask(target.shape[1]).to(target.device)[None, None]
        if self.mask_target_padding:
            return source_mask, causal & padding_mask_from_ids(target, self.target_pad_id)
        return source_mask, causal

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.transformer(source, target, *self.masks(source, target))
