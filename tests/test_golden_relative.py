"""Files about relative positions of other sizes and options than those in tests/data/golden need no new runner."""

import math

import golden_relative
import pytest
import torch
from sizes import BATCH, D_K, D_V, HEADS, KEY, QUERY, numbers, random_mask
from test_golden import case_named, compare, entries, written
from torch import nn

from transformer_edu.relative import causal_shift, relative_shift

Q, K, V = (
    numbers(BATCH, HEADS, KEY, D_K),
    numbers(BATCH, HEADS, KEY, D_K, seed=1),
    numbers(BATCH, HEADS, KEY, D_V, seed=2),
)
COTANGENT = numbers(BATCH, HEADS, KEY, D_V, seed=3)
STEP = torch.arange(KEY) - torch.arange(KEY)[:, None]  # key - query
PAST = STEP <= 0


def case_of(folder, name, config, inputs, compute, description="", mask=None):
    """A case with gradients: `compute` takes the inputs as leaves and returns scores and what else is in the middle."""
    inputs = {name: t.clone().requires_grad_(t.is_floating_point()) for name, t in inputs.items()}
    scores, values, mids = compute(**inputs)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(torch.float32).min)
    attn = scores.softmax(-1)
    y = (attn[..., None] * values).sum(-2)
    loss = (y * COTANGENT[:, :, : y.shape[2]]).mean()
    loss.backward()
    tensors = {f"in.{n}": t for n, t in inputs.items()} | {f"mid.{n}": t for n, t in mids.items()}
    tensors |= {f"grad.{n}": t.grad for n, t in inputs.items() if t.grad is not None}
    tensors |= {"in.cotangent": COTANGENT[:, :, : y.shape[2]], "mid.scores": scores, "mid.attn": attn}
    tensors |= {"out.y": y, "out.loss": loss}
    return written(folder, name, config, tensors, description)


def every_entry_is_compared(case):
    assert compare(case) == entries(case)


def test_shaw_with_other_widths_masks_and_gradients(tmp_path):
    index = STEP.clamp(-3, 3) + 3

    def compute(q, k, v, table_k, table_v, mask=None):
        keys, values = k[:, :, None] + table_k[index], v[:, :, None] + table_v[index]
        return (q[:, :, :, None] * keys).sum(-1) / math.sqrt(D_K), values, {"index": index}

    tables = {"table_k": numbers(7, D_K, seed=4), "table_v": numbers(7, D_V, seed=5)}
    inputs = {"q": Q, "k": K, "v": V, **tables}
    every_entry_is_compared(case_of(tmp_path, "shaw_grad", {"clip": 3}, inputs, compute, "no mask"))
    mask = random_mask(BATCH, 1, KEY, KEY)
    every_entry_is_compared(case_of(tmp_path, "shaw_masked", {}, {**inputs, "mask": mask}, compute, mask=mask))
    every_entry_is_compared(case_of(tmp_path, "shaw_causal_other", {}, inputs, compute, "causal", mask=PAST))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_with_other_buckets_masks_and_gradients(tmp_path, bidirectional):
    distance = STEP.abs() if bidirectional else (-STEP).clamp(min=0)
    bucket = distance.clamp(max=1) + (
        2 * (STEP > 0) if bidirectional else 0
    )  # exact 1, and one for all that is farther
    buckets, farthest = (4, 2) if bidirectional else (2, 2)

    def compute(q, k, v, table):
        bias = table[bucket].permute(2, 0, 1)[None]
        return q @ k.transpose(-2, -1) + bias, v[:, :, None], {"bucket": bucket, "bias": bias}

    config = {"bidirectional": bidirectional, "num_buckets": buckets, "max_distance": farthest}
    inputs = {"q": Q, "k": K, "v": V, "table": numbers(buckets, HEADS, seed=4)}
    words, mask = ("no mask", None) if bidirectional else ("causal attention", PAST)
    every_entry_is_compared(case_of(tmp_path, "t5_bias_other", config, inputs, compute, words, mask))
    relative = torch.arange(-9, 9)
    near = relative.abs() if bidirectional else (-relative).clamp(min=0)
    expected = near.clamp(max=1) + (2 * (relative > 0) if bidirectional else 0)
    tensors = {"in.relative_position": relative, "out.bucket": expected, "out.bucket_matrix_5x5": bucket}
    every_entry_is_compared(written(tmp_path, "t5_buckets_other", config, tensors))


