"""Relative positions against loops in float64; every scheme inside attention, whole, with a cache, and at its cost."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import BATCH, D_K, D_MODEL, D_V, HEADS, KEY, QUERY, error_text, few, numbers, random_mask, same
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_edu.cache import KeyValueCache
from transformer_edu.heads import MultiHeadAttention
from transformer_edu.inspection import record_attention
from transformer_edu.masks import causal_mask, padding_mask
from transformer_edu.positions import sinusoidal_positions
from transformer_edu.relative import (
    AlibiPosition,
    Position,
    RotaryPosition,
    ShawPosition,
    T5Position,
    XLPosition,
    alibi_bias,
    alibi_slopes,
    causal_shift,
    distances,
    pairing_order,
    relative_scores,
    relative_shift,
    relative_table,
    rope,
    shaw_index,
    t5_bucket,
)

LENGTHS = [(1, 1), (1, 5), (5, 1), (4, 4), (3, 5), (5, 3), (2, 3)]  # queries and keys


# ---------------------------------------------------------------- distances and the shift
@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_distances_are_key_minus_query_and_the_queries_are_last(n_queries, n_keys):
    expected = [[j - (i + n_keys - n_queries) for j in range(n_keys)] for i in range(n_queries)]
    assert distances(n_queries, n_keys).tolist() == expected
    assert expected[-1][-1] == 0


def shifted(x):
    """Entry by entry."""
    n_queries, n_distances = x.shape[-2:]
    out = torch.zeros(*x.shape[:-1], n_distances - n_queries + 1, dtype=x.dtype)
    for i in range(n_queries):
        for j in range(out.shape[-1]):
            out[..., i, j] = x[..., i, n_queries - 1 - i + j]
    return out


@few
@given(st.integers(1, 6), st.integers(1, 6))
def test_the_shift_equals_a_loop_over_queries_and_keys(n_queries, n_keys):
    x = torch.arange(BATCH * HEADS * n_queries * (n_queries + n_keys - 1))
    x = x.view(BATCH, HEADS, n_queries, n_queries + n_keys - 1)
    assert torch.equal(relative_shift(x), shifted(x))
    for order in ((1, 0, 2, 3), (3, 2, 1, 0), (0, 1, 3, 2)):  # views in another order in memory
        other = x.permute(*order).contiguous().permute(*torch.tensor(order).argsort().tolist())
        assert torch.equal(relative_shift(other), shifted(x))
    assert relative_shift(torch.arange(9).as_strided((1, 1), (1, 5), 4)).tolist() == [[4]]
    part = torch.cat([x, x], -1)[..., : x.shape[-1]]
    assert torch.equal(relative_shift(part), shifted(x))
    row = x[:, :, :1].expand_as(x)
    assert torch.equal(relative_shift(row), shifted(row))


def test_the_shift_puts_each_distance_where_it_belongs():
    x = torch.arange(4, -3, -1).expand(3, -1)  # 3 queries, 5 keys: every column is a distance query - key
    assert torch.equal(relative_shift(x), -distances(3, 5))


@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_the_gradient_of_the_shift_goes_back_to_where_each_entry_came_from(n_queries, n_keys):
    x = numbers(BATCH, HEADS, n_queries, n_queries + n_keys - 1, dtype=torch.float64).requires_grad_()
    cotangent = numbers(BATCH, HEADS, n_queries, n_keys, seed=1)
    (relative_shift(x) * cotangent).sum().backward()
    mine, x.grad = x.grad, None
    (shifted(x) * cotangent).sum().backward()
    same(mine, x.grad)


@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_the_causal_shift_holds_what_the_trick_leaves_there(n_queries, n_keys):
    x = torch.arange(1, BATCH * n_queries * n_keys + 1).view(BATCH, n_queries, n_keys)
    mine = causal_shift(x)
    for i in range(n_queries):
        for j in range(n_keys):
            row, column = divmod(j - i + n_queries, n_keys + 1)  # in the rows with a 0 in front
            expected = x[:, i + row, column - 1] if column else torch.zeros(BATCH)
            assert torch.equal(mine[:, i, j], expected.long())
    assert torch.equal(causal_shift(x, zero_future=True), mine * (distances(n_queries, n_keys) <= 0))


def test_up_to_the_query_the_causal_shift_is_the_shift():
    full = numbers(BATCH, HEADS, QUERY, QUERY + KEY - 1)
    past, present = distances(QUERY, KEY) <= 0, slice(0, KEY)
    assert torch.equal(causal_shift(full[..., present])[..., past], relative_shift(full)[..., past])


# ---------------------------------------------------------------- Transformer-XL, Shaw
@pytest.mark.parametrize("d_model", [1, 4, 7])
@pytest.mark.parametrize("n_queries", [None, 1, 3])
def test_the_table_equals_the_formula_in_a_loop(d_model, n_queries):
    rows = []
    for distance in range(KEY - 1, -(n_queries or KEY), -1):
        angles = [distance / 10000 ** (2 * (c // 2) / d_model) for c in range(d_model)]
        rows.append([math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)])
    same(relative_table(KEY, d_model, n_queries=n_queries), rows)


def test_the_past_of_the_table_is_the_sinusoid_and_the_future_its_mirror_image():
    table = relative_table(KEY, 8)
    assert table.shape == (2 * KEY - 1, 8)
    assert torch.equal(table[:KEY].flip(0), sinusoidal_positions(KEY, 8))
    signs = torch.tensor([-1.0, 1.0] * 4)  # the sine is odd, the cosine even
    assert torch.equal(table.flip(0), table * signs)


@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_relative_scores_equal_a_loop_over_queries_and_keys(n_queries, n_keys):
    q, k = numbers(BATCH, HEADS, n_queries, D_K), numbers(BATCH, HEADS, n_keys, D_K, seed=1)
    p, u, v = (
        numbers(HEADS, n_queries + n_keys - 1, D_K, seed=2),
        numbers(HEADS, D_K, seed=3),
        numbers(HEADS, D_K, seed=4),
    )
    expected = torch.zeros(BATCH, HEADS, n_queries, n_keys, dtype=torch.float64)
    for i in range(n_queries):
        for j in range(n_keys):
            distance = i + n_keys - n_queries - j
            content = (q[:, :, i] + u).double() * k[:, :, j].double()
            position = (q[:, :, i] + v).double() * p[:, n_keys - 1 - distance].double()
            expected[:, :, i, j] = (content + position).sum(-1) / math.sqrt(D_K)
    same(relative_scores(q, k, p, u, v), expected)


@few
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 4))
def test_shaws_index_is_the_clipped_distance(n_queries, n_keys, m):
    offset = n_keys - n_queries
    expected = [[max(-m, min(m, j - i - offset)) + m for j in range(n_keys)] for i in range(n_queries)]
    assert shaw_index(n_queries, n_keys, m).tolist() == expected


# ---------------------------------------------------------------- T5, ALiBi
def bucket_of(relative, bidirectional, num_buckets, max_distance):
    """By comparing with the edges of the buckets, in whole numbers: n is past edge s of S if (n/E)^S >= (M/E)^s."""
    first = num_buckets // 2 if bidirectional and relative > 0 else 0
    buckets = num_buckets // 2 if bidirectional else num_buckets
    n = abs(relative) if bidirectional else max(-relative, 0)
    exact = buckets // 2
    if n < exact:
        return first + n
    shared = buckets - exact
    passed = sum(n**shared * exact**s >= max_distance**s * exact**shared for s in range(1, shared))
    return first + exact + passed


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 16), (8, 20), (16, 64), (4, 9), (6, 50)])
def test_buckets_equal_their_edges_in_whole_numbers(bidirectional, num_buckets, max_distance):
    relative = torch.arange(-2 * max_distance, 2 * max_distance + 1)
    options = (bidirectional, num_buckets, max_distance)
    bucket = t5_bucket(relative, *options)
    assert bucket.tolist() == [bucket_of(r, *options) for r in relative.tolist()]
    assert bucket.dtype == torch.int64
    assert bucket[0] == (num_buckets // 2 if bidirectional else num_buckets) - 1  # the farthest past has the last one
    rising = bucket[: 2 * max_distance + 1].flip(0)
    assert (rising.diff() >= 0).all() and rising[0] == 0


def test_buckets_keep_the_shape_and_the_defaults_are_those_of_t5():
    relative = distances(3, 5)
    assert torch.equal(t5_bucket(relative), t5_bucket(relative, True, 32, 128))
    assert t5_bucket(relative).shape == (3, 5)
    assert t5_bucket(torch.tensor(7)).item() == 23


@pytest.mark.parametrize("n_heads", range(1, 20))
def test_slopes_are_those_of_the_power_of_two_below_and_every_second_of_the_one_above(n_heads):
    slopes = alibi_slopes(n_heads).tolist()
    power = max(2**p for p in range(6) if 2**p <= n_heads)
    assert slopes[:power] == pytest.approx([2 ** (-8 * (i + 1) / power) for i in range(power)])
    above = [2 ** (-8 * (i + 1) / (2 * power)) for i in range(2 * power)]
    assert slopes[power:] == pytest.approx(above[0::2][: n_heads - power])
    assert len(set(slopes)) == n_heads


@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_alibis_bias_is_the_slope_times_the_distance(n_queries, n_keys):
    slopes, offset = alibi_slopes(HEADS).tolist(), n_keys - n_queries
    expected = [[[-s * abs(i + offset - j) for j in range(n_keys)] for i in range(n_queries)] for s in slopes]
    same(alibi_bias(HEADS, n_queries, n_keys), expected)


# ---------------------------------------------------------------- rotary
def rotated(x, positions, base, pairing, width):
    """Each pair as a complex number, multiplied by exp(i angle), in float64."""
    out = x.double().clone()
    for t, position in enumerate(positions.tolist()):
        for i in range(width // 2):
            a, b = (2 * i, 2 * i + 1) if pairing == "interleaved" else (i, i + width // 2)
            turn = complex(math.cos(position * base ** (-2 * i / width)), math.sin(position * base ** (-2 * i / width)))
            number = torch.complex(x[..., t, a].double(), x[..., t, b].double()) * turn
            out[..., t, a], out[..., t, b] = number.real, number.imag
    return out


@pytest.mark.parametrize("pairing", ["interleaved", "half_split"])
@pytest.mark.parametrize("width", [None, 2, 4])
@pytest.mark.parametrize("positions", [None, torch.tensor([3, 0, -7, 40000]), torch.tensor([0.5, 1.0, 1.5, 2.0])])
def test_rotation_equals_complex_numbers_in_a_loop(pairing, width, positions):
    x = numbers(BATCH, HEADS, QUERY, D_K)
    expected = rotated(x, torch.arange(QUERY) if positions is None else positions, 500.0, pairing, width or D_K)
    same(rope(x, positions, 500.0, pairing=pairing, width=width), expected)


def test_the_defaults_of_the_rotation_are_those_of_the_paper():
    x = numbers(QUERY, D_K)
    assert torch.equal(rope(x), rope(x, torch.arange(QUERY), 10000.0, pairing="interleaved", width=D_K))


@pytest.mark.parametrize("pairing", ["interleaved", "half_split"])
def test_a_rotation_keeps_lengths_and_its_dot_products_see_the_difference_alone(pairing):
    q, k = numbers(1, D_K, dtype=torch.float64), numbers(1, D_K, seed=1, dtype=torch.float64)

    def dot(i, j):
        return (rope(q, torch.tensor([i]), pairing=pairing) * rope(k, torch.tensor([j]), pairing=pairing)).sum().item()

    assert dot(3, 1) == pytest.approx(dot(10003, 10001), abs=1e-9) != pytest.approx(dot(4, 1))
    same(rope(q, torch.tensor([9]), pairing=pairing).norm(), q.norm())


def test_the_two_pairings_are_one_in_another_order_of_the_columns():
    x, order = numbers(BATCH, HEADS, QUERY, D_K), pairing_order(D_K)
    assert order.tolist() == [0, 2, 4, 1, 3, 5]
    same(rope(x[..., order], pairing="half_split"), rope(x)[..., order])
    assert not torch.allclose(rope(x), rope(x, pairing="half_split"))


def test_rows_of_projections_in_the_other_order_serve_the_other_pairing():
    ours = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, position=RotaryPosition())
    theirs = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, position=RotaryPosition(pairing="half_split"))
    order = torch.cat([pairing_order(D_K) + head * D_K for head in range(HEADS)])
    state = ours.state_dict()
    for name in ("query_projection.linear", "key_projection.linear"):
        state |= {f"{name}.{kind}": state[f"{name}.{kind}"][order] for kind in ("weight", "bias")}
    theirs.load_state_dict(state)
    x = numbers(BATCH, QUERY, D_MODEL)
    same(theirs(x)[0], ours(x)[0])


def test_each_item_of_a_batch_may_have_positions_of_its_own():
    x, positions = numbers(BATCH, HEADS, QUERY, D_K), torch.tensor([[0, 1, 2, 3], [5, 7, 7, 100]])
    each = torch.stack([rope(item, p) for item, p in zip(x, positions, strict=True)])
    assert torch.equal(rope(x, positions), each)
    assert torch.equal(rope(x, positions[:1]), rope(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_rotation_keeps_the_dtype(dtype):
    x = numbers(QUERY, D_K, dtype=dtype)
    assert rope(x).dtype == dtype
    same(rope(x), rope(x.double()), 1e-2)


# ---------------------------------------------------------------- the schemes inside attention
SCHEMES = {
    "none": lambda: Position(),
    "shaw": lambda: ShawPosition(d_k=D_K, max_distance=2, d_v=D_V),
    "transformer-xl": lambda: XLPosition(d_model=8, n_heads=HEADS, d_k=D_K),
    "transformer-xl, causal": lambda: XLPosition(d_model=8, n_heads=HEADS, d_k=D_K, causal=True),
    "t5": lambda: T5Position(n_heads=HEADS, num_buckets=8, max_distance=4),
    "t5, causal": lambda: T5Position(n_heads=HEADS, bidirectional=False, num_buckets=6, max_distance=4),
    "alibi": lambda: AlibiPosition(n_heads=HEADS),
    "rotary": lambda: RotaryPosition(base=50.0),
    "rotary, half split and partial": lambda: RotaryPosition(pairing="half_split", width=4),
}
every_scheme = pytest.mark.parametrize("name", SCHEMES)


def attention(name, n_kv_heads=None, **options):
    """With random numbers in every parameter."""
    options = {"d_model": D_MODEL, "n_heads": HEADS, "d_k": D_K, "d_v": D_V} | options
    module = MultiHeadAttention(n_kv_heads=n_kv_heads, position=SCHEMES[name](), **options)
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(0.4 * numbers(*parameter.shape, seed=seed))
    return module


def tokens(length=QUERY, seed=0):
    return numbers(BATCH, length, D_MODEL, seed=seed)


def one_score(position, q, k, h, i, j, scale):
    """The score of a query at position i and a key at position j, vectors (batch, d_k), by the paper's formula."""
    content = scale * (q * k).sum(-1)
    match position:
        case ShawPosition():
            row = max(-2, min(2, j - i)) + 2
            return scale * (q * (k + position.key_table[row])).sum(-1)
        case XLPosition():
            angles = [(i - j) / 10000 ** (2 * (c // 2) / 8) for c in range(8)]
            sinusoid = torch.tensor([math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)])
            p = position.distance_projection.weight.view(HEADS, D_K, 8)[h] @ sinusoid.double()
            return scale * (((q + position.u[h]) * k).sum(-1) + ((q + position.v[h]) * p).sum(-1))
        case T5Position():
            options = (position.bidirectional, position.num_buckets, position.max_distance)
            return content + position.table[bucket_of(j - i, *options), h]
        case AlibiPosition():
            return content - alibi_slopes(HEADS)[h] * abs(i - j)
        case RotaryPosition():
            options = (position.base, position.pairing, position.width or D_K)
            q, k = (rotated(x[:, None], torch.tensor([t]), *options)[:, 0] for x, t in ((q, i), (k, j)))
            return scale * (q * k).sum(-1)
    return content


def looped(module, x, memory, mask):
    """Attention by loops over heads, queries and keys, in float64."""
    module = module.double()
    groups = HEADS // module.n_kv_heads
    q, k, v = (
        part(t.double())
        for part, t in (
            (module.query_projection, x),
            (module.key_projection, memory),
            (module.value_projection, memory),
        )
    )
    n_queries, n_keys, position = x.shape[1], memory.shape[1], module.position
    scores = torch.full((BATCH, HEADS, n_queries, n_keys), -torch.inf, dtype=torch.float64)
    heads = torch.zeros(BATCH, HEADS, n_queries, D_V, dtype=torch.float64)
    for h in range(HEADS):
        for i in range(n_queries):
            at = i + n_keys - n_queries
            for j in range(n_keys):
                scores[:, h, i, j] = one_score(position, q[:, h, i], k[:, h // groups, j], h, at, j, D_K**-0.5)
            weights = scores[:, h, i].masked_fill(~mask[:, h, i], -torch.inf).softmax(-1).nan_to_num(0.0)
            for j in range(n_keys):
                value = v[:, h // groups, j]
                if isinstance(position, ShawPosition):
                    value = value + position.value_table[max(-2, min(2, j - at)) + 2]
                heads[:, h, i] += weights[:, j, None] * value
    output = module.output_projection(heads.transpose(1, 2).flatten(-2))
    module.float()
    return output


@every_scheme
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("n_kv_heads", [HEADS, 1])
@pytest.mark.parametrize("n_queries", [1, QUERY, KEY, KEY + 1])
def test_attention_with_a_scheme_equals_loops_over_queries_and_keys(name, need_weights, n_kv_heads, n_queries):
    module, x, memory = attention(name, n_kv_heads), tokens(n_queries), tokens(KEY, seed=1)
    mask = random_mask(BATCH, HEADS, n_queries, KEY)
    mask[1, :, -1] = False  # an empty row
    if name == "transformer-xl, causal":
        mask = mask & (distances(n_queries, KEY) <= 0)
    with torch.no_grad():
        output, weights = module(x, memory, mask=mask, need_weights=need_weights)
        same(output, looped(module, x, memory, mask))
    same(output[1, -1], module.output_projection.bias)
    assert (weights is None) is not need_weights


@every_scheme
def test_the_fused_kernel_gives_the_same_output_and_gradients(name):
    results = []
    for need_weights in (True, False):
        module, x, memory = attention(name), tokens().requires_grad_(), tokens(KEY, seed=1).requires_grad_()
        mask = padding_mask([KEY, 2], KEY) & random_mask(QUERY, KEY)
        mask[1, :, 2] = False
        output, _ = module(x, memory, mask=mask, need_weights=need_weights)
        (output * numbers(*output.shape, seed=5)).sum().backward()
        results.append([output, x.grad, memory.grad, *(p.grad for p in module.parameters())])
    for slow, fused in zip(*results, strict=True):
        assert slow.isfinite().all()
        same(fused, slow, 1e-4)


@every_scheme
@pytest.mark.parametrize("n_kv_heads", [HEADS, 1])
def test_with_a_cache_the_last_rows_are_those_of_the_whole(name, n_kv_heads):
    module, x, mask = attention(name, n_kv_heads), tokens(KEY), causal_mask(KEY)
    whole = module(x, mask=mask, need_weights=True)
    for n_new in (1, 2, 4):
        output, weights = module(x[:, -n_new:], x, mask=mask[-n_new:], need_weights=True)
        same(output, whole[0][:, -n_new:])
        same(weights, whole[1][:, :, -n_new:])
    with torch.no_grad():
        cache = KeyValueCache()
        steps = [module(x[:, t : t + 2], mask=mask[t : t + 2, : t + 2], cache=cache)[0] for t in range(0, KEY, 2)]
    same(torch.cat(steps, 1), whole[0])
    one_by_one = [module(x[:, t : t + 1], x[:, : t + 1])[0] for t in range(KEY)]
    same(torch.cat(one_by_one, 1), whole[0])


@every_scheme
def test_the_same_content_further_on_gives_the_same(name):
    module, x, mask = attention(name), tokens(), causal_mask(QUERY)
    before = numbers(BATCH, 3, D_MODEL, seed=7)
    wider = torch.cat([torch.zeros(QUERY, 3, dtype=torch.bool), mask], 1)  # which may not look at what came before
    expected = module(x, mask=mask, need_weights=True)
    output, weights = module(x, torch.cat([before, x], 1), mask=wider, need_weights=True)
    same(output, expected[0])
    same(weights[..., 3:], expected[1])
    further = module(torch.cat([before, x], 1), mask=torch.nn.functional.pad(wider, (0, 0, 3, 0)))[0]
    same(further[:, 3:], expected[0])


@pytest.mark.parametrize("name", [name for name in SCHEMES if name != "none"])
def test_attention_with_a_scheme_sees_the_order_of_the_tokens(name):
    plain, module, x = attention("none"), attention(name), tokens()
    order = torch.tensor([2, 0, 3, 1])
    same(plain(x[:, order])[0], plain(x)[0][:, order])
    assert not torch.allclose(module(x[:, order])[0], module(x)[0][:, order], atol=1e-3)


@pytest.mark.parametrize("name", ["alibi", "t5", "transformer-xl", "shaw", "rotary"])
def test_past_and_future_differ_for_all_but_alibi(name):
    module, x = attention(name), tokens()
    mirrored = torch.allclose(module(x.flip(1))[0], module(x)[0].flip(1), atol=1e-5)
    assert mirrored == (name == "alibi")


@every_scheme
def test_the_recorded_weights_are_those_of_the_scheme(name):
    model = nn.ModuleDict({"self": attention(name)})
    x, mask = tokens(), causal_mask(QUERY)
    expected, weights = model["self"](x, mask=mask, need_weights=True)
    with record_attention(model) as recorded:
        output, nothing = model["self"](x, mask=mask)
    assert list(recorded) == ["self"] and nothing is None
    assert torch.equal(recorded["self"][0], weights) and torch.equal(output, expected)


@every_scheme
def test_with_everything_dropped_the_output_is_the_bias(name):
    module = attention(name, dropout=1.0).train()
    for need_weights in (True, False):
        output, _ = module(tokens(), need_weights=need_weights)
        same(output, module.output_projection.bias.expand(BATCH, QUERY, D_MODEL))


@every_scheme
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_scheme_works_in_half_precision(name, dtype):
    module, x = attention(name), tokens()
    expected = module(x)[0]
    for need_weights in (True, False):
        output, _ = module.to(dtype)(x.to(dtype), need_weights=need_weights)
        assert output.dtype == dtype
        same(output, expected, 0.1 if dtype == torch.bfloat16 else 0.02)


@every_scheme
def test_a_scheme_works_under_autocast(name):
    module, x = attention(name), tokens()
    expected = module(x)[0]
    with torch.autocast("cpu", torch.bfloat16):
        for need_weights in (True, False):
            same(module(x, need_weights=need_weights)[0], expected, 0.1)


@every_scheme
def test_scales_of_attention_reach_the_scheme(name):
    module = attention(name, scale=0.2)
    x, q = tokens(), module.query_projection(tokens())
    new_query, new_key, bias = module.position(q, module.key_projection(x), scale=0.2)
    scores = 0.2 * new_query @ new_key.transpose(-2, -1) + (0 if bias is None else bias)
    same(module(x, need_weights=True)[1], scores.softmax(-1))


def test_parameters_are_as_many_as_the_papers_have():
    counts = {name: sum(p.numel() for p in scheme().parameters()) for name, scheme in SCHEMES.items()}
    assert counts == {
        "none": 0,
        "shaw": 5 * D_K + 5 * D_V,
        "transformer-xl": 8 * HEADS * D_K + 2 * HEADS * D_K,
        "transformer-xl, causal": 8 * HEADS * D_K + 2 * HEADS * D_K,
        "t5": 8 * HEADS,
        "t5, causal": 6 * HEADS,
        "alibi": 0,
        "rotary": 0,
        "rotary, half split and partial": 0,
    }


def test_t5_begins_without_a_preference_for_any_distance():
    x, options = tokens(), {"d_model": D_MODEL, "n_heads": HEADS}
    plain = MultiHeadAttention(**options)
    fresh = MultiHeadAttention(position=T5Position(n_heads=HEADS), **options)
    fresh.load_state_dict(plain.state_dict(), strict=False)
    same(fresh(x)[0], plain(x)[0])


def test_layers_may_share_one_table():
    position = T5Position(n_heads=HEADS)
    layers = nn.ModuleList(MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, position=position) for _ in range(2))
    layers[1](layers[0](tokens())[0])[0].sum().backward()
    assert len(list(layers.parameters())) == 2 * 8 + 1 and position.table.grad.abs().sum() > 0


def test_any_callable_serves_as_a_position_and_a_bias_is_added_to_its_own():
    bias = numbers(HEADS, QUERY, QUERY)

    def mine(query, key, *, scale):
        return 2 * query, key, bias

    options = {"d_model": D_MODEL, "n_heads": HEADS}
    ours, plain = MultiHeadAttention(position=mine, **options), MultiHeadAttention(**options)
    ours.load_state_dict(plain.state_dict())
    with torch.no_grad():
        for parameter in plain.query_projection.parameters():
            parameter.mul_(2)
    x, more = tokens(), numbers(BATCH, 1, 1, QUERY, seed=3)
    for need_weights in (True, False):
        same(ours(x, need_weights=need_weights)[0], plain(x, bias=bias, need_weights=need_weights)[0])
        same(ours(x, bias=more, need_weights=need_weights)[0], plain(x, bias=bias + more)[0])
    assert not torch.allclose(plain(x, bias=bias)[0], plain(x)[0])


# ---------------------------------------------------------------- cost
class Sizes(TorchDispatchMode):
    """How many numbers each tensor made inside has, views not counted, and how many operations there are."""

    def __init__(self):
        super().__init__()
        self.made, self.seen, self.operations = [], [], 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.operations += 1
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in self.known():
                self.made.append(tensor.untyped_storage().nbytes() // tensor.element_size())
                self.seen.append(tensor)  # kept, so that no address is given twice
        return result

    def known(self):
        return {tensor.untyped_storage().data_ptr() for tensor in self.seen}


def cost(name, length, width, backward=False):
    """Sizes of what a scheme makes for `length` tokens with heads of that width, and what attention makes in all."""
    position = {
        "shaw": lambda: ShawPosition(d_k=width, max_distance=2),
        "transformer-xl": lambda: XLPosition(d_model=8, n_heads=HEADS, d_k=width),
        "transformer-xl, causal": lambda: XLPosition(d_model=8, n_heads=HEADS, d_k=width, causal=True),
    }.get(name, SCHEMES[name])()
    query, key = (numbers(BATCH, HEADS, length, width, seed=seed).requires_grad_() for seed in (0, 1))
    with Sizes() as sizes:
        _, _, bias = position(query, key, scale=0.5)
        weights = numbers(BATCH, HEADS, length, length).requires_grad_()
        sizes.made.clear()
        _, _, bias = position(query, key, scale=0.5)
        output = position.values(weights) if hasattr(position, "values") else None
        if backward:
            for result in (bias, output):
                if result is not None and result.requires_grad:
                    result.sum().backward()
    return sizes


@every_scheme
def test_a_scheme_adds_at_most_four_tensors_of_the_size_of_the_scores(name):
    length, width = 64, 8
    pairs = BATCH * HEADS * length * length
    sizes = cost(name, length, width)
    assert sum(size for size in sizes.made if size >= pairs // 2) <= 4 * pairs
    assert max(sizes.made, default=0) <= 2.1 * pairs


@every_scheme
def test_no_vector_is_laid_out_for_each_query_and_key(name):
    length, width = 32, 64  # wide heads: such a tensor would be larger than all others
    sizes = cost(name, length, width, backward=True)
    assert max(sizes.made, default=0) < length * length * width  # not even for one item of the batch and one head


@every_scheme
def test_the_work_has_no_loop_over_positions(name):
    assert cost(name, 8, 8).operations == cost(name, 32, 8).operations


def test_the_shift_is_a_view():
    x = numbers(BATCH, HEADS, QUERY, QUERY + KEY - 1)
    assert relative_shift(x).untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


# ---------------------------------------------------------------- errors
def test_shapes_that_do_not_fit_are_refused_with_their_numbers():
    x, table = numbers(BATCH, HEADS, QUERY, D_K), numbers(HEADS, QUERY + KEY - 1, D_K)
    shift = (
        "x must have a row for each query, and a column for each of the query + key - 1 distances, at least as many as "
        "rows, got shape "
    )
    cases = {
        f"{shift}(4, 3)": lambda: relative_shift(torch.zeros(4, 3)),
        f"{shift}(0, 3)": lambda: relative_shift(torch.zeros(0, 3)),
        "base must be above 0, got 0": lambda: rope(x, base=0),
        "base must be above 0, got nan": lambda: RotaryPosition(base=math.nan),
        "width must be even, got 3: columns turn in pairs": lambda: RotaryPosition(width=3),
        "width must be at least 2, got 0": lambda: RotaryPosition(width=0),
        "positions must be numbers, got a mask: positions.position_ids counts the real tokens of one": (
            lambda: rope(x, torch.ones(QUERY).bool())
        ),
        "x must have at least 2 axes (..., query, distances), got 1 axis: shape (4,)": (
            lambda: relative_shift(torch.zeros(4))
        ),
        "x must have at least 2 axes (..., query, key), got 1 axis: shape (4,)": lambda: causal_shift(torch.zeros(4)),
        "n_queries must be at least 1, got 0": lambda: distances(0, 4),
        "length must be at least 1, got 0": lambda: relative_table(0, 4),
        "position must have query + key - 1 = 7 rows, one for each distance, got shape (3, 8, 6)": (
            lambda: relative_scores(x, x, table, table[:, 0], table[:, 0])
        ),
        "max_distance must be at least 0, got -1": lambda: shaw_index(3, 3, -1),
        "num_buckets must be at least 4, got 3": lambda: t5_bucket(distances(3, 3), True, 3),
        "max_distance must be above 8, the number of distances with a bucket of their own (num_buckets is 32), got 8": (
            lambda: t5_bucket(distances(3, 3), True, 32, 8)
        ),
        "n_heads must be at least 1, got 0": lambda: alibi_slopes(0),
        "pairing must be one of 'interleaved', 'half_split', got 'neox'": lambda: rope(x, pairing="neox"),
        "width must be an even number from 2 to d_k (5), got 5: columns turn in pairs": lambda: rope(numbers(4, 5)),
        "width must be an even number from 2 to d_k (6), got 8: columns turn in pairs": lambda: rope(x, width=8),
        "positions must be (length,) = (4,), or (batch, length) for an x (batch, heads, length, d_k), got (5,) for x "
        "(2, 3, 4, 6)": lambda: rope(x, torch.arange(5)),
    }
    for text, call in cases.items():
        assert error_text(ValueError, call) == text
    flag = "bidirectional must be True or False, got"
    kinds = {
        "relative must hold whole numbers, got torch.float32: .long() makes them": lambda: t5_bucket(torch.zeros(3)),
        f"{flag} int (32)": lambda: t5_bucket(distances(3, 3), 32, 128),
        f"{flag} str ('no')": lambda: T5Position(n_heads=2, bidirectional="no"),
        "causal must be True or False, got NoneType": lambda: XLPosition(d_model=6, n_heads=2, causal=None),
        "x must be a float tensor, got torch.int64: .float() makes one": lambda: rope(torch.ones(2, 4).long()),
        "base must be a number, got NoneType": lambda: rope(x, base=None),
        "base must be a number, got str ('x')": lambda: RotaryPosition(base="x"),
        "width must be an int, got float (2.0): int(width) makes one": lambda: rope(x, width=2.0),
        "width must be an int, got str ('2'): int(width) makes one": lambda: RotaryPosition(width="2"),
    }
    for text, call in kinds.items():
        assert error_text(TypeError, call) == text


@pytest.mark.parametrize(
    ("wrong", "shape"),
    [
        ({"key": numbers(BATCH, HEADS, KEY, D_K - 1)}, "(batch, heads, key, d_k)"),
        ({"key": numbers(BATCH + 1, HEADS, KEY, D_K)}, "(batch, heads, key, d_k)"),
        ({"position": numbers(HEADS + 1, QUERY + KEY - 1, D_K)}, "(heads, distances, d_k)"),
        ({"u": numbers(D_K, HEADS)}, "(heads, d_k)"),
        ({"v": numbers(HEADS, D_K + 1)}, "(heads, d_k)"),
    ],
)
def test_relative_scores_of_tensors_that_do_not_fit_are_refused_by_name(wrong, shape):
    good = {"query": numbers(BATCH, HEADS, QUERY, D_K), "key": numbers(BATCH, HEADS, KEY, D_K)}
    good |= {"position": numbers(HEADS, QUERY + KEY - 1, D_K), "u": numbers(HEADS, D_K), "v": numbers(HEADS, D_K)}
    (name,) = wrong
    text = error_text(ValueError, lambda: relative_scores(**good | wrong))
    assert text.startswith(f"{name} of shape {tuple(wrong[name].shape)} does not broadcast to")
    assert f"= {shape}: shapes are aligned from the right" in text


def test_a_scheme_made_for_another_attention_is_refused_by_name():
    x, options = tokens(), {"d_model": D_MODEL, "n_heads": HEADS}
    cases = {
        "this position was made for n_heads=2, but the queries have n_heads=3": AlibiPosition(n_heads=2),
        "this position was made for n_heads=4, but the queries have n_heads=3": T5Position(n_heads=4),
        "this position was made for n_heads=5, but the queries have n_heads=3": XLPosition(d_model=10, n_heads=5),
        "this position was made for d_k=4, but the queries have d_k=6": XLPosition(d_model=12, n_heads=3),
        "this position was made for d_k=5, but the queries have d_k=6": ShawPosition(d_k=5, max_distance=2),
        "width must be an even number from 2 to d_k (6), got 8: columns turn in pairs": RotaryPosition(width=8),
        "extra_output(weights) of shape (2, 3, 4, 7) does not broadcast to (2, 3, 4, 6) = the output (..., query, d_v)"
        ": shapes are aligned from the right, so the last axis of extra_output(weights) must be 6 or 1": ShawPosition(
            d_k=D_K, max_distance=2, d_v=D_V
        ),
    }
    for text, position in cases.items():
        attention = MultiHeadAttention(position=position, **options)
        assert error_text(ValueError, lambda attention=attention: attention(x)) == text
    for wrong, got in ((RotaryPosition, "the class RotaryPosition"), ("rotary", "str")):
        text = error_text(TypeError, lambda wrong=wrong: MultiHeadAttention(position=wrong, **options))
        assert text == f"position must be a scheme like relative.RotaryPosition(), ready to be called, got {got}"


def test_sizes_of_schemes_that_do_not_fit_are_refused():
    cases = {
        "d_model (8) must be divisible by n_heads (3): d_k is d_model / n_heads, unless you give it": (
            lambda: XLPosition(d_model=8, n_heads=3)
        ),
        "d_k must be at least 1, got 0": lambda: ShawPosition(d_k=0, max_distance=2),
        "max_distance must be at least 0, got -2": lambda: ShawPosition(d_k=4, max_distance=-2),
        "num_buckets must be at least 2, got 1": lambda: T5Position(n_heads=2, bidirectional=False, num_buckets=1),
        "n_heads must be at least 1, got 0": lambda: AlibiPosition(n_heads=0),
        "pairing must be one of 'interleaved', 'half_split', got 'pairs'": lambda: RotaryPosition(pairing="pairs"),
    }
    for text, call in cases.items():
        assert error_text(ValueError, call) == text
