"""Reference numbers of published systems and of torch, kept as plain arrays in tests/data/golden.

Every file there, and in the folder that TRANSFORMER_EDU_GOLDEN names, is computed with this package and
compared.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import golden_norms
import golden_runners
import numpy as np
import pytest
import torch
from golden_case import Case, Comparisons
from golden_runners import runner_for
from sizes import BATCH, D_K, D_MODEL, D_V, HEADS, KEY, QUERY, numbers, random_mask
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_edu.masks import padding_mask


def files_in(folder: str | Path) -> list[Path]:
    files = sorted(Path(folder).glob("*.npz"))
    if not files:
        raise FileNotFoundError(f"no .npz file in {folder}")
    return files


HERE = files_in(Path(__file__).parent / "data" / "golden")
THERE = os.environ.get("TRANSFORMER_EDU_GOLDEN")
FILES = HERE + (files_in(THERE) if THERE else [])


def computed(case: Case) -> Comparisons:
    runner = runner_for(case.name)
    if runner is None:
        pytest.skip(f"no runner yet for {'_'.join(case.name.split('_')[:2])}*")
    return runner(case)


def check(entry: str, mine: Tensor, golden: Tensor) -> None:
    tolerance = 1e-4 if golden.is_floating_point() else 0
    assert mine.shape == golden.shape, f"{entry}: shape {tuple(mine.shape)}, golden {tuple(golden.shape)}"
    mine, golden = mine.detach().numpy(), golden.numpy()
    np.testing.assert_allclose(mine, golden, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=entry)


def compare(case: Case) -> set[str]:
    """Compute a whole case and compare; returns the entries that were compared."""
    compared = set()
    for entry, mine, golden in computed(case):
        check(entry, mine, golden)
        compared.add(entry)
    left = [name for name in case.tensors if name.startswith(("out.", "grad.")) and name not in compared]
    assert not left, f"the runner computes nothing to compare {', '.join(left)} with"
    return compared


def changed(golden: Tensor) -> Tensor:
    return ~golden if golden.dtype == torch.bool else golden + 0.001 * (1 + golden.abs())


def entries(case: Case) -> set[str]:
    return {name for name in case.tensors if name.startswith(("mid.", "out.", "grad."))}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_package_computes_the_golden_numbers(path):
    compare(Case.load(path))


@pytest.mark.parametrize("path", HERE, ids=lambda path: path.stem)
def test_every_entry_is_compared_and_a_change_in_any_of_them_is_seen(path):
    case = Case.load(path)
    assert {entry for entry, _, _ in computed(case)} == entries(case) != set()
    other = {entry: changed(case.tensors[entry]) for entry in entries(case)}
    for entry, mine, golden in computed(replace(case, tensors=case.tensors | other)):
        with pytest.raises(AssertionError, match=entry):
            check(entry, mine, golden)


# ---------------------------------------------------------------- the test can fail
def case_named(name: str) -> Case:
    return Case.load(next(path for path in HERE if path.stem == name))


@pytest.mark.parametrize(
    ("target", "wrong", "seen_by"),
    [
        ("golden_runners.Run.scale", lambda run, d_k, d_model: d_k**-1.0, "sdpa_bool_mask"),
        ("golden_runners.Run.scale", lambda run, d_k, d_model: d_model**-0.5, "s000_mha_dk_ne_dv"),
        ("golden_runners.Run.scale", lambda run, d_k, d_model: d_k**-0.5, "s002_self_attention"),
        (
            "transformer_edu.heads.split_heads",
            lambda x, n: x.reshape(len(x), n, x.shape[1], -1),
            "s003_mha_basic",
        ),
        (
            "golden_runners.merge_heads",
            lambda x: x.flatten(1, 2).reshape(len(x), x.shape[2], -1),
            "heads_split_merge",
        ),
        (
            "golden_runners.causal_mask",
            lambda length: torch.ones(length, length).bool().triu(),
            "sdpa_causal",
        ),
        ("golden_runners.causal_mask", lambda length: torch.ones(length, length).bool().triu(), "s000_masks"),
        (
            "golden_runners.SYSTEM_000",
            replace(golden_runners.SYSTEM_000, empty_rows="zero"),
            "s000_mha_dk_ne_dv",
        ),
        (
            "golden_runners.SYSTEM_001",
            replace(golden_runners.SYSTEM_001, empty_rows="zero"),
            "s001_attention_fn",
        ),
        (
            "golden_runners.SYSTEM_003",
            replace(golden_runners.SYSTEM_003, empty_rows="uniform"),
            "s003_mha_fully_masked",
        ),
        ("golden_runners.MHA", replace(golden_runners.MHA, true_attends=True), "mha_per_head_mask"),
        ("golden_runners.MHA", replace(golden_runners.MHA, folds_heads=False), "mha_per_head_mask"),
        ("golden_runners.SDPA", replace(golden_runners.SDPA, float_is_bias=False), "sdpa_float_mask"),
        ("golden_norms.TORCH", replace(golden_norms.TORCH, unbiased=True), "layernorm_torch"),
        ("golden_norms.TORCH", replace(golden_norms.TORCH, eps_outside=True), "s001_layernorm"),
        ("golden_norms.SYSTEM_001", replace(golden_norms.SYSTEM_001, unbiased=False), "s001_layernorm"),
        ("golden_norms.SYSTEM_001", replace(golden_norms.SYSTEM_001, eps_outside=False), "s001_layernorm"),
    ],
)
def test_a_mistake_is_seen(monkeypatch, target, wrong, seen_by):
    compare(case_named(seen_by))
    monkeypatch.setattr(target, wrong)
    with pytest.raises((AssertionError, ValueError)):
        compare(case_named(seen_by))


def test_a_kind_without_a_runner_is_skipped_by_name():
    with pytest.raises(pytest.skip.Exception, match=r"no runner yet for s999_other\*"):
        compare(Case("s999_other_case", {}, {}))


def test_an_output_that_no_runner_knows_is_not_passed_over():
    case = case_named("sdpa_bool_mask")
    with pytest.raises(AssertionError, match=r"nothing to compare out\.loss with"):
        compare(replace(case, tensors=case.tensors | {"out.loss": torch.zeros(())}))


def test_where_torch_gives_nan_for_an_empty_row_the_output_is_the_bias_alone():
    # By design: torch's module has NaN with need_weights=True and 0 without; here it is 0 in both.
    case = case_named("mha_fully_masked")
    golden = case.tensors["out.need_weights_true.y"]
    assert golden[1].isnan().all() and case.tensors["mid.need_weights_true.attn"][1].isnan().all()
    for need_weights in (True, False):
        mine = golden_runners.Run(case, "need_weights_true", golden_runners.MHA, need_weights).results
        assert torch.equal(mine["y"][1], case.tensors["w.out_proj.bias"].expand_as(golden[1]))
        torch.testing.assert_close(mine["y"], case.tensors["out.need_weights_false.y"])
        assert not need_weights or not mine["attn"][1].any()


# ---------------------------------------------------------------- files of known kinds that are not here
def written(folder, name, config, tensors, description=""):
    """The case, through a file."""
    meta = json.dumps({"case": name, "config": config, "description": description})
    np.savez(folder / f"{name}.npz", __meta__=np.array(meta), **{k: t.detach().numpy() for k, t in tensors.items()})
    return Case.load(folder / f"{name}.npz")


def torchs_case(module, inputs, runs, **options):
    """Tensors of a case of nn.MultiheadAttention: `runs` maps a tag to the masks it uses."""
    query, key, value = inputs.values() if len(inputs) == 3 else list(inputs.values()) * 3
    tensors = {f"in.{name}": t for name, t in inputs.items()} | {f"w.{n}": t for n, t in module.state_dict().items()}
    for tag, masks in runs.items():
        tag = f"{tag}." if tag else ""
        y, average = module(query, key, value, **masks)
        attn = module(query, key, value, **masks, average_attn_weights=False)[1]
        tensors |= {f"out.{tag}y": y, f"out.{tag}attn_avg": average, f"mid.{tag}attn": attn}
        tensors |= {f"in.{name}": mask for name, mask in masks.items()}
    return tensors


def test_torchs_module_with_other_masks_layouts_and_biases(tmp_path):
    padding, causal = ~padding_mask([QUERY, 2], QUERY)[:, 0, 0], ~torch.ones(QUERY, QUERY).tril().bool()
    x = {"x": numbers(BATCH, QUERY, D_MODEL)}
    runs = {
        "no_mask": {},
        "padding": {"key_padding_mask": padding},
        "causal": {"attn_mask": causal},
        "causal_padding": {"attn_mask": causal, "key_padding_mask": padding},
    }
    config = {"embed_dim": D_MODEL, "num_heads": HEADS}
    module = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    compare(written(tmp_path, "mha_self", config, torchs_case(module, x, runs)))
    per_head = numbers(BATCH * HEADS, QUERY, QUERY)
    compare(written(tmp_path, "mha_bias", config, torchs_case(module, x, {"": {"attn_mask": per_head}})))
    module = nn.MultiheadAttention(D_MODEL, HEADS, bias=False)  # (length, batch, width)
    cross = {"query": numbers(QUERY, BATCH, D_MODEL), "key": numbers(KEY, BATCH, D_MODEL)}
    cross["value"] = numbers(KEY, BATCH, D_MODEL, seed=1)
    tensors = torchs_case(module, cross, {"": {"key_padding_mask": ~padding_mask([KEY, 2], KEY)[:, 0, 0]}})
    compare(written(tmp_path, "mha_length_first", config | {"batch_first": False}, tensors))
    alone = {"x": numbers(QUERY, D_MODEL)}
    runs = {"": {"attn_mask": ~random_mask(HEADS, QUERY, QUERY)}}
    compare(written(tmp_path, "mha_no_batch", config, torchs_case(module, alone, runs)))


def test_torchs_function_with_other_masks_shapes_and_gradients(tmp_path):
    def case(name, leading, runs, config=(), **inputs):
        q, k, v = (numbers(*leading, *shape) for shape in ((QUERY, D_K), (KEY, D_K), (KEY, D_V)))
        tensors = {"in.q": q, "in.k": k, "in.v": v} | {f"in.{name}": mask for name, mask in inputs.items()}
        for tag, options in runs.items():
            tensors[f"out.{tag}.y"] = F.scaled_dot_product_attention(q, k, v, **options)
        return written(tmp_path, name, dict(config), tensors)

    mask, bias = random_mask(QUERY, KEY), numbers(QUERY, KEY)
    mask[1], bias[1] = False, -torch.inf
    runs = {
        "bool": {"attn_mask": mask},
        "float": {"attn_mask": bias},
        "causal": {"is_causal": True},
        "no_mask": {},
    }
    compare(case("sdpa_empty", (BATCH, HEADS), runs, mask_bool=mask, mask_float=bias))
    compare(case("sdpa_3d", (BATCH,), {"masked": {"attn_mask": mask, "scale": 0.5}}, {"scale": 0.5}, mask=mask))
    q, k, v, b, cotangent = (
        numbers(*shape).requires_grad_()
        for shape in (
            (1, 6, QUERY, D_K),
            (1, 2, KEY, D_K),
            (1, 2, KEY, D_V),
            (QUERY, KEY),
            (1, 6, QUERY, D_V),
        )
    )
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=b, enable_gqa=True)
    loss = (y * cotangent).sum()
    loss.backward()
    tensors = {"in.q": q, "in.k": k, "in.v": v, "in.attn_bias": b, "in.cotangent": cotangent, "out.y": y}
    tensors |= {
        "out.loss": loss,
        "grad.q": q.grad,
        "grad.k": k.grad,
        "grad.v": v.grad,
        "grad.attn_bias": b.grad,
    }
    compare(written(tmp_path, "sdpa_grouped_grad", {}, tensors, "gradients of sum(y * in.cotangent)"))


@pytest.mark.parametrize(
    ("name", "fill", "allowed_is"),
    [("s000_mha_grad", -1e4, False), ("s001_attention_module", -1e9, True), ("s003_mha_grad", None, True)],
)
@pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.float32])
def test_the_systems_with_other_masks_and_gradients(tmp_path, name, fill, allowed_is, kind):
    system = {"s000": "SYSTEM_000", "s001": "SYSTEM_001", "s003": "SYSTEM_003"}[name[:4]]
    names = list(dict.fromkeys(n.rpartition(".")[0] for n in getattr(golden_runners, system).names))
    linears = {n: nn.Linear(D_MODEL, D_MODEL) for n in names}
    mask = random_mask(BATCH, 1 if kind == torch.int64 else QUERY, KEY)
    mask[1, -1] = False
    inputs = {"query": numbers(BATCH, QUERY, D_MODEL), "key": numbers(BATCH, KEY, D_MODEL)}
    inputs["value"] = numbers(BATCH, KEY, D_MODEL, seed=1)
    inputs = {n: t.requires_grad_() for n, t in inputs.items()}
    q, k, v = (
        linear(x).view(BATCH, -1, HEADS, D_K).transpose(1, 2)
        for linear, x in zip(linears.values(), inputs.values(), strict=False)
    )
    scores = q @ k.transpose(2, 3) / D_K**0.5
    scores = scores.masked_fill(~mask[:, None], torch.finfo(torch.float32).min if fill is None else fill)
    attn = scores.softmax(-1)
    attn = attn.masked_fill(~mask[:, None], 0) if fill is None else attn
    y = linears[names[3]]((attn @ v).transpose(1, 2).reshape(BATCH, QUERY, D_MODEL))
    cotangent = numbers(BATCH, QUERY, D_MODEL, seed=3)
    (y * cotangent).mean().backward()
    tensors = {f"in.{n}": t for n, t in inputs.items()} | {f"grad.{n}": t.grad for n, t in inputs.items()}
    for n, linear in linears.items():
        for m, parameter in linear.named_parameters():
            tensors |= {f"w.{n}.{m}": parameter, f"grad.{n}.{m}": parameter.grad}
    tensors |= {"in.mask": (mask == allowed_is).to(kind), "in.cotangent": cotangent}
    tensors |= {
        "mid.attn": attn,
        "mid.scores": scores,
        f"mid.{names[0]}": linears[names[0]](inputs["query"]),
        "out.y": y,
    }
    case = written(tmp_path, name, {"n_head": HEADS}, tensors, "loss = mean(y * in.cotangent)")
    assert compare(case) == entries(case)


def test_heads_and_masks_of_other_sizes(tmp_path):
    x = torch.arange(BATCH * QUERY * 12).view(BATCH, QUERY, 12)
    split = x.view(BATCH, QUERY, 2, 6).transpose(1, 2).contiguous()
    outputs = {"out.split": split, "out.wrong_split": x.view(BATCH, 2, QUERY, 6), "out.merge": x}
    compare(written(tmp_path, "heads_other", {"n_heads": 2}, {"in.x": x} | outputs))
    merged = {"in.x": split, "out.merge": x, "out.wrong_merge": split.reshape(x.shape)}
    compare(written(tmp_path, "heads_merge", {}, merged))
    blocked = torch.tensor([[k >= n for k in range(7)] for n in (7, 9, 0)])
    tensors = {"in.lens": torch.tensor([7, 9, 0]), "out.len_mask": blocked[:, None].repeat(1, 7, 1)}
    tensors |= {
        "out.enc_dec_mask": blocked[:, None].repeat(1, 3, 1),
        "out.subsequent_3": torch.ones(2, 3, 3).triu(1) > 0,
    }
    compare(written(tmp_path, "s000_masks_other", {}, tensors))


def test_norms_of_other_sizes_with_tags_and_gradients(tmp_path):
    x, weight, bias, cotangent = (numbers(*shape).requires_grad_() for shape in ((KEY, 7), (7,), (7,), (KEY, 7)))
    y, wider = F.layer_norm(x, (7,), weight, bias, 1e-3), numbers(BATCH, QUERY, D_MODEL)
    (y * cotangent).sum().backward()
    tensors = {"in.x": x, "in.cotangent": cotangent, "w.weight": weight, "w.bias": bias, "out.eps1e-3": y}
    tensors |= {f"grad.eps1e-3.{n}": t.grad for n, t in (("x", x), ("weight", weight), ("bias", bias))}
    compare(written(tmp_path, "layernorm_grad", {}, tensors, "gradients of sum(y * in.cotangent)"))
    tensors = {"in.x": x, "in.wide.x": wider, "w.wide.weight": wider[0, 0], "out.plain": F.layer_norm(x, (7,))}
    tensors["out.wide.default"] = F.layer_norm(wider, (D_MODEL,), wider[0, 0])
    compare(written(tmp_path, "layernorm_two_widths", {}, tensors))
    y = weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 0.1) + bias
    loss = (y * cotangent).mean()
    tensors = {"in.x": x, "in.cotangent": cotangent, "w.alpha": weight, "w.beta": bias, "out.corrected": y}
    names = {"alpha": weight, "beta": bias, "x": x}
    gradients = zip(names, torch.autograd.grad(loss, list(names.values())), strict=True)
    tensors |= {f"grad.{name}": gradient for name, gradient in gradients} | {"out.loss": loss}
    case = written(tmp_path, "s001_layernorm_grad", {"eps": 0.1}, tensors, "loss = mean(y * in.cotangent)")
    assert compare(case) == entries(case)
