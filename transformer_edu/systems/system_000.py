"""System 000: a post-norm encoder-decoder for speech. Frames in, one label after the other out."""

from __future__ import annotations

from torch import Tensor, nn

from ..errors import check_callable, check_count, check_ids, check_like, check_tensor
from ..feedforward import ConvolutionFeedForward
from ..heads import MultiHeadAttention
from ..masks import causal_mask, padding_mask
from ..model import Decoder, DecoderLayer, Embedding, Encoder, EncoderLayer, Transformer
from ..norms import LayerNorm
from ..positions import LearnedPositions, TokenEmbedding

__all__ = ["NAMES_000", "KeepEverySecond", "System000"]

NAMES_000 = (
    (r"^frontend\b", "transformer.source_embedding.tokens"),
    (r"^encoder\.pos_emb\.weight", "transformer.source_embedding.positions.table"),
    (r"^decoder\.pos_emb\.weight", "transformer.target_embedding.positions.table"),
    (r"^decoder\.tgt_emb\b", "transformer.target_embedding.tokens"),
    (r"^linear\b", "transformer.output"),
    (r"^(encoder|decoder)\.embed_sum", r"transformer.\1.embed_sum"),
    (r"^(encoder|decoder)\.layers", r"transformer.\1.layers"),
    (r"multi_head_attn|dec_attn(?<!enc_dec_attn)", "self_attention.sublayer"),
    (r"enc_dec_attn", "cross_attention.sublayer"),
    (r"W_Q\b", "query_projection.linear"),
    (r"W_K\b", "key_projection.linear"),
    (r"W_V\b", "value_projection.linear"),
    (r"W_out\b", "output_projection"),
    (r"poswise_ffn", "feed_forward.sublayer"),
    (r"conv1\b", "up_projection"),
    (r"conv2\b", "down_projection"),
    (r"norm1", "self_attention.norm"),
    (r"(encoder\.layers\.\d+)\.norm2", r"\1.feed_forward.norm"),
    (r"norm2", "cross_attention.norm"),
    (r"norm3", "feed_forward.norm"),
    (r"norm\.weight", "norm.gamma"),
    (r"norm\.bias", "norm.beta"),
)


class KeepEverySecond(nn.Module):
    """A front end that halves the rate: frames 0, 2, 4, ... through one linear layer.

    (batch, frames, d_in) -> (batch, half the frames, rounded up, d_model).
    """

    def __init__(self, *, d_in: int, d_model: int) -> None:
        super().__init__()
        check_count("d_in", d_in)
        check_count("d_model", d_model)
        self.proj = nn.Linear(d_in, d_model)

    def forward(self, features: Tensor) -> Tensor:
        check_tensor("features", features, dims=("batch", "frames", "d_in"))
        if features.shape[-1] != self.proj.in_features:
            raise ValueError(f"features must have d_in ({self.proj.in_features}) columns, got {features.shape[-1]}")
        try:
            return self.proj(features[:, ::2])
        except RuntimeError:
            check_like("features", features, self.proj.weight)
            raise

    def lengths(self, lengths: Tensor) -> Tensor:
        """How many frames are left of so many (batch,)."""
        check_ids("lengths", lengths, dims=("batch",))
        return (lengths + 1) // 2


class System000(nn.Module):
    """The whole system: features (batch, frames, d_in), lengths (batch,), labels (batch, target) -> logits.

    Post-norm, no final norm, embeddings without a scale, labels as they come (the caller shifts them). Its mask
    fills with -1e4, so a query with nothing to attend to averages all values: empty_rows="uniform". The decoder's mask
    is causal and leaves padded labels visible. A length beyond the frames masks nothing.

    Args:
        frontend: from features to (batch, frames, d_model).
        lengths_follow: the original masks with the lengths that it was given, also where its front end has shortened
            the sequence: with lengths in frames of the original rate too little is masked, and the model attends to
            padding. True asks the front end for the new lengths.
        dropout: after embedding and position. attention_dropout: on the weights. feed_forward_dropout: on that
            sub-layer's output, before the residual; there is none on the attention's.
    """

    def __init__(
        self,
        *,
        frontend: nn.Module,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        max_length: int,
        lengths_follow: bool = False,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_callable("frontend", frontend, "frontend(features)")
        check_count("n_layers", n_layers)
        if lengths_follow and not hasattr(frontend, "lengths"):
            raise TypeError(f"frontend must have a method lengths for lengths_follow, got {type(frontend).__name__}")
        self.lengths_follow = lengths_follow

        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(d_model=d_model, n_heads=n_heads, dropout=attention_dropout, empty_rows="uniform")

        def shared(n_norms: int) -> dict:
            return {
                "feed_forward": ConvolutionFeedForward(d_model=d_model, d_ff=d_ff),
                "norms": [LayerNorm(d_model=d_model) for _ in range(n_norms)],
                "dropout": [0.0] * (n_norms - 1) + [feed_forward_dropout],
            }

        def embedding(tokens: nn.Module) -> Embedding:
            positions = LearnedPositions(max_length=max_length, d_model=d_model).requires_grad_(False)  # a fixed table
            return Embedding(tokens=tokens, positions=positions, dropout=dropout)

        def decoder_layer() -> DecoderLayer:
            return DecoderLayer(self_attention=attention(), cross_attention=attention(), **shared(3))

        self.transformer = Transformer(
            encoder=Encoder([EncoderLayer(self_attention=attention(), **shared(2)) for _ in range(n_layers)]),
            decoder=Decoder([decoder_layer() for _ in range(n_layers)]),
            source_embedding=embedding(frontend),
            target_embedding=embedding(TokenEmbedding(vocab_size=vocab_size, d_model=d_model, scale=1.0)),
            output=nn.Linear(d_model, vocab_size),
        )

    def masks(self, n_frames: int, lengths: Tensor, n_labels: int) -> tuple[Tensor, Tensor]:
        """(source mask (batch, 1, 1, frames), target mask (target, target)) for so many frames behind the front end."""
        check_ids("lengths", lengths, dims=("batch",))
        if self.lengths_follow:
            lengths = self.transformer.source_embedding.tokens.lengths(lengths)
        source_mask = padding_mask(lengths.clamp(max=n_frames), n_frames)
        return source_mask, causal_mask(n_labels).to(lengths.device)

    def forward(self, features: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """Logits (batch, target, vocab_size)."""
        check_tensor("features", features, dims=("batch", "frames", "d_in"))
        check_tensor("labels", labels, dims=("batch", "target"))
        embedded = self.transformer.source_embedding(features)  # (batch, frames, d_model)
        source_mask, target_mask = self.masks(embedded.shape[1], lengths, labels.shape[1])
        memory = self.transformer.encoder(embedded, source_mask)
        return self.transformer.decode(labels, memory, target_mask, source_mask)
