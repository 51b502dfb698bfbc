"""The whole machine against torch's own, part by part, and its costs against torch's counter."""

from types import SimpleNamespace

import pytest
import torch
from golden_model import from_torch
from sizes import BATCH, D_MODEL, HEADS, KEY, QUERY, error_text, numbers, same
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer_edu.feedforward import ConvolutionFeedForward, FeedForward, GatedFeedForward
from transformer_edu.heads import MultiHeadAttention
from transformer_edu.inspection import record_attention
from transformer_edu.masks import causal_mask, combine_masks, padding_mask
from transformer_edu.model import (
    IGNORE,
    Decoder,
    DecoderLayer,
    Embedding,
    Encoder,
    EncoderLayer,
    Transformer,
    TransformerConfig,
    build_stack,
    build_transformer,
    count_flops,
    count_parameters,
    decoder_io,
    decoder_layer,
    initialise,
    parameter_table,
    run_stack,
    shift_right,
    tie_weights,
)
from transformer_edu.norms import LayerNorm, RMSNorm
from transformer_edu.positions import LearnedPositions, SinusoidalPositions, TokenEmbedding

D_FF, N_LAYERS, VOCAB = 11, 2, 13
SIZES = {"d_model": D_MODEL, "nhead": HEADS, "dim_feedforward": D_FF, "dropout": 0.0, "batch_first": True}
STYLES = [(first, activation) for first in (False, True) for activation in ("relu", "gelu")]


def norms(count):
    return [LayerNorm(d_model=D_MODEL) for _ in range(count)]


def attention(**options):
    return MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, **options)


def encoder_layer(placement="post", activation="relu", **options):
    feed_forward = FeedForward(d_model=D_MODEL, d_ff=D_FF, activation=activation)
    return EncoderLayer(
        self_attention=attention(), feed_forward=feed_forward, norms=norms(2), placement=placement, **options
    )


def decoder_part(placement="post", activation="relu", **options):
    feed_forward = FeedForward(d_model=D_MODEL, d_ff=D_FF, activation=activation)
    parts = {"self_attention": attention(), "cross_attention": attention(), "feed_forward": feed_forward}
    return DecoderLayer(**parts, norms=norms(3), placement=placement, **options)


def placement(norm_first):
    return "pre" if norm_first else "post"


