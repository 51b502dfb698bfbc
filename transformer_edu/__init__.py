"""Build the Transformer piece by piece: the reference modules behind the notebooks.

Each module is named after its lesson: `transformer_edu.masks` belongs to `notebooks/01_masks.ipynb`, and so on.
Importing this package defines names and does nothing else.
"""

__version__ = "0.1.0"
