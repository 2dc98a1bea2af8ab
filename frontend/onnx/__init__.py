"""ONNX models as functions on mlc's tensors; README.md describes the parts."""

from __future__ import annotations
