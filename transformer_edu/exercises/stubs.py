"""What a reader starts from: every exercise as it stands in its lesson, in the order of the lessons."""


def mix(weights, values):
    """Row i of the result is the average of all rows of values, weighted by row i of weights.

    weights: (query, key), each row sums to 1; values: (key, d_v). Returns (query, d_v).
    """
    raise NotImplementedError


def padding_mask(lengths, max_length):
    """True at the real tokens of each sequence. Shape (batch, 1, 1, key), dtype bool.

    lengths: (batch,), how many real tokens each sequence has, from 0 to max_length.
    max_length: the width that the batch is padded to.
    """
    raise NotImplementedError


def causal_mask(length):
    """True where query i may look at key j: itself and what came before it. Shape (length, length), dtype bool."""
    raise NotImplementedError


def decoder_mask(lengths, max_length):
    """True where a key is real and not in the query's future. Shape (batch, 1, query, key), dtype bool.

    lengths: (batch,), how many real tokens each sequence has.
    max_length: the width that the batch is padded to; there are as many queries as keys.
    """
    raise NotImplementedError


def cross_mask(source_lengths, target_length, max_source):
    """True where a target position may look at a source position. Broadcasts to (batch, 1, query, key), dtype bool.

    source_lengths: (batch,), how many real tokens each source has.
    target_length: the number of queries. max_source: the number of keys, padding included.
    """
    raise NotImplementedError


def softmax(x, dim):
    """exp(x) / sum of exp(x) along the axis dim, without overflow. Same shape as x."""
    raise NotImplementedError


def scaled_dot_product_attention(query, key, value, mask=None):
    """Returns (output, weights).

    query: (batch, heads, query, d_k), key: (batch, heads, key, d_k), value: (batch, heads, key, d_v).
    mask: bool, True = may attend, broadcasts to (batch, heads, query, key); None = everything allowed.
    output: (batch, heads, query, d_v); weights: (batch, heads, query, key), each row sums to 1. A query with no key to
    attend to has weights 0 and output 0, with finite gradients. Works in float16 too.
    """
    raise NotImplementedError


def split_heads(x, n_heads):
    """(batch, length, d_model) -> (batch, heads, length, d_k): head h gets columns h * d_k to (h + 1) * d_k.

    Raises an error (ValueError, RuntimeError or AssertionError) if n_heads does not divide d_model.
    """
    raise NotImplementedError


def merge_heads(x):
    """(batch, heads, length, d_v) -> (batch, length, heads * d_v), the heads side by side in their order."""
    raise NotImplementedError


def multi_head_attention(x_query, x_memory, w, n_heads, mask=None):
    """Returns (output, weights).

    x_query: (batch, query, d_model), the tokens that ask; x_memory: (batch, key, d_model), the tokens that are asked.
    w: dict of four matrices (d_model, d_model): "q", "k", "v" and "o", applied as x @ w["q"].
    mask: bool, True = may attend, broadcasts to (batch, heads, query, key).
    output: (batch, query, d_model); weights: (batch, heads, query, key).
    """
    raise NotImplementedError


def feed_forward(x, w1, b1, w2, b2):
    """max(0, x w1 + b1) w2 + b2, for every token by itself: (..., d_model) -> (..., d_model).

    w1: (d_model, d_ff), b1: (d_ff,), w2: (d_ff, d_model), b2: (d_model,). x itself is not changed.
    """
    raise NotImplementedError


def swiglu(x, w_gate, w_up, w_down):
    """(silu(x w_gate) * (x w_up)) w_down, for every token by itself: (..., d_model) -> (..., d_model).

    w_gate, w_up: (d_model, d_ff), w_down: (d_ff, d_model).
    """
    raise NotImplementedError


def layer_norm(x, gamma, beta, eps=1e-5):
    """(x - mean) / sqrt(variance + eps) * gamma + beta, over the last axis. Same shape and dtype as x.

    x: (..., d_model); gamma, beta: (d_model,). The variance divides by d_model; eps stands under the root. Mean and
    variance are computed in float32 at least, so that float16 cannot overflow. A token of equal numbers becomes beta.
    """
    raise NotImplementedError


def rms_norm(x, gamma, eps=1e-6):
    """x / sqrt(mean of squares + eps) * gamma, over the last axis. Same shape and dtype as x.

    x: (..., d_model); gamma: (d_model,). The squares are taken in float32 at least, so that float16 neither overflows
    nor loses small numbers.
    """
    raise NotImplementedError


def residual_block(x, f, norm, mode):
    """mode "pre": x + f(norm(x)). mode "post": norm(x + f(x)). Same shape as x.

    x: (..., d_model); f and norm: functions from (..., d_model) to (..., d_model).
    """
    raise NotImplementedError


