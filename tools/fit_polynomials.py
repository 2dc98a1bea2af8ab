"""Fit the polynomials of `dialects/expansions` and print its tables.

    python tools/fit_polynomials.py            # every table (a few minutes)
    python tools/fit_polynomials.py EXP LOG    # the ones named

A table holds the coefficients, lowest degree first, of the polynomial p for which max |weight(x) (p(x) - target(x))|
over an interval is smallest. The weight turns the error of p into the relative error of the function that uses it,
so the `error` printed is what the approximation alone costs; compare it with half an ULP, 2^-25 or 2^-54.

The method is Remez' exchange on a fine Chebyshev grid in mpmath. Coefficients are then rounded to the float type one
by one, from the lowest degree, and the remaining ones are fitted again after each, so that they make up for the
rounding. Needs mpmath; nothing else of mlc is used.
"""
from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mpmath import mp

mp.prec = 320
Real = Any  # an mpmath number: mpmath has no types


@dataclass(frozen=True)
class Fit:
    """One table: `terms` coefficients of the given float `bits` for `target` on [low, high]."""

    table: str
    bits: int
    terms: int
    low: Real
    high: Real
    target: Callable[[Real], Real]
    weight: Callable[[Real], Real]


def round_to(value: Real, bits: int) -> Real:
    """The nearest float of that width (coefficients are far from its denormals)."""
    digits = {32: 24, 64: 53}[bits]
    with mp.workprec(digits):
        return +value


