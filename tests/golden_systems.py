"""How the whole models of the public systems are computed with this package.

A case's weights are loaded under the system's own names, the model runs once for each tag, and everything that a
file holds under `mid.` is taken from the module that the system's map of names leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from golden_case import Case, Comparisons, split_name
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_edu.heads import MultiHeadAttention
from transformer_edu.model import Embedding
from transformer_edu.systems import (
    NAMES_000,
    NAMES_001,
    NAMES_002,
    NAMES_003,
    KeepEverySecond,
    System000,
    System001,
    System002,
    attention_003,
    load_weights,
    our_name,
)

RESULTS = {"logits", "log_probs", "loss"}
MASKS = ("enc_mask", "dec_mask", "dec_enc_mask", "src_mask", "trg_mask")


# ---------------------------------------------------------------- builders from a case
def count_layers(weights: dict[str, Tensor]) -> int:
    numbers = {int(part) for name in weights for part in name.split(".")[:4] if part.isdigit()
               if name.startswith("encoder.")}  # fmt: skip
    return max(numbers) + 1


def dropped(sites: dict[str, str], tag: str) -> dict[str, float]:
    """Dropout at p = 1 on the one site that a tag names."""
    return {sites[tag]: 1.0} if tag in sites else {}


def system_000(case: Case, tag: str) -> System000:
    weights = case.group("w")
    table, features = weights["encoder.pos_emb.weight"], case.group("in", tag)["X"].shape[-1]
    d_model = table.shape[1]
    halves = "frontend.proj.weight" in weights
    frontend = KeepEverySecond(d_in=features, d_model=d_model) if halves else nn.Linear(features, d_model)
    sites = {"emb": "dropout", "attn": "attention_dropout", "posffn": "feed_forward_dropout"}
    return System000(
        frontend=frontend,
        vocab_size=len(weights["linear.weight"]),
        d_model=d_model,
        n_heads=case.option("num_heads", "n_heads", "heads"),
        d_ff=len(weights["encoder.layers.0.poswise_ffn.conv1.weight"]),
        n_layers=count_layers(weights),
        max_length=len(table),
        lengths_follow="corrected" in tag,
        **dropped(sites, tag),
    )


def system_001(case: Case, tag: str) -> System001:
    weights = case.group("w")
    tables = [weights[f"{side}_embed.0.embed.weight"] for side in ("src", "tgt")]
    sites = {
        "pe": "dropout",
        "attn": "attention_dropout",
        "ffn": "feed_forward_dropout",
        "sublayer": "sublayer_dropout",
    }
    described = f"{case.name} {tag} {case.description}".lower()
    faithful = "faithful" in described
    faults = {
        "layer_norm_sum": faithful and "sum" in described,
        "mask_ignored": faithful and "ignored" in described,
        "whole_table": faithful,
    }
    return System001(
        source_vocab_size=len(tables[0]),
        target_vocab_size=len(tables[1]),
        d_model=tables[0].shape[1],
        n_heads=case.option("head", "heads", "n_heads", "num_heads"),
        d_ff=len(weights["encoder.encoder_layers.0.feed_forward.fc_1.weight"]),
        n_layers=count_layers(weights),
        max_length=weights["src_embed.1.pe"].shape[-2],
        faults=[fault for fault, kept in faults.items() if kept],
        **dropped(sites, tag),
    )


def system_002(case: Case, tag: str) -> System002:
    weights = case.group("w")
    sides = {side: weights[f"{stack}.word_embedding.weight"] for side, stack in (("source", "encoder"),
                                                                               ("target", "decoder"))}  # fmt: skip
    corrected = f"{case.name} {tag}" if tag != "seed" else ""
    model = System002(
        source_vocab_size=len(sides["source"]),
        target_vocab_size=len(sides["target"]),
        d_model=sides["source"].shape[1],
        n_heads=case.option("heads", "n_heads", "num_heads"),
        d_ff=len(weights["encoder.layers.0.feed_forward.0.weight"]),
        n_layers=count_layers(weights),
        max_length=len(weights["encoder.position_embedding.weight"]),
        source_pad_id=case.option("src_pad_idx", default=0),
        target_pad_id=case.option("trg_pad_idx", default=0),
        correct_scale="corrected" in corrected and "scale" in corrected,
        mask_target_padding="corrected" in corrected and "pad_mask" in corrected,
    )
    drop_behind_one_norm(model, tag)
    return model


def drop_behind_one_norm(model: System002, tag: str) -> None:
    """One site of dropout at p = 1: `emb`, or behind the norms of one sub-layer."""
    sublayers = {"norm1": "cross_attention", "norm2": "feed_forward", "self": "self_attention"}
    where, _, site = tag.partition("_")
    if tag == "emb":
        for module in model.modules():
            if isinstance(module, Embedding):
                module.dropout = 1.0
    elif where in ("enc", "dec"):
        stack = model.transformer.encoder if where == "enc" else model.transformer.decoder
        sublayer = "self_attention" if (where, site) == ("enc", "norm1") else sublayers[site]
        for layer in stack.layers:
            getattr(layer, sublayer).norm[1].p = 1.0


# ---------------------------------------------------------------- what happens inside
@contextmanager
def watched(model: nn.Module) -> Iterator[dict[str, object]]:
    """Everything that a module returns while the context is open, by the module's name."""
    seen: dict[str, object] = {}
    handles = []
    for name, module in model.named_modules():

        def note(_module: nn.Module, _args: object, output: object, name: str = name) -> None:
            seen[name] = output

        def ask(_module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
            return args, kwargs | {"need_weights": True}

        if isinstance(module, MultiHeadAttention):
            handles.append(module.register_forward_pre_hook(ask, with_kwargs=True))
        handles.append(module.register_forward_hook(note))
    yield seen
    for handle in handles:
        handle.remove()


def intermediate(model: nn.Module, seen: dict, path: str, golden: Tensor) -> Tensor:
    """What the file calls by a name that leads to `path` here."""
    if path.endswith(".pos_emb"):
        side = "source" if ".encoder." in f".{path}" else "target"
        return getattr(model.transformer, f"{side}_embedding").positions.table[: len(golden)]
    if path.endswith(".embed_sum"):
        side = "source" if "encoder" in path else "target"
        return seen[f"transformer.{side}_embedding"]
    attention, _, leaf = path.rpartition(".")
    if leaf == "attn":
        return seen[attention][1]
    if leaf == "scores":
        scale = model.get_submodule(attention).scale
        query, key = (seen[f"{attention}.{part}_projection"] for part in ("query", "key"))
        scores = (query.shape[-1] ** -0.5 if scale is None else scale) * query @ key.transpose(-2, -1)
        return torch.where(golden < -1000, golden, scores)  # where the system fills, with a number of its own
    found = seen[path]
    found = found[0] if isinstance(found, tuple) else found
    return found.transpose(1, 2) if found.dim() == 4 and found.shape != golden.shape else found  # tokens first there


def run(case: Case, build: Callable[[Case, str], nn.Module], names: tuple, inputs: tuple[str, ...]) -> Comparisons:
    for tag in tags_of(case):
        model = build(case, tag)
        load_weights(model, case.group("w"), names)
        model.to(torch.float32).train()  # dropout is 0 but for the site that a tag names
        given = {n: t.clone().requires_grad_(t.is_floating_point()) for n, t in case.group("in", tag).items()}
        with watched(model) as seen:
            output = model(*(given.get(name) for name in inputs))
        results = {"logits": output, "log_probs": output}
        if "targets" in given:
            ignored = 0 if any(w in case.description for w in ("ignore_index 0", "not 0")) else -100
            flat = output.flatten(0, 1), given["targets"].flatten()
            compute = F.nll_loss if "log_prob" in case.description or "NLL" in case.description else F.cross_entropy
            results["loss"] = compute(*flat, ignore_index=ignored)
        for entry, leaf in entries_of(case, "out", tag, RESULTS):
            yield entry, results[leaf], case.tensors[entry]
        for entry, leaf in mids_of(case, tag):
            golden = case.tensors[entry]
            if leaf in MASKS:
                yield entry, mask_like(model, leaf, given, seen, golden), golden
            else:
                yield entry, intermediate(model, seen, our_name(leaf, names), golden), golden
        if "loss" in results and case.group("grad"):
            results["loss"].backward()
            for name, golden in case.group("grad").items():
                source = given[name] if name in given else model.get_parameter(our_name(name, names))
                yield f"grad.{name}", source.grad.reshape(golden.shape), golden


def tags_of(case: Case) -> list[str]:
    return sorted({split_name(name, RESULTS)[0] for name in case.group("out")})


def entries_of(case: Case, prefix: str, tag: str, known: set[str]) -> Iterator[tuple[str, str]]:
    for name in case.group(prefix):
        its_tag, leaf = split_name(name, known)
        if its_tag == tag:
            yield f"{prefix}.{name}", leaf


def mids_of(case: Case, tag: str) -> Iterator[tuple[str, str]]:
    """Intermediates of this run: under its tag, or, for a run without one, under no tag of another run."""
    others = tuple(f"{other}." for other in tags_of(case) if other)
    for name in case.group("mid"):
        if tag and name.startswith(f"{tag}."):
            yield f"mid.{name}", name.removeprefix(f"{tag}.")
        elif not tag and not name.startswith(others or ("\0",)):
            yield f"mid.{name}", name


def mask_like(model: nn.Module, leaf: str, given: dict, seen: dict, golden: Tensor) -> Tensor:
    """Our mask in the system's form: 000 has True = masked and a row for each query, 002 has 1 = keep."""
    if isinstance(model, System000):
        n_frames, n_labels = seen["transformer.encoder"].shape[1], given["labels"].shape[1]
        source, target = model.masks(n_frames, given["X_lens"], n_labels)
        ours = target if leaf == "dec_mask" else source[:, 0]
        return ~ours.expand(golden.shape)
    source, target = model.masks(given["src"], given["trg"])
    return (source if leaf == "src_mask" else target).expand(golden.shape).to(golden.dtype)


def dropout_of_003(case: Case) -> Comparisons:
    """Both attention modules in train mode with dropout at p = 1; the weights shown are those before dropout."""
    inputs = case.group("in")
    for tag in ("mha", "rel"):
        weights = {name.removeprefix(f"{tag}."): t for name, t in case.group("w").items() if name.startswith(f"{tag}.")}
        d_model, n_heads = inputs["x"].shape[-1], case.option("n_head", "n_heads")
        module = attention_003(d_model=d_model, n_heads=n_heads, relative=tag == "rel", dropout=1.0).train()
        load_weights(module, weights, NAMES_003)
        y, attn = module(inputs["x"], mask=(inputs["mask"] != 0)[:, None], need_weights=True)
        yield f"out.{tag}.y", y, case.tensors[f"out.{tag}.y"]
        yield f"mid.{tag}.attn", attn, case.tensors[f"mid.{tag}.attn"]


RUNNERS: dict[str, Callable[[Case], Comparisons]] = {
    "s000": lambda case: run(case, system_000, NAMES_000, ("X", "X_lens", "labels")),
    "s001": lambda case: run(case, system_001, NAMES_001, ("src", "tgt", "src_mask", "tgt_mask")),
    "s003_dropout": dropout_of_003,
    "s002": lambda case: run(case, system_002, NAMES_002, ("src", "trg")),
}
