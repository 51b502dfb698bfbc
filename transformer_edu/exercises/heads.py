"""Exercises of lesson 03: split_heads, merge_heads, multi_head_attention."""

from .multi_head import MULTI_HEAD_ATTENTION
from .split_merge import MERGE_HEADS, SPLIT_HEADS

EXERCISES = (SPLIT_HEADS, MERGE_HEADS, MULTI_HEAD_ATTENTION)