def chebyshev_grid(low: Real, high: Real, count: int) -> list[Real]:
    """`count` points of [low, high], dense at the ends; none is a zero of the symmetric functions."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * mp.cos(mp.pi * (2 * j + 1) / (2 * count)) for j in range(count)]


def alternation(errors: list[Real], count: int) -> list[int] | None:
    """Indices of `count` extrema of alternating sign, or None if there are not as many."""
    peaks: list[int] = []
    for j, e in enumerate(errors):
        if not peaks or (e > 0) != (errors[peaks[-1]] > 0):
            peaks.append(j)
        elif abs(e) > abs(errors[peaks[-1]]):
            peaks[-1] = j
    while len(peaks) > count:
        if len(peaks) == count + 1:
            del peaks[0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1]
        else:
            weakest = min(range(len(peaks) - 1), key=lambda j: max(abs(errors[peaks[j]]), abs(errors[peaks[j + 1]])))
            del peaks[weakest : weakest + 2]
    return peaks if len(peaks) == count else None


def polynomial(coefficients: list[Real], x: Real) -> Real:
    return mp.polyval(coefficients[::-1], x)


def remez(grid: list[Real], target: list[Real], weight: list[Real], first: int, terms: int) -> list[Real]:
    """Coefficients of x^first ... x^(first+terms-1) with the smallest weighted error against `target`."""
    chosen = [round((len(grid) - 1) * (1 - mp.cos(mp.pi * j / terms)) / 2) for j in range(terms + 1)]
    if len(set(chosen)) < len(chosen):
        raise ValueError("the grid is too coarse")
    coefficients: list[Real] = []
    for _ in range(40):
        matrix, right = mp.matrix(terms + 1, terms + 1), mp.matrix(terms + 1, 1)
        for row, j in enumerate(chosen):
            power = grid[j] ** first
            for column in range(terms):
                matrix[row, column] = power
                power *= grid[j]
            matrix[row, terms] = (-1) ** row / weight[j]
            right[row] = target[j]
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[j] for j in range(terms)]
        errors = [w * (x**first * polynomial(coefficients, x) - t) for x, t, w in zip(grid, target, weight)]
        following = alternation(errors, terms + 1)
        if following is None or max(map(abs, errors)) < abs(solution[terms]) * 1.0001:
            break
        chosen = following
    return coefficients


def fit(spec: Fit) -> tuple[list[Real], Real]:
    """The rounded coefficients and the largest weighted error they leave."""
    grid = chebyshev_grid(mp.mpf(spec.low), mp.mpf(spec.high), 24 * spec.terms)
    target, weight = [spec.target(x) for x in grid], [abs(spec.weight(x)) for x in grid]
    rounded: list[Real] = []
    rest = list(target)
    kept: list[Real] = []

    def error(first: int, coefficients: list[Real]) -> Real:
        return max(abs(w * (x**first * polynomial(coefficients, x) - t)) for x, t, w in zip(grid, rest, weight))

    for first in range(spec.terms):
        again = remez(grid, rest, weight, first, spec.terms - first)
        kept = again if not kept or error(first, again) < error(first, kept) else kept
        rounded.append(round_to(kept[0], spec.bits))
        rest = [t - rounded[first] * x**first for x, t in zip(grid, rest)]
        kept = kept[1:]
    worst = max(abs(w * (polynomial(rounded, x) - t)) for x, t, w in zip(grid, target, weight))
    return rounded, worst


def exp2_tail(linear: Real) -> Callable[[Real], Real]:
    """(2^f - 1 - linear f) / f^2"""
    return lambda f: (mp.mpf(2) ** f - 1 - linear * f) / f**2


def log_tail(scale: Real) -> Callable[[Real], Real]:
    """scale (log(1+f) - f) / f^2"""
    return lambda f: scale * (mp.log1p(f) - f) / f**2


ERFCX_CENTRE = 3


def scaled_erfc(q: Real) -> Real:
    """(1 + 2 t) e^(t^2) erfc t, where q = (t - c) / (t + c)"""
    t = ERFCX_CENTRE * (1 + q) / (1 - q)
    return (1 + 2 * t) * mp.exp(t * t) * mp.erfc(t)


def tables() -> Iterator[Fit]:
    half_ln2, quarter_pi2, log2e = mp.ln2 / 2, (mp.pi / 4) ** 2, 1 / mp.ln2
    for bits, n in ((32, 0), (64, 1)):
        yield Fit("EXP", bits, (6, 10)[n], -half_ln2, half_ln2,
                  lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: r**2 / mp.exp(r))
        yield Fit("EXP2", bits, (5, 11)[n], mp.mpf(-0.5), mp.mpf(0.5),
                  exp2_tail(round_to(mp.ln2, bits)), lambda f: f**2 / mp.mpf(2)**f)
        yield Fit("LOG", bits, (9, 21)[n], mp.mpf(-0.25), mp.mpf(0.5), log_tail(mp.mpf(1)),
                  lambda f: f**2 / mp.log1p(f))
        yield Fit("LOG2", bits, (10, 21)[n], mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, log_tail(log2e),
                  lambda f: f**2 / (mp.log1p(f) * log2e))
        yield Fit("TANH", bits, (7, 16)[n], mp.mpf(0), mp.mpf(1),
                  lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)))
        yield Fit("ERF", bits, (7, 13)[n], mp.mpf(0), mp.mpf(1),
                  lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)))
        yield Fit("ERFC", bits, (7, 20)[n], mp.mpf(1), (mp.mpf(4), mp.mpf(6))[n],
                  lambda t: -mp.log(mp.erfc(t)), lambda t: mp.erfc(t) / mp.erf(t))
        yield Fit("ATAN", bits, (5, 12)[n], mp.mpf(0), mp.mpf(0.25),
                  lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)))
        yield Fit("ERFCX", bits, (11, 23)[n], (mp.mpf("0.49") - ERFCX_CENTRE) / (mp.mpf("0.49") + ERFCX_CENTRE),
                  ((mp.mpf("10.1") - ERFCX_CENTRE) / (mp.mpf("10.1") + ERFCX_CENTRE),
                   (mp.mpf(27) - ERFCX_CENTRE) / (mp.mpf(27) + ERFCX_CENTRE))[n],
                  lambda q: scaled_erfc(q) - mp.mpf("1.25"), lambda q: 1 / scaled_erfc(q))
        # These of f32 are computed in f64, hence its coefficients but fewer of them; so is pow.
        yield Fit("SINH", 64, (4, 8)[n], mp.mpf(0), mp.mpf(1),
                  lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z * mp.sqrt(z) / mp.sinh(mp.sqrt(z)))
        yield Fit("ASIN", 64, (7, 13)[n], mp.mpf(0), mp.mpf(0.25),
                  lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z * mp.sqrt(z) / mp.asin(mp.sqrt(z)))
        yield Fit("SIN", 64, (4, 7)[n], mp.mpf(0), quarter_pi2,
                  lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)))
        yield Fit("COS", 64, (4, 6)[n], mp.mpf(0), quarter_pi2,
                  lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(mp.sqrt(z)))
    yield Fit("LOG2_ERFC", 32, 12, mp.mpf(0), mp.mpf("9.194"), lambda t: -mp.log(mp.erfc(t)) / mp.ln2, lambda t: mp.ln2)
    yield Fit("SHORT_EXP2", 32, 5, mp.mpf(-0.5), mp.mpf(0.5), lambda f: mp.mpf(2)**f, lambda f: 1 / mp.mpf(2)**f)
    yield Fit("POW_LOG", 64, 8, mp.mpf(0), mp.mpf(1) / 25,
              lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2 - z * 2 / 3) / z**2, lambda z: z**2 / 2)
    yield Fit("POW_LOG2", 64, 13, mp.mpf(-0.25), mp.mpf(0.5), log_tail(log2e),
              lambda f: f**2 / (mp.log1p(f) * log2e))
    yield Fit("POW_EXP2", 64, 6, mp.mpf(-0.5), mp.mpf(0.5),
              exp2_tail(round_to(mp.ln2, 64)), lambda f: f**2 / mp.mpf(2)**f)


def main(names: list[str]) -> None:
    for spec in tables():
        if names and spec.table not in names:
            continue
        coefficients, worst = fit(spec)
        print(f"# {spec.table} f{spec.bits} on [{mp.nstr(spec.low, 6)}, {mp.nstr(spec.high, 6)}],"
              f" error 2^{mp.nstr(mp.log(worst, 2), 4)}")
        words = [re.sub("0+p", "p", float(c).hex()) for c in coefficients]
        for at in range(0, len(words), 4):
            print("    " + " ".join(words[at : at + 4]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