def scrambled(module, seed=0):
    """All parameters random, norms and biases too, so that none can be missing."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return module


def adopted(ours, theirs):
    ours.load_state_dict(from_torch(theirs.state_dict()))
    return ours


def same_gradients(ours, theirs):
    wanted = {name: p.grad for name, p in theirs.named_parameters()}
    renamed = from_torch(wanted)
    for name, parameter in ours.named_parameters():
        same(parameter.grad, renamed[name], 1e-4)


X, MEMORY = numbers(BATCH, QUERY, D_MODEL), numbers(BATCH, KEY, D_MODEL, seed=1)
PAD_X = torch.tensor([[False, False, False, True], [False] * QUERY])  # True = masked, as torch has it
PAD_MEMORY = torch.tensor([[False] * KEY, [False, False, False, True, True]])
CAUSAL = causal_mask(QUERY)


# ---------------------------------------------------------------- against torch
@pytest.mark.parametrize(("norm_first", "activation"), STYLES)
def test_an_encoder_layer_with_torchs_weights_gives_its_numbers_and_gradients(norm_first, activation):
    theirs = scrambled(nn.TransformerEncoderLayer(**SIZES, activation=activation, norm_first=norm_first))
    ours = adopted(encoder_layer(placement(norm_first), activation), theirs)
    mask = combine_masks(CAUSAL, ~PAD_X[:, None, None])
    mine, wanted = ours(X, mask), theirs(X, src_mask=~CAUSAL, src_key_padding_mask=PAD_X)
    same(mine, wanted, 1e-4)
    mine.square().sum().backward()
    wanted.square().sum().backward()
    same_gradients(ours, theirs)


@pytest.mark.parametrize(("norm_first", "activation"), STYLES)
def test_a_decoder_layer_with_torchs_weights_gives_its_numbers_and_gradients(norm_first, activation):
    theirs = scrambled(nn.TransformerDecoderLayer(**SIZES, activation=activation, norm_first=norm_first))
    ours = adopted(decoder_part(placement(norm_first), activation), theirs)
    mine = ours(X, MEMORY, CAUSAL, ~PAD_MEMORY[:, None, None])
    wanted = theirs(X, MEMORY, tgt_mask=~CAUSAL, memory_key_padding_mask=PAD_MEMORY)
    same(mine, wanted, 1e-4)
    mine.square().sum().backward()
    wanted.square().sum().backward()
    same_gradients(ours, theirs)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("norm_first", "activation"), STYLES)
def test_the_whole_with_torchs_weights_gives_its_numbers_and_gradients(norm_first, activation):
    counts = {"num_encoder_layers": N_LAYERS, "num_decoder_layers": N_LAYERS + 1}
    theirs = scrambled(nn.Transformer(**SIZES, **counts, activation=activation, norm_first=norm_first))
    style = placement(norm_first), activation
    encoder = Encoder([encoder_layer(*style) for _ in range(N_LAYERS)], final_norm=norms(1)[0])
    decoder = Decoder([decoder_part(*style) for _ in range(N_LAYERS + 1)], final_norm=norms(1)[0])
    ours = adopted(Transformer(encoder=encoder, decoder=decoder), theirs)
    mine = ours(MEMORY, X, ~PAD_MEMORY[:, None, None], CAUSAL)
    wanted = theirs(MEMORY, X, tgt_mask=~CAUSAL, src_key_padding_mask=PAD_MEMORY, memory_key_padding_mask=PAD_MEMORY)
    same(mine, wanted, 1e-4)
    mine.square().sum().backward()
    wanted.square().sum().backward()
    same_gradients(ours, theirs)


# ---------------------------------------------------------------- properties
def whole(**options):
    torch.manual_seed(0)
    model = Transformer(
        encoder=Encoder([encoder_layer("pre") for _ in range(N_LAYERS)], final_norm=norms(1)[0]),
        decoder=Decoder([decoder_part("pre") for _ in range(N_LAYERS)], final_norm=norms(1)[0]),
        source_embedding=Embedding(
            tokens=TokenEmbedding(vocab_size=VOCAB, d_model=D_MODEL), positions=SinusoidalPositions(d_model=D_MODEL)
        ),
        target_embedding=Embedding(
            tokens=TokenEmbedding(vocab_size=VOCAB, d_model=D_MODEL),
            positions=LearnedPositions(max_length=20, d_model=D_MODEL),
        ),
        output=nn.Linear(D_MODEL, VOCAB),
    )
    return model.eval()


SOURCE = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]])
TARGET = torch.tensor([[1, 7, 8, 2], [1, 3, 0, 0]])
SOURCE_MASK = padding_mask(torch.tensor([5, 3]), 5)


def test_a_future_token_never_moves_an_earlier_answer():
    model = whole()
    before = model(SOURCE, TARGET, SOURCE_MASK, CAUSAL)
    for position in range(1, QUERY):
        changed = TARGET.clone()
        changed[:, position] = 12
        after = model(SOURCE, changed, SOURCE_MASK, CAUSAL)
        same(after[:, :position], before[:, :position], 1e-6)
        assert (after[:, position] - before[:, position]).abs().max() > 1e-3


def test_what_stands_in_padding_changes_nothing():
    model = whole()
    other = SOURCE.clone()
    other[1, 3:] = torch.tensor([7, 8])
    same(model(other, TARGET, SOURCE_MASK, CAUSAL), model(SOURCE, TARGET, SOURCE_MASK, CAUSAL), 1e-6)
    assert (model(other, TARGET) - model(SOURCE, TARGET)).abs().max() > 1e-3


def test_encode_and_decode_are_the_two_halves_of_forward():
    model = whole()
    memory = model.encode(SOURCE, SOURCE_MASK)
    assert memory.shape == (2, 5, D_MODEL)
    same(model.decode(TARGET, memory, CAUSAL, SOURCE_MASK), model(SOURCE, TARGET, SOURCE_MASK, CAUSAL), 0)
    nothing = torch.zeros(1, 1, 1, 5, dtype=torch.bool)
    other = model(SOURCE, TARGET, SOURCE_MASK, CAUSAL, nothing)
    same(other, model.decode(TARGET, memory, CAUSAL, nothing), 0)


def test_the_weights_of_every_attention_can_be_recorded():
    model = whole()
    with record_attention(model) as weights:
        model(SOURCE, TARGET, SOURCE_MASK, CAUSAL)
    shapes = {name: tuple(calls[0].shape) for name, calls in weights.items()}
    assert shapes["encoder.layers.0.self_attention.sublayer"] == (2, HEADS, 5, 5)
    assert shapes["decoder.layers.1.self_attention.sublayer"] == (2, HEADS, QUERY, QUERY)
    assert shapes["decoder.layers.1.cross_attention.sublayer"] == (2, HEADS, QUERY, 5)
    assert len(shapes) == 3 * N_LAYERS


def test_dropout_acts_in_training_mode_alone():
    layer = encoder_layer(dropout=0.5)
    assert not torch.equal(layer(X), layer(X))
    layer.eval()
    same(layer(X), layer(X), 0)
    second = encoder_layer(dropout=[0.0, 1.0])
    same(second(X), second.feed_forward.norm(second.self_attention(X)), 1e-6)
    embedding = Embedding(tokens=TokenEmbedding(vocab_size=VOCAB, d_model=D_MODEL), dropout=0.5)
    assert (embedding(TARGET) == 0).float().mean() > 0.3
    assert (embedding.eval()(TARGET) == 0).sum() == 0


def test_an_embedding_counts_positions_from_its_offset():
    embedding = whole().target_embedding
    same(embedding(TARGET[:, 2:], offset=2), embedding(TARGET)[:, 2:], 1e-6)
    same(embedding(TARGET[:, 2:], positions=torch.tensor([[2, 3]])), embedding(TARGET)[:, 2:], 1e-6)


# ---------------------------------------------------------------- the bare functions
def functions(layer):
    def attend(residual):
        return lambda query, key, value, mask: residual.sublayer(query, key, value, mask)[0]

    return SimpleNamespace(
        self_attn=attend(layer.self_attention),
        cross_attn=attend(layer.cross_attention),
        ffn=layer.feed_forward.sublayer,
        norm1=layer.self_attention.norm,
        norm2=layer.cross_attention.norm,
        norm3=layer.feed_forward.norm,
    )


@pytest.mark.parametrize("pre_norm", [False, True])
def test_the_bare_decoder_layer_is_the_module(pre_norm):
    layer = scrambled(decoder_part(placement(pre_norm)))
    memory_mask = ~PAD_MEMORY[:, None, None]
    same(
        decoder_layer(X, MEMORY, functions(layer), CAUSAL, memory_mask, pre_norm),
        layer(X, MEMORY, CAUSAL, memory_mask),
        1e-5,
    )


def test_a_stack_runs_its_layers_in_order_and_its_norm_only_behind_pre_norm():
    layers = [lambda x, mask: x * 2, lambda x, mask: x + mask]
    same(run_stack(torch.tensor(3.0), layers, 1, lambda x: x * 100, False), torch.tensor(7.0), 0)
    same(run_stack(torch.tensor(3.0), layers, 1, lambda x: x * 100, True), torch.tensor(700.0), 0)


def test_a_built_stack_has_layers_of_its_own():
    stack = build_stack(lambda: nn.Linear(3, 3), 4)
    assert len(list(stack.parameters())) == 8
    x = numbers(2, 3)
    step = x
    for layer in stack:
        step = layer(step)
    same(stack(x), step, 0)
    one = nn.Linear(3, 3)
    assert "one of them twice" in error_text(ValueError, lambda: build_stack(lambda: one, 2))
    assert "as [layer] * n" in error_text(ValueError, lambda: Encoder([encoder_layer()] * 2))


# ---------------------------------------------------------------- what the decoder is given
def test_input_and_labels_are_the_same_tokens_one_place_apart():
    sequences = [[5, 6, 7], [], [8]]
    target_in, target_out, lengths = decoder_io(sequences, 1, 2, 0)
    assert target_in.tolist() == [[1, 5, 6, 7], [1, 0, 0, 0], [1, 8, 0, 0]]
    assert target_out.tolist() == [[5, 6, 7, 2], [2, IGNORE, IGNORE, IGNORE], [8, 2, IGNORE, IGNORE]]
    assert lengths.tolist() == [4, 1, 2]
    assert {t.dtype for t in (target_in, target_out, lengths)} == {torch.int64}
    for row, length in enumerate(lengths):
        same(target_in[row, 1:length], target_out[row, : length - 1], 0)
    shifted = shift_right(target_out, 1, 0)
    for row, length in enumerate(lengths):
        same(shifted[row, :length], target_in[row, :length], 0)


def test_shift_right_of_no_labels_is_no_input():
    assert shift_right(torch.zeros(2, 0, dtype=torch.int64), 1, 0).shape == (2, 0)


def test_shift_right_leaves_the_labels_alone():
    labels = torch.tensor([[4, 5, IGNORE]])
    assert shift_right(labels, 1, 0).tolist() == [[1, 4, 5]]
    assert labels.tolist() == [[4, 5, IGNORE]]
    assert shift_right(torch.tensor([[4, IGNORE, IGNORE]]), 1, 9).tolist() == [[1, 4, 9]]


# ---------------------------------------------------------------- parameters
def test_tied_weights_are_one_parameter_with_the_gradient_of_both():
    output, embedding = nn.Linear(D_MODEL, VOCAB), TokenEmbedding(vocab_size=VOCAB, d_model=D_MODEL)
    model = nn.ModuleDict({"embedding": embedding, "output": output})
    apart = count_parameters(model)
    tie_weights(output, embedding)
    assert count_parameters(model) == apart - VOCAB * D_MODEL
    output(embedding(TARGET)).square().sum().backward()
    assert output.weight.grad is embedding.weight.grad
    assert (output.weight.grad.abs().sum(1) > 0).all()  # rows of tokens that never came in, too
    text = error_text(ValueError, lambda: tie_weights(nn.Linear(3, 4), embedding))
    assert "(4, 3)" in text and f"({VOCAB}, {D_MODEL})" in text


def test_the_parameter_table_agrees_with_torch():
    model = whole()
    rows = parameter_table(model)
    assert [(row.name, row.shape) for row in rows] == [(n, tuple(p.shape)) for n, p in model.named_parameters()]
    assert count_parameters(model) == sum(p.numel() for p in model.parameters())
    tie_weights(model.output, model.target_embedding.tokens)
    shared = [row for row in parameter_table(model) if row.shared_with]
    assert [(row.name, row.count, row.shared_with) for row in shared] == [
        ("output.weight", 0, "target_embedding.tokens.weight")
    ]
    assert count_parameters(model) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("scheme", ["xavier", "gpt2"])
def test_an_initialised_model_has_the_spread_that_its_scheme_says(scheme):
    torch.manual_seed(0)
    layer = EncoderLayer(
        self_attention=MultiHeadAttention(d_model=60, n_heads=3),
        feed_forward=FeedForward(d_model=60, d_ff=200),
        norms=[LayerNorm(d_model=60), RMSNorm(d_model=60)],
    )
    assert initialise(layer, scheme) is layer
    up, down = (getattr(layer.feed_forward.sublayer, f"{way}_projection") for way in ("up", "down"))
    wanted = {"xavier": [(2 / 260) ** 0.5] * 2, "gpt2": [0.02, 0.02 / 2**0.5]}[scheme]  # two sub-layers write
    assert [up.weight.std().item(), down.weight.std().item()] == pytest.approx(wanted, rel=0.05)
    assert not any(m.bias.any() for m in layer.modules() if isinstance(m, nn.Linear))
    assert all((layer.get_parameter(f"{name}.norm.gamma") == 1).all() for name in ("self_attention", "feed_forward"))


def test_a_tied_embedding_keeps_its_spread_under_xavier():
    model = whole()
    tie_weights(model.output, model.target_embedding.tokens)
    before = model.output.weight.detach().clone()
    same(initialise(model, "xavier").output.weight, before, 0)
    assert initialise(model, "gpt2").output.weight.std() < 0.03
    assert "must be one of" in error_text(ValueError, lambda: initialise(model, "he"))


# ---------------------------------------------------------------- operations
@pytest.mark.parametrize("make", [FeedForward, ConvolutionFeedForward, GatedFeedForward])
def test_operations_agree_with_torchs_counter(make):
    model = whole()
    feed_forward = make(d_model=D_MODEL, d_ff=D_FF)
    model.encoder.layers[0].feed_forward.sublayer = feed_forward
    with record_attention(model), FlopCounterMode(display=False) as counter:  # it knows no fused kernel of the CPU
        model(SOURCE, TARGET, SOURCE_MASK, CAUSAL)
    flops = count_flops(model, SOURCE, TARGET, SOURCE_MASK, CAUSAL)
    assert sum(flops.values()) == counter.get_total_flops()
    assert flops["output"] == 2 * TARGET.numel() * D_MODEL * VOCAB
    cross = "decoder.layers.0.cross_attention.sublayer"
    assert flops[cross] == 2 * 2 * HEADS * QUERY * 5 * 2 * (D_MODEL // HEADS)


def test_counting_leaves_nothing_behind_and_needs_no_memory():
    model = whole().to("meta")
    ids = torch.empty(64, 500, dtype=torch.long, device="meta")
    assert sum(count_flops(model, ids, ids[:, :20]).values()) > 1e9
    assert not any(module._forward_hooks for module in model.modules())


# ---------------------------------------------------------------- errors
def test_norms_must_be_as_many_as_sub_layers_and_different():
    parts = {"self_attention": attention(), "feed_forward": FeedForward(d_model=D_MODEL, d_ff=D_FF)}
    text = error_text(ValueError, lambda: EncoderLayer(**parts, norms=norms(3)))
    assert "one norm for each of the 2 sub-layers, got 3" in text
    one = norms(1)[0]
    assert "got one of them twice" in error_text(ValueError, lambda: EncoderLayer(**parts, norms=[one, one]))
    assert "must be one of" in error_text(ValueError, lambda: EncoderLayer(**parts, norms=norms(2), placement="mid"))
    text = error_text(ValueError, lambda: encoder_layer(dropout=[0.1]))
    assert "dropout must be one number, or one for each of the 2 sub-layers, got 1" in text


PARTS = {"self_attention": attention(), "feed_forward": FeedForward(d_model=D_MODEL, d_ff=D_FF)}
LAYERS = [lambda x, mask: x]


def configured(**options):
    sizes = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB, "d_model": D_MODEL, "n_heads": HEADS}
    return build_transformer(TransformerConfig(**sizes | options))


def bare(x=X, memory=MEMORY, parts=None, pre_norm=True):
    return decoder_layer(x, memory, parts or functions(decoder_part()), None, None, pre_norm)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: build_transformer({"d_model": 8}), TypeError, "config must be a TransformerConfig, got dict"),
        (
            lambda: build_transformer(TransformerConfig),
            TypeError,
            "got the class TransformerConfig: TransformerConfig(",
        ),
        (lambda: configured(source_vocab_size=0), ValueError, "source_vocab_size must be at least 1"),
        (lambda: configured(position="shaw", n_heads=0), ValueError, "n_heads must be at least 1"),
        (lambda: configured(feed_forward=["relu"]), ValueError, "feed_forward must be one of 'relu'"),
        (lambda: configured(initial="gpt-2"), ValueError, "initial must be one of 'xavier', 'gpt2', got 'gpt-2'"),
        (lambda: configured(tie_weights="no"), TypeError, "tie_weights must be True or False, got str ('no')"),
        (lambda: configured(final_norm="no"), TypeError, "final_norm must be True or False"),
        (lambda: encoder_layer(dropout=torch.tensor(0.1)), TypeError, "dropout must be a list of numbers, or one"),
        (lambda: encoder_layer()(X.double()), ValueError, "x must be torch.float32 on cpu, as the layer's weights"),
        (
            lambda: EncoderLayer(**PARTS | {"self_attention": MultiHeadAttention}, norms=norms(2)),
            TypeError,
            "self_attention must be a function, self_attention(x), got the class MultiHeadAttention",
        ),
        (lambda: EncoderLayer(**PARTS, norms=[LayerNorm, RMSNorm]), TypeError, "norms[0] must be a function"),
        (lambda: EncoderLayer(**PARTS, norms=norms(1)[0]), TypeError, "norms must be a list of norms, got LayerNorm"),
        (lambda: DecoderLayer(**PARTS, cross_attention=None, norms=norms(3)), TypeError, "cross_attention must be"),
        (lambda: bare(pre_norm="post"), TypeError, "pre_norm must be True or False, got str ('post')"),
        (lambda: bare(parts=SimpleNamespace(self_attn=attention())), TypeError, "parts.cross_attn must be a function"),
        (lambda: bare(x=X[0]), ValueError, "x must have 3 axes"),
        (lambda: bare(memory=None), TypeError, "memory must be a torch.Tensor"),
        (lambda: run_stack(X, LAYERS, None, LayerNorm, True), TypeError, "final_norm must be a function"),
        (lambda: run_stack(X, LAYERS, None, None, "post"), TypeError, "pre_norm must be True or False"),
        (lambda: run_stack(X, LAYERS[0], None, None, False), TypeError, "layers must be a list of layers"),
        (lambda: run_stack(X, [nn.ReLU], None, None, False), TypeError, "each layer must be a function"),
        (lambda: Encoder(encoder_layer()), TypeError, "layers must be a list of layers, got EncoderLayer"),
        (lambda: Encoder([None]), TypeError, "layers[0] must be a torch.nn.Module, got NoneType"),
        (lambda: Encoder([encoder_layer()], final_norm=LayerNorm), TypeError, "final_norm must be a function"),
        (lambda: Decoder([decoder_part()], final_norm=True), TypeError, "final_norm must be a function"),
        (lambda: build_stack(nn.Linear(1, 1), 2), TypeError, "makes a new layer at each call, got Linear"),
        (lambda: Embedding(tokens=TokenEmbedding), TypeError, "tokens must be a function"),
        (lambda: Embedding(tokens=nn.Identity(), positions="sinusoid"), TypeError, "positions must be a function"),
        (lambda: Transformer(encoder=Encoder, decoder=nn.Identity()), TypeError, "encoder must be a function"),
        (lambda: Transformer(encoder=nn.Identity(), decoder=None), TypeError, "decoder must be a function"),
        (lambda: Transformer(encoder=nn.Identity(), decoder=nn.Identity(), output=13), TypeError, "output must be"),
        (lambda: initialise("gpt2", nn.Linear(1, 1)), TypeError, "model must be a torch.nn.Module, got str ('gpt2')"),
        (lambda: tie_weights(nn.Linear(2, 3), Embedding(tokens=nn.Identity())), TypeError, "give its tokens"),
        (lambda: tie_weights(torch.zeros(3, 2), nn.Linear(2, 3)), TypeError, "output must be a torch.nn.Module"),
        (lambda: count_parameters(nn.Linear(1, 1).state_dict()), TypeError, "model must be a torch.nn.Module"),
        (lambda: count_flops(nn.Linear, X), TypeError, "model must be a torch.nn.Module, got the class Linear"),
        (lambda: decoder_io([5, 6], 1, 2, 0), ValueError, "sequences[0] must have 1 axis (length), got 0 axes"),
        (lambda: decoder_io([[5, 6.5]], 1, 2, 0), TypeError, "sequences[0] must hold whole numbers"),
        (lambda: decoder_io([["a"]], 1, 2, 0), TypeError, "which are whole numbers, got ['a']"),
        (lambda: decoder_io([[[5, 6]]], 1, 2, 0), ValueError, "sequences[0] must have 1 axis (length)"),
        (lambda: decoder_io("ab", 1, 2, 0), TypeError, "sequences must be a list of lists of ids"),
        (lambda: decoder_io([[5]], 1, 2, float("inf")), TypeError, "pad_id must be an int"),
        (lambda: decoder_io([[5]], -1, 2, 0), ValueError, "start_id must be at least 0"),
        (lambda: decoder_io([[5]], 1, 2, 0, None), TypeError, "ignore must be an int"),
        (lambda: shift_right(torch.ones(1, 2).long(), 1.0, 0), TypeError, "start_id must be an int"),
        (lambda: shift_right(torch.ones(1, 2).long(), 1, 0, "x"), TypeError, "ignore must be an int"),
        (lambda: decoder_io([], 1, 2, 0), ValueError, "at least one sequence"),
        (lambda: shift_right(torch.tensor([1, 2]), 1, 0), ValueError, "target_out"),
        (lambda: shift_right(torch.ones(1, 2), 1, 0), TypeError, ".long() makes them"),
        (lambda: Encoder([]), ValueError, "at least one layer"),
        (lambda: build_stack(lambda: nn.Linear(1, 1), 0), ValueError, "n must be"),
        (lambda: encoder_layer()(numbers(3, D_MODEL)), ValueError, "x must have"),
        (lambda: decoder_part()(X, numbers(3, D_MODEL)), ValueError, "memory must have"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence(call, kind, text):
    assert text in error_text(kind, call)
