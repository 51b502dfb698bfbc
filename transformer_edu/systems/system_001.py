"""System 001: the pre-norm encoder-decoder of the Annotated Transformer's family."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from ..errors import check_choice, check_count, check_list, check_tensor
from ..feedforward import FeedForward
from ..heads import MultiHeadAttention
from ..model import Decoder, DecoderLayer, Embedding, Encoder, EncoderLayer, Transformer
from ..norms import LayerNorm
from ..positions import LearnedPositions, TokenEmbedding

__all__ = ["FAULTS_001", "NAMES_001", "System001"]

# Of its ten faults eight crash. These run on without a word ("whole_table" only where lengths happen to fit).
FAULTS_001 = ("layer_norm_sum", "mask_ignored", "whole_table")
EPS = 1e-6

NAMES_001 = (
    (r"^src_embed\.0\.embed\b", "transformer.source_embedding.tokens"),
    (r"^tgt_embed\.0\.embed\b", "transformer.target_embedding.tokens"),
    (r"^src_embed\.1\.pe", "transformer.source_embedding.positions.table"),
    (r"^tgt_embed\.1\.pe", "transformer.target_embedding.positions.table"),
    (r"^src_embed$", "transformer.source_embedding"),
    (r"^tgt_embed$", "transformer.target_embedding"),
    (r"^generator\.linear\b", "transformer.output.0"),
    (r"^(encoder|decoder)\b(\.(encoder|decoder)_layers)?", r"transformer.\1\2"),
    (r"(encoder|decoder)_layers", "layers"),
    (r"sublayer\.0\.layer_norm", "self_attention.norm"),
    (r"(encoder\.layers\.\d+)\.sublayer\.1\.layer_norm", r"\1.feed_forward.norm"),
    (r"sublayer\.1\.layer_norm", "cross_attention.norm"),
    (r"sublayer\.2\.layer_norm", "feed_forward.norm"),
    (r"layer_norm\b", "final_norm"),
    (r"norm\.alpha", "norm.gamma"),
    (r"self_attn\b", "self_attention.sublayer"),
    (r"src_attn\b", "cross_attention.sublayer"),
    (r"linears\.0", "query_projection.linear"),
    (r"linears\.1", "key_projection.linear"),
    (r"linears\.2", "value_projection.linear"),
    (r"linears\.3", "output_projection"),
    (r"feed_forward(?!\.norm)", "feed_forward.sublayer"),
    (r"fc_1", "up_projection"),
    (r"fc_2", "down_projection"),
)


class SumNorm(LayerNorm):
    """The fault "layer_norm_sum": the sum of a token's numbers is subtracted, where their mean belongs."""

    def forward(self, x: Tensor) -> Tensor:
        spread = x.std(-1, keepdim=True) + self.eps  # (..., 1)
        return self.gamma * (x - x.sum(-1, keepdim=True)) / spread + self.beta


class WholeTable(LearnedPositions):
    """The fault "whole_table": all rows are added, as many as there are, and not the first `length` of them.

    Another length does not broadcast and crashes, but a single token becomes max_length tokens.
    """

    def forward(self, x: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        return x + self.table


class System001(nn.Module):
    """The whole system: source and target ids -> log-probabilities (batch, target, vocab_size).

    Pre-norm with a norm behind each stack, embeddings times sqrt(d_model), separate tables, an unbiased norm with eps
    1e-6 outside the root. Its mask fills with -1e9: empty_rows="uniform".

    Args:
        faults: which of FAULTS_001 to keep; none is the repaired system.
        dropout: after embedding and position. attention_dropout: on the weights. feed_forward_dropout: on the hidden
            units. sublayer_dropout: on each sub-layer's output, before the residual.
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
        faults: Iterable[str] = (),
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        sublayer_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_count("n_layers", n_layers)
        check_list("faults", faults, of="names from FAULTS_001")
        self.faults = frozenset(faults)
        for fault in self.faults:
            check_choice("faults", fault, FAULTS_001)

        def norm() -> LayerNorm:
            kind = SumNorm if "layer_norm_sum" in self.faults else LayerNorm
            return kind(d_model=d_model, eps=EPS, unbiased=True, eps_outside=True)

        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(d_model=d_model, n_heads=n_heads, dropout=attention_dropout, empty_rows="uniform")

        def shared(n_norms: int) -> dict:
            return {
                "feed_forward": FeedForward(d_model=d_model, d_ff=d_ff, dropout=feed_forward_dropout),
                "norms": [norm() for _ in range(n_norms)],
                "placement": "pre",
                "dropout": sublayer_dropout,
            }

        def embedding(vocab_size: int) -> Embedding:
            kind = WholeTable if "whole_table" in self.faults else LearnedPositions
            positions = kind(max_length=max_length, d_model=d_model).requires_grad_(False)  # a fixed table
            tokens = TokenEmbedding(vocab_size=vocab_size, d_model=d_model)
            return Embedding(tokens=tokens, positions=positions, dropout=dropout)

        encoder_layers = [EncoderLayer(self_attention=attention(), **shared(2)) for _ in range(n_layers)]
        decoder_layers = [
            DecoderLayer(self_attention=attention(), cross_attention=attention(), **shared(3)) for _ in range(n_layers)
        ]
        self.transformer = Transformer(
            encoder=Encoder(encoder_layers, final_norm=norm()),
            decoder=Decoder(decoder_layers, final_norm=norm()),
            source_embedding=embedding(source_vocab_size),
            target_embedding=embedding(target_vocab_size),
            output=nn.Sequential(nn.Linear(d_model, target_vocab_size), nn.LogSoftmax(-1)),
        )

    def forward(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, target_mask: Tensor | None = None
    ) -> Tensor:
        """Masks are (batch, 1 or query, key), not 0 = may attend, for all heads; log-probabilities come back."""
        masks = [self._ours(*each) for each in (("source_mask", source_mask), ("target_mask", target_mask))]
        return self.transformer(source, target, *masks)

    def _ours(self, name: str, mask: Tensor | None) -> Tensor | None:
        if mask is not None:
            check_tensor(name, mask, dims=("batch", "query", "key"))
        if mask is None or "mask_ignored" in self.faults:
            return None
        return (mask != 0)[:, None]  # (batch, 1, 1 or query, key)
