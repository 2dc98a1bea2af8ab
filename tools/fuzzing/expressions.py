"""Expressions of random Python programs: `x` and `y` stand for tensors, `d` for a dimension of x."""

from __future__ import annotations

UNARY = ("T.exp({x})", "T.sin({x})", "T.cos({x})", "T.tanh({x})", "T.abs({x})", "-{x}", "T.sigmoid({x})", "T.relu({x})",
         "T.square({x})", "T.erf({x})", "T.expm1({x})", "T.atan({x})", "T.asinh({x})", "T.log1p(T.abs({x}))",
         "T.sqrt(T.abs({x}) + 1)", "T.rsqrt(1 + {x} * {x})", "T.sinh({x})", "T.erfc({x})", "{x}.clamp(-1, 1.5)",
         "{x} ** 2", "{x} ** 3", "1 / (2 + {x} * {x})", "T.nn.functional.gelu({x})",
         "T.nn.functional.silu({x}.clamp(min=-99))",
         "T.nn.functional.softplus({x})", "T.nn.functional.elu({x})", "T.nn.functional.hardtanh({x})",
         "T.nn.functional.leaky_relu({x}, 0.1)", "T.where({x} > 0, {x}, {x} * 0.5)", "T.floor({x}) + {x}",
         "T.round({x}) * {x}", "T.sign({x}) * {x}", "{x}.detach() + {x}", "T.clamp({x}, min=0.1)",
         "T.logaddexp({x}, {x})",
         "T.nan_to_num({x})", "T.trunc({x}) + {x}", "T.frac({x})", "T.sinc({x})", "T.log2(T.abs({x}) + 2)")
BINARY = ("{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / (1.5 + T.abs({y}))", "T.maximum({x}, {y})",
          "T.minimum({x}, {y})", "T.atan2({x}, {y})", "T.hypot({x}, 1 + T.abs({y}))", "T.where({x} < {y}, {x}, {y})",
          "T.fmod({x}.clamp(-99, 99), 0.7 + T.abs({y}))", "T.remainder({x}.clamp(-99, 99), 0.7 + T.abs({y}))",
          "T.lerp({x}, {y}, 0.3)",      # the remainder of a large number says nothing of the last bits of the other
          "T.logaddexp({x}, {y})", "T.addcmul({x}, {y}, {y})", "T.pow(T.abs({x}) + 0.5, {y})",
          "T.copysign({x}, T.nan_to_num({y}))", "T.xlogy({x}, T.abs({y}) + 1)", "T.fmax({x}, {y})",
         "T.heaviside({x}, {y})")
ALONG = ("T.softmax({x}, {d})", "T.log_softmax({x}, {d})", "T.cumsum({x}, {d})", "T.cumprod({x}, {d})",
         "T.flip({x}, ({d},))", "T.roll({x}, 2, {d})", "T.sort({x}, {d})[0]", "T.cummax({x}, {d})[0]",
         "T.logcumsumexp({x}, {d})", "T.nn.functional.normalize({x}, dim={d})", "T.sort({x}, {d}, descending=True)[0]",
         "{x} - {x}.mean({d}, keepdim=True)", "T.gather({x}, {d}, T.argsort({x}, {d}))")
REDUCED = ("T.sum({x}, {d})", "T.mean({x}, {d})", "T.amax({x}, {d})", "T.amin({x}, {d})", "T.prod({x}, {d})",
           "T.logsumexp({x}, {d})", "T.var({x}, {d}, correction=0)", "{x}.max({d})[0]", "{x}.min({d}).values",
           "T.norm({x}, dim={d})", "T.nansum({x}, {d})", "{x}.select({d}, 0)", "T.median({x}, {d})[0]",
           "T.std(T.cumsum({x}, {d}), {d}, correction=0)", "T.unbind({x}, {d})[-1]")