def sinusoidal_positions(length, d_model):
    """The table of positions 0 to length - 1, float32, shape (length, d_model).

    Column 2i is sin(p / 10000^(2i / d_model)), column 2i + 1 the cosine of the same angle. An odd d_model ends with a
    sine, or is refused with a ValueError.
    """
    raise NotImplementedError


def add_positions(x, table):
    """x (batch, length, d_model) with row p of the table added to token p of every sequence; x itself is not changed.

    table: (max_length, d_model). Raises an error if there are more tokens than rows.
    """
    raise NotImplementedError


def embed_tokens(tokens, weight):
    """One row of weight for each token, times sqrt(d_model): (batch, length) -> (batch, length, d_model).

    weight: (vocab_size, d_model).
    """
    raise NotImplementedError


def position_ids(mask):
    """The position of each token within its own sequence: (batch, length), dtype int64, no id below 0.

    mask: (batch, length), bool, True = real token; the padding may stand on the left or on the right.
    """
    raise NotImplementedError


def alibi_slopes(n):
    """The slope of each of n heads, float (heads,): 2^(-8/n), 2^(-16/n), ... where n is a power of two.

    Otherwise the slopes of the power of two below n, followed by the 1st, 3rd, 5th, ... of those of the power of two
    above n, until there are n: not sorted.
    """
    raise NotImplementedError


def alibi_bias(n_heads, n_queries, n_keys):
    """-slope * |query place - key place|, float (heads, query, key).

    The queries are the last n_queries of the keys' places.
    """
    raise NotImplementedError


def t5_bucket(rel, bidirectional, num_buckets=32, max_distance=128):
    """The bucket of each distance, long, shape of rel. rel: key place - query place, long, any shape.

    bidirectional: half of num_buckets for the past and 0, the other half for the future. Otherwise all of them for the
    past, and the future shares bucket 0 with the query itself. A direction that has n buckets follows the formula
    above, with m = max_distance.
    """
    raise NotImplementedError


def shaw_index(n_queries, n_keys, max_distance):
    """clip(key place - query place, -m, m) + m with m = max_distance: long (query, key), from 0 to 2m.

    The queries are the last n_queries of the keys' places.
    """
    raise NotImplementedError


def relative_table(length, d_model):
    """A sinusoid for each distance: float (2T - 1, d_model) with T = length. Row r is that of distance T - 1 - r.

    Column 2i holds sin(distance / 10000^(2i / d_model)), column 2i + 1 the cosine of the same angle. d_model is even.
    """
    raise NotImplementedError


def relative_shift(x):
    """From a column for each distance to one for each key: (batch, heads, T, 2T - 1) -> (batch, heads, T, T).

    The columns of x run over the distances query - key = T - 1, ..., 0, ..., -(T - 1). So in each head
    out[i, j] = x[i, T - 1 - i + j].
    """
    raise NotImplementedError


def relative_scores(q, k, p, u, v):
    """((q + u) k^T + shift((q + v) p^T)) / sqrt(d): the scaled scores, (batch, heads, T, T).

    q, k: (batch, heads, T, d). p: (heads, 2T - 1, d), the projected table of the distances T - 1, ..., -(T - 1).
    u, v: (heads, d).
    """
    raise NotImplementedError


def rope(x, positions=None, base=10000.0):
    """Turn the pairs of columns of each token by its place. x: (batch, heads, T, D), D even; same shape back.

    positions: (T,), whole numbers, 0, 1, 2, ... unless given. Pair i is turned by position * base^(-2i / D).
    """
    raise NotImplementedError


def decoder_io(sequences, start_id, stop_id, pad_id, ignore=-100):
    """Target sentences as a padded batch: (target_in, target_out, lengths), all int64.

    sequences: lists of ids, without start and stop.
    target_in (batch, length): start_id, then the sentence, then pad_id to the end of the row (a stop_id left there
        does no harm).
    target_out (batch, length): the sentence, then stop_id, then ignore to the end of the row.
    lengths (batch,): how many places of each row are not padding.
    """
    raise NotImplementedError


def shift_right(labels, start_id, pad_id, ignore=-100):
    """The decoder's input that belongs to labels (batch, length): start_id, then all labels but the last.

    Where the shift brings ignore to a place, pad_id stands there instead. The labels stay as they are.
    """
    raise NotImplementedError


def decoder_layer(x, memory, parts, tgt_mask, mem_mask, pre_norm):
    """One decoder layer: (batch, target, d_model), same shape as x.

    x: (batch, target, d_model); memory: (batch, source, d_model), already normed by the encoder.
    parts has self_attn(query, key, value, mask) and cross_attn(query, key, value, mask), which return their output
    alone, ffn(x), and the three norms norm1, norm2 and norm3, in the order of the sub-layers.
    tgt_mask, mem_mask: for the first and the second attention. pre_norm: True or False.
    """
    raise NotImplementedError


def build_stack(make_layer, n):
    """A torch.nn.Module with n layers whose parameters are their own; forward(x) applies them in turn.

    make_layer: a function without arguments; each call makes a new layer, which is called as layer(x).
    """
    raise NotImplementedError


