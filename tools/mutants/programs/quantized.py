"""Quantised matrices of two encodings: exact products and products of integers, of rows that fill no whole tiles."""

import numpy as np

import mlc
from mlc.frontend.functions.quantized import dequantize_blocks, quantized_linear

ENCODINGS = {"q8_0": (32, 34, (0,)), "q4_k": (256, 144, (0, 2))}
"""Numbers of a block, its bytes, and where numbers in f16 are."""


def blocks(rng, encoding, rows, count):
    """Random blocks; numbers in f16 are small ones."""
    _, size, halves = ENCODINGS[encoding]
    raw = rng.integers(0, 256, (rows, count, size), dtype=np.uint8)
    for at in halves:
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
    for encoding, rows in (("q4_k", 2), ("q8_0", 5)):
        numbers = ENCODINGS[encoding][0]
        w, x = blocks(rng, encoding, 3, 1), rng.standard_normal((rows, numbers)).astype(np.float32)
        mlc.compile(lambda x, w, encoding=encoding: quantized_linear(x, w, encoding))(x, w)
        mlc.compile(exact(encoding))(x, w)
