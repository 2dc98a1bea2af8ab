"""Transformations, one per module; the module's name is the pass's name."""
