"""Quantised matrices of every encoding: exact products and products of integers, of rows that fill no whole tiles."""

import numpy as np

import mlc
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.frontend.functions.quantized import dequantize_blocks, quantized_linear

HALVES = {"q8_0": (0,), "q4_0": (0,), "q4_1": (0, 2), "q4_k": (0, 2), "q5_k": (0, 2), "q6_k": (208,)}
"""Where numbers in f16 are in a block."""


def blocks(rng, encoding, rows, count):
    """Random blocks; numbers in f16 are small ones."""
    size = ENCODINGS[encoding].bytes
    raw = rng.integers(0, 256, (rows, count, size), dtype=np.uint8)
    for at in HALVES[encoding]:
        scales = rng.uniform(-0.02, 0.02, (rows, count)).astype(np.float16)
        raw[:, :, at: at + 2] = scales[..., None].view(np.uint8)
    return raw.reshape(rows, count * size)


def exact(encoding):
    def f(x, w):
        numbers = dequantize_blocks(w, encoding)
        return x @ numbers.t(), numbers.t() + 1
    return f


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for i, encoding in enumerate(HALVES):
        numbers, rows = ENCODINGS[encoding].elements, (5, 2)[i % 2]
        w, x = blocks(rng, encoding, 3, 1), rng.standard_normal((rows, numbers)).astype(np.float32)
        mlc.compile(lambda x, w, encoding=encoding: quantized_linear(x, w, encoding))(x, w)
        mlc.compile(exact(encoding))(x, w)
