"""Samples of operations on quantised tensors."""

from __future__ import annotations

from mlc.dialects import tensor
from mlc.dialects.tensor.base import cast, full, reshape
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.ir.core import Value
from mlc.ir.types import f32
from tests.op_sample import Sample, t

LEAST, MOST = 0, 60
"""Of bytes: two of them are a number in f16 that is no more than 1.1."""


def _samples() -> list[Sample]:
    out = [Sample((t(rows),), lambda x, e=e: tensor.Dequantize(x, e), LEAST, MOST) for rows, e in (
        ("34xui8", "q8_0"), ("0x34xui8", "q8_0"), ("1x68xui8", "q8_0"), ("3x18xui8", "q4_0"), ("Bx20xui8", "q4_1"),
        ("2x3x36xui8", "q4_0"), ("2x144xui8", "q4_k"), ("3x176xui8", "q5_k"), ("3x420xui8", "q6_k"),
        ("3x0xui8", "q8_0"))]
    out += [Sample((t(x), t(w)), lambda x, w, e=e: tensor.QuantizedDot(x, w, e), LEAST, MOST) for x, w, e in (
        ("32xf32", "3x34xui8", "q8_0"), ("1x64xf32", "5x68xui8", "q8_0"), ("0x32xf32", "3x18xui8", "q4_0"),
        ("Bx32xf32", "1x20xui8", "q4_1"), ("2x3x32xf32", "7x18xui8", "q4_0"), ("2x256xf32", "3x144xui8", "q4_k"),
        ("3x256xf32", "5x176xui8", "q5_k"), ("5x256xf32", "3x210xui8", "q6_k"))]
    out += [Sample((t(f"{rows}xi32"), t(f"{rows}xf32"), t(f"{rows}xf32"), t(w)),
                   lambda x, s, m, w, e=e: tensor.DotBlocks(x, s, m, w, e), LEAST, MOST) for rows, w, e in (
        ("16", "3x34xui8", "q8_0"), ("1x32", "5x68xui8", "q8_0"), ("0x16", "3x18xui8", "q4_0"),
        ("Bx16", "1x20xui8", "q4_1"), ("7x128", "5x144xui8", "q4_k"))]
    out += [Sample((t(f"{rows}x{quads}xi32"), t(f"{rows}x{groups}xf32"), t(w)),
                   lambda x, s, w, e=e: tensor.DotGroups(x, s, _sums(x, s, e), w, e), LEAST, MOST)
            for rows, quads, groups, w, e in (
        (1, 8, 1, "3x34xui8", "q8_0"), (9, 16, 2, "5x68xui8", "q8_0"), (0, 8, 1, "3x18xui8", "q4_0"),
        ("B", 8, 1, "1x20xui8", "q4_1"), ("2x3", 64, 8, "5x144xui8", "q4_k"), (3, 64, 8, "17x176xui8", "q5_k"),
        (11, 64, 16, "2x210xui8", "q6_k"))]
    ones = ([1] * 8, [0.5], [-8 * ENCODINGS["q8_0"].zero], [list(range(26, 60))] * 2)
    return [*out, Sample((t("8xi32"), t("1xf32"), t("1xi32"), t("2x34xui8")),
                         lambda x, s, m, w: tensor.DotGroups(x, s, m, w, "q8_0"), values=ones)]


def _sums(x: Value, scale: Value, encoding: str) -> Value:
    """The operand of that name for words of a number from 0 to 60: code for GPUs computes it anew."""
    layout, shape = ENCODINGS[encoding], scale.type.shape
    words = reshape(x, (*shape, layout.group // 4))
    total = tensor.ReduceSum(words, (len(shape),)).result     # each word is one number, the three above it are 0
    return scale * cast(total, f32) if layout.minima else total * full(-layout.zero, total)


SAMPLES = _samples()
