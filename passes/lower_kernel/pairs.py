"""Pairs of integers of a block of a quantised tensor, 16 bits each, and the scales and minima of all pairs of a block.

In vectors, the integers are the words of the lanes; a block of no lanes gives one pair, both words in one i32, on which
the same steps are done at once: integers are smaller than a byte, so that no bits of one get into the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from mlc.dialects import arith, vector
from mlc.ir.core import Value
from mlc.ir.types import VectorType, f32, i16, i32, index
from mlc.passes.lower_kernel.blocks import HALF, Block


# -- integers ---------------------------------------------------------------------------------------------------------
def _bytes(b: Block, at: Value, offset: int) -> Value:
    """Bytes, two per lane: those from one on of a group of 16 or more that starts at `offset`."""
    return b.several(b.at(at, offset), 2 * max(1, b.lanes), gcd(offset, 2 * b.divisor))


def _words(b: Block, at: Value, offset: int) -> Value:
    """The same, in 16 bits each."""
    both = _bytes(b, at, offset)
    if b.lanes:
        return arith.ExtUI(both, VectorType((2 * b.lanes,), i16)).result
    low, high = (arith.ExtUI(vector.Extract(both, (), (i,)).result, i32).result for i in (0, 1))
    return arith.OrI(low, arith.ShLI(high, arith.constant(16, i32)).result).result


def _each(number: int, words: Value) -> Value:
    """A number in every word."""
    if isinstance(words.type, VectorType):
        return arith.constant(number, words.type)
    both = number << 16 | number
    return arith.constant(both - (1 << 32 if both >> 31 else 0), words.type)


def _bits(words: Value, shift: Value, mask: int) -> Value:
    """Some bits of each word, from a place on."""
    type = words.type
    by = (vector.splat(arith.IndexCast(shift, i16).result, type.shape[0]) if isinstance(type, VectorType)
          else arith.IndexCast(shift, type).result)
    return arith.AndI(arith.ShRUI(words, by).result, _each(mask, words)).result


def _as_pairs(b: Block, words: Value) -> Value:
    return vector.Bitcast(words, b.type(i32)).result if b.lanes else words


def _less(words: Value, number: int) -> Value:
    """Each word, which is not negative, less a number. With the highest bit set, a word borrows nothing from the next
    one, and the bit says whether the difference is negative.
    """
    if isinstance(words.type, VectorType):
        return arith.SubI(words, _each(number, words)).result
    sign = _each(1 << 15, words)
    return arith.XorI(arith.SubI(arith.OrI(words, sign).result, _each(number, words)).result, sign).result


def _twice(b: Block) -> Value:
    """The number of the first of the numbers of the lanes, which are two each, in the block."""
    return arith.MulI(b.inside, arith.constant(2, index)).result


def _pairs_q8_0(b: Block) -> Value:
    if b.lanes:
        return _as_pairs(b, arith.ExtSI(_bytes(b, _twice(b), 2), VectorType((2 * b.lanes,), i16)).result)
    words = _words(b, _twice(b), 2)
    return _less(arith.XorI(words, _each(128, words)).result, 128)


def _halves_as_words(b: Block, offset: int) -> Value:
    """4 bits per number of 16 bytes, of which the low bits come first."""
    if b.lanes < HALF:
        return _nibbles_as_words(b, offset, 16)
    words = arith.ExtUI(b.several(b.at(offset), HALF, offset), VectorType((HALF,), i16)).result
    low = arith.AndI(words, arith.constant(15, words.type)).result
    high = arith.ShRUI(words, arith.constant(4, words.type)).result
    return vector.Shuffle(low, high, tuple(range(2 * HALF))).result


def _pairs_q4_0(b: Block) -> Value:
    return _as_pairs(b, _less(_halves_as_words(b, 2), 8))


def _pairs_q4_1(b: Block) -> Value:
    return _as_pairs(b, _halves_as_words(b, 4))


def _nibbles_as_words(b: Block, offset: int, group: int) -> Value:
    """4 bits per number, of groups of bytes whose low bits come first."""
    log = group.bit_length() - 2                           # in pairs
    start = arith.MulI(b.part(log + 1, 255), arith.constant(group, index)).result
    within = arith.MulI(b.part(0, group // 2 - 1), arith.constant(2, index)).result
    high = arith.MulI(b.part(log, 1), arith.constant(4, index)).result
    return _bits(_words(b, arith.AddI(start, within).result, offset), high, 15)


def _above(words: Value, more: Value) -> Value:
    return arith.OrI(words, arith.ShLI(more, arith.constant(4, more.type)).result).result


def _pairs_q4_k(b: Block) -> Value:
    return _as_pairs(b, _nibbles_as_words(b, 16, 32))


def _pairs_q5_k(b: Block) -> Value:
    within = arith.MulI(b.part(0, 15), arith.constant(2, index)).result
    fifth = _bits(_words(b, within, 16), b.part(4, 7), 1)
    return _as_pairs(b, _above(_nibbles_as_words(b, 48, 32), fifth))


def _pairs_q6_k(b: Block) -> Value:
    part = arith.MulI(b.part(6, 1), arith.constant(32, index)).result
    within = arith.MulI(b.part(0, 15), arith.constant(2, index)).result
    two = _bits(_words(b, arith.AddI(part, within).result, 128),
                arith.MulI(b.part(4, 3), arith.constant(2, index)).result, 3)
    return _as_pairs(b, _less(_above(_nibbles_as_words(b, 0, 64), two), 32))


PAIRS: Mapping[str, Callable[[Block], Value]] = {
    "q8_0": _pairs_q8_0, "q4_0": _pairs_q4_0, "q4_1": _pairs_q4_1, "q4_k": _pairs_q4_k, "q5_k": _pairs_q5_k,
    "q6_k": _pairs_q6_k}
"""The pairs of the lanes."""


def as_numbers(b: Block, numbers: int = 2) -> Block:
    """A block of pairs, or of more numbers, as one of numbers, at the first number of the first lane."""
    inside = arith.MulI(b.inside, arith.constant(numbers, index)).result
    return Block(b.flat, b.start, inside, b.lanes, b.aligned, gcd(numbers * b.divisor, HALF))


# -- scales and minima of all pairs -----------------------------------------------------------------------------------
def _all_of_k(b: Block, part: int) -> Value:
    """The 8 scales (part 1) or minima (part 2)."""
    four = VectorType((4,), i32)

    def bytes(offset: int) -> Value:
        return arith.ExtUI(b.several(b.at(offset), 4, offset), four).result

    own, high = bytes(4 * part), bytes(12)
    low = arith.AndI(own, arith.constant(63, four)).result
    top = arith.ShLI(arith.ShRUI(own, arith.constant(6, four)).result, arith.constant(4, four)).result
    rest = arith.ShRUI(high, arith.constant(4, four)).result if part == 2 else arith.AndI(
        high, arith.constant(15, four)).result
    late = arith.OrI(rest, top).result
    both = vector.Shuffle(low, late, tuple(range(8))).result
    numbers = arith.SIToFP(both, VectorType((8,), f32)).result
    return arith.MulF(vector.splat(b.half(2 * part - 2), 8), numbers).result


def _all_of_q6_k(b: Block, part: int) -> Value:
    """The 16 scales."""
    raw = b.several(b.at(192), 16, 192)
    numbers = arith.SIToFP(arith.ExtSI(raw, VectorType((16,), i32)).result, VectorType((16,), f32)).result
    return arith.MulF(vector.splat(b.half(208), 16), numbers).result


ALL_SCALES: Mapping[str, Callable[[Block, int], Value]] = {
    "q4_k": _all_of_k, "q5_k": _all_of_k, "q6_k": _all_of_q6_k}
