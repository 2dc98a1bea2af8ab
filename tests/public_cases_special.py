"""Cases of special functions."""

from __future__ import annotations

import math

from tests.public_case import C, F, K, N, P, U

ENDS = K(0.0, 1.0, 2.0, 0.5, -0.5, 1e-6, 20.0, 1e4, math.inf, math.nan)
WAVES = ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
         "scaled_modified_bessel_k0", "scaled_modified_bessel_k1")
POLYNOMIALS = (*(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
               "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")

CASES = [
    C("lgamma", U(-4.8, 12, 3, 7)), C("digamma", U(0.2, 12, 3, 7)),
    *(C(name, ENDS, constant=(0,)) for name in ("lgamma", "digamma", "i0", "special.i0e", "special.i1", "special.i1e",
                                                "special.ndtr", "special.log_ndtr", "special.erfcx", "special.entr",
                                                "special.spherical_bessel_j0")),
    C("lgamma", K(-1.0, -0.5, -2.5, -20.3), constant=(0,)), C("digamma", K(-1.0, -0.5, -2.5, -20.3), constant=(0,)),
    C("lgamma", N(9, 5)), C("mvlgamma", U(2, 9, 5), 3), C("polygamma", 0, P(5)), C("polygamma", 1, P(5), slow=True),
    C("polygamma", 3, U(0.3, 12, 5), slow=True), C("polygamma", 1, K(-0.5, -3.3, 0.0), constant=(1,)),
    C("polygamma", 2, U(0.5, 5, 5), slow=True),
    C("special.zeta", U(1.5, 6, 5), U(0.2, 15, 5), constant=(0, 1)),
    C("special.zeta", K(2.0, 1.0, 0.5), P(3), constant=(0, 1)),
    *(C(name, U(-30, 30, 9)) for name in ("i0", "special.i0e", "special.i1", "special.i1e")),
    *(C(name, F(9)) for name in ("special.ndtr", "special.log_ndtr", "special.erfcx")),
    C("special.spherical_bessel_j0", F(9), constant=(0,)), C("special.log_ndtr", U(-9, 8, 9)),
    C("special.erfcx", U(-3, 60, 9)), C("special.entr", P(5)),
    C("special.xlog1py", F(5), P(5)), C("special.ndtri", U(0.01, 0.99, 9)),
    C("special.ndtri", K(0.0, 1.0, -0.5, 1e-30, math.nan), constant=(0,)),
    *(C(f"special.{name}", U(-30, 30, 30), constant=(0,)) for name in WAVES),
    *(C(f"special.{name}", ENDS, constant=(0,)) for name in WAVES if name.endswith(("k0", "k1"))),
    *(C(f"special.{name}", K(0.0, 1e-6, 20.0, 1e4, math.nan), constant=(0,)) for name in WAVES[1:5]),
    *(C(f"special.{name}", U(-2, 2, 9), N(8, 9, low=-1), constant=(0,)) for name in POLYNOMIALS),
    C("igamma", P(9), P(9), constant=(0,)), C("igammac", U(50, 150, 9), U(50, 150, 9), constant=(0,)),
    C("igamma", K(1.0, 0.0, 0.0, math.inf, 2.0, -1.0), K(0.0, 1.0, 0.0, 1.0, math.inf, 1.0), constant=(0, 1)),
    C("special.xlog1py", K(0.0, 0.0, 1.0), K(-1.0, math.nan, -1.0), constant=(0, 1)),
]
