"""Tests of mlc.nn: modules, layers, saving."""