def run_stack(x, layers, mask, final_norm, pre_norm):
    """x (batch, length, d_model) through every layer(x, mask) in turn; same shape.

    final_norm: a function (batch, length, d_model) -> same shape, for the end of a pre-norm stack and of no other.
    """
    raise NotImplementedError


def sequence_loss(logits, labels, ignore=-100):
    """Mean of -log p(label) over all labels of the batch that are not `ignore`. A tensor without axes.

    logits: (batch, length, vocab_size), before any softmax; labels: ids (batch, length), already the tokens that must
    come out at each place, so nothing is to be moved here.
    """
    raise NotImplementedError


def joined_loss(means, counts):
    """Mean loss per token of all batches together.

    means: the mean loss per token of each batch, a list of numbers; counts: how many tokens each batch has.
    """
    raise NotImplementedError


def perplexity(means, counts):
    """exp of the mean loss per token of all batches together; means and counts as in joined_loss, in nats."""
    raise NotImplementedError


def noam_lr(step, d_model, warmup):
    """The learning rate of a step, a plain number. Steps count from 1; step 0 gets the rate of step 1."""
    raise NotImplementedError


def train_step(model, optimizer, loss_fn, x, y, max_norm):
    """One update of the model from the batch (x, y). Returns the loss before the update, as a Python number.

    The model is put into training mode; the gradients are those of this batch alone, clipped by their total norm to
    max_norm; loss_fn(model(x), y) is the loss.
    """
    raise NotImplementedError


def smoothed_targets(target, vocab, eps, pad):
    """(N,) ids -> (N, vocab): 1 - eps on the target, eps in equal shares on all other tokens but padding.

    Column `pad` is 0 everywhere, and a target that is `pad` gets a row of zeros. A float tensor.
    """
    raise NotImplementedError


def label_smoothing(logits, target, eps=0.1, ignore_index=-100):
    """Cross-entropy to labels that share eps among ALL V tokens, themselves included. A tensor without axes.

    logits: (N, V), before any softmax; target: ids (N,). The mean over the targets that are not ignore_index.
    """
    raise NotImplementedError


def greedy_decode(step, prompt, stop_id, pad_id, max_length):
    """The new tokens (batch, n): the likeliest one, again and again.

    step: ids (batch, length) -> logits (batch, length, vocab_size); prompt: ids (batch, length), without padding.
    A row keeps its stop_id and has pad_id behind it; a stop_id in the prompt does not count.
    Ends as soon as every row has ended, or after max_length tokens.
    """
    raise NotImplementedError


def top_k_filter(logits, k):
    """The k largest logits of each row stay, the others become -inf. (batch, vocab_size), same shape.

    Logits that tie with the k-th may stay, too. A k of vocab_size or more keeps all. The argument is not changed.
    """
    raise NotImplementedError


def top_p_filter(logits, p):
    """The fewest tokens of each row, the likeliest ones, whose probabilities reach p stay; the others become -inf.

    logits: (batch, vocab_size), same shape returned. The likeliest one always stays, even with p = 0.
    The argument is not changed.
    """
    raise NotImplementedError


def next_probabilities(logits, temperature, k, p):
    """The probability of each token to be drawn, (vocab_size,): temperature, then top-k, then top-p of what is left.

    logits: (vocab_size,). Temperature 0 puts all probability on the best token.
    """
    raise NotImplementedError


def beam_search(step, start_id, stop_id, beam, max_length, alpha=0.0):
    """Returns (tokens, score): the best of all ended hypotheses and of those cut at max_length.

    step: ids (hypotheses, length), start_id first -> log-probabilities (hypotheses, vocab_size) of the next token.
    Goes on for max_length rounds, as long as a hypothesis lives, however many have ended.
    tokens: a list without start_id, with stop_id if it ended.
    score: sum of log-probabilities / n ** alpha, where n is the number of tokens.
    """
    raise NotImplementedError


def cached_causal_mask(n_new, n_total):
    """True where a query may look at a key: itself and what came before it. Shape (n_new, n_total), dtype bool.

    The queries are the last n_new of n_total tokens; the keys are all of them.
    """
    raise NotImplementedError


def attend_step(query, key, value, cache, rotate):
    """Causal attention of new tokens. Returns (output (batch, heads, new, d_v), cache for the next call).

    query, key, value: of the new tokens, (batch, heads, new, d_k or d_v). cache: None, or what the last call returned.
    rotate: (x, positions (new,)) -> x turned by its positions.
    A sequence in pieces of any size gives the same outputs as the whole.
    """
    raise NotImplementedError


def reorder_cache(cache, parents):
    """A new list of pairs (key, value), one for each layer, in which row i is the old row parents[i].

    key, value: (beam, heads, length, d). The old cache is left as it is.
    """
    raise NotImplementedError
