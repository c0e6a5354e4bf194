"""Train multi-label classifiers on wrong, missing and imbalanced labels, and learn which to fix."""

__version__ = "0.1.0"
