"""A small model that is trained already: English number words to German ones, with one attention head a layer.

    model, task = number_words_model()

The weights lie beside this file. `make checkpoint` trains them anew, in a quarter of a minute, and another machine gets
others (see `rebuild`); how they are trained is lesson 09, notebooks/09_training.ipynb.
"""

from .number_words import RECIPE, number_words_model, rebuild, summary

__all__ = ["RECIPE", "number_words_model", "rebuild", "summary"]
