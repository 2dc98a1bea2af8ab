"""Analyses: properties of a module that passes compute without changing it."""
