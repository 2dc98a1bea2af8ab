"""Tests: one module per source module, file cases in cases/, and whole-registry tests."""