def test_alibi_with_other_heads_and_gradients(tmp_path):
    slopes = torch.tensor([2**-4.0, 2**-8.0, 2**-2.0])
    bias = -slopes[:, None, None] * STEP.abs()

    def compute(q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(D_K) + bias
        return scores, v[:, :, None], {"slopes": slopes, "bias_distance": bias}

    inputs = {"q": Q, "k": K, "v": V}
    every_entry_is_compared(case_of(tmp_path, "alibi_attention_grad", {"heads": 3}, inputs, compute, "Causal", PAST))
    every_entry_is_compared(case_of(tmp_path, "alibi_both_sides", {}, inputs, compute, "bidirectional, no mask"))
    every_entry_is_compared(written(tmp_path, "alibi_slopes_3", {}, {"out.slopes_03": slopes.double()}))


@pytest.mark.parametrize("half", [True, False])
def test_rotations_with_other_bases_and_positions_of_a_part_of_the_columns(tmp_path, half):
    positions = torch.tensor([4, 0, 17, 2, 900])
    angle = positions[:, None] * 50.0 ** -(torch.arange(0, 4, 2) / 4)  # 4 of the 6 columns turn
    pairs = (slice(0, 2), slice(2, 4)) if half else (slice(0, 4, 2), slice(1, 4, 2))

    def turned(x):
        a, b = x[..., pairs[0]], x[..., pairs[1]]
        y = x.clone()
        y[..., pairs[0]], y[..., pairs[1]] = (
            a * angle.cos() - b * angle.sin(),
            a * angle.sin() + b * angle.cos(),
        )
        return y

    name, config = "rope_half_split" if half else "rope_interleaved", {"base": 50.0, "rotary_dim": 4}
    x = Q.clone().requires_grad_()
    y = turned(x)
    y.sum().backward()
    tensors = {"in.x": x, "in.positions": positions, "mid.cos": angle.cos(), "mid.sin": angle.sin(), "out.y": y}
    tensors["grad.x"] = x.grad
    every_entry_is_compared(written(tmp_path, f"{name}_partial", config, tensors, "gradient of sum(y)"))
    inputs = {"q": Q, "k": K, "v": V, "positions": positions}

    def compute(q, k, v, positions):
        return turned(q) @ turned(k).transpose(-2, -1) / math.sqrt(D_K), v[:, :, None], {}

    every_entry_is_compared(case_of(tmp_path, f"{name}_grad", config, inputs, compute, "Causal", PAST))


@pytest.mark.parametrize("name", ["s003_rel_other", "rel_other"])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("n_queries", [QUERY, KEY, 7])
def test_transformer_xl_with_memory_tables_of_each_item_and_gradients(tmp_path, name, batched, n_queries):
    d_model, d_k = 12, 4
    linears = {n: nn.Linear(d_model, d_model, bias=n != "linear_pos") for n in ("linear_q", "linear_k", "linear_v")}
    linears |= {"linear_out": nn.Linear(d_model, d_model), "linear_pos": nn.Linear(d_model, d_model, bias=False)}
    u, v = (numbers(HEADS, d_k, seed=seed).requires_grad_() for seed in (5, 6))
    legacy = name.startswith("s003")
    rows = KEY if legacy else KEY + n_queries - 1
    inputs = {"query": numbers(BATCH, n_queries, d_model), "key": numbers(BATCH, KEY, d_model, seed=1)}
    inputs |= {
        "value": numbers(BATCH, KEY, d_model, seed=2),
        "pos_emb": numbers(BATCH if batched else 1, rows, d_model),
    }
    inputs = {n: t.requires_grad_() for n, t in inputs.items()}
    mask = random_mask(BATCH, n_queries, KEY)
    mask[1, -1] = False
    q, k, values, p = (
        linears[f"linear_{n}"](x).unflatten(-1, (HEADS, d_k)).transpose(1, 2)
        for n, x in zip(("q", "k", "v", "pos"), inputs.values(), strict=True)
    )
    ac, unshifted = (q + u[:, None]) @ k.mT, (q + v[:, None]) @ p.mT
    bd = causal_shift(unshifted) if legacy else relative_shift(unshifted)
    scores = ((ac + bd) / math.sqrt(d_k)).masked_fill(~mask[:, None], torch.finfo(torch.float32).min)
    attn = scores.softmax(-1).masked_fill(~mask[:, None], 0)
    y = linears["linear_out"]((attn @ values).transpose(1, 2).flatten(-2))
    y.mean().backward()
    tensors = {f"in.{n}": t for n, t in inputs.items()} | {f"grad.{n}": t.grad for n, t in inputs.items()}
    parameters = {f"{n}.{m}": t for n, linear in linears.items() for m, t in linear.named_parameters()}
    for n, t in (parameters | {"pos_bias_u": u, "pos_bias_v": v}).items():
        tensors |= {f"w.{n}": t, f"grad.{n}": t.grad}
    tensors |= {"in.mask": mask, "out.y": y, "mid.attn": attn, "mid.scores": scores, "mid.matrix_ac": ac}
    tensors |= {
        "mid.matrix_bd_unshifted": unshifted,
        "mid.matrix_bd": bd,
        "mid.linear_q": q.transpose(1, 2).flatten(-2),
    }
    case = written(tmp_path, name, {"n_head": HEADS}, tensors, "causal words, yet only the given mask counts")
    every_entry_is_compared(case)


@pytest.mark.parametrize(
    ("target", "wrong", "seen_by"),
    [
        ("transformer_edu.relative.shaw.distances", lambda q, k, device: STEP.new_zeros(q, k), "shaw_causal"),
        ("golden_relative.rope", lambda x, *rest, **options: x, "rope_attention"),
        ("golden_relative.alibi_slopes", lambda n: torch.ones(n), "alibi_slopes_other"),
        ("transformer_edu.relative.transformer_xl.relative_shift", lambda x: x[..., : x.shape[-2]], "rel_espnet_new"),
        ("golden_relative.causal_shift", lambda x, zero_future: x, "s003_rel_shift"),
        ("golden_relative.Given.table", lambda self, q, k: self.given.flip(-2), "s003_rel_memory"),
        ("golden_relative.t5_bucket", lambda x, *rest, **options: x.clamp(0, 7), "t5_buckets_small"),
    ],
)
def test_a_mistake_in_a_scheme_is_seen(monkeypatch, target, wrong, seen_by):
    compare(case_named(seen_by))
    monkeypatch.setattr(target, wrong)
    with pytest.raises(AssertionError):
        compare(case_named(seen_by))


def test_the_runners_are_those_of_the_topic():
    assert set(golden_relative.RUNNERS) == {"shaw", "t5", "alibi", "rope", "rel_", "s003_rel"}
