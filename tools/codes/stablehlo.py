"""Errors of programs of StableHLO."""

TEXT = '''
MLC0860 A text is no StableHLO.
A token is not expected at its place, a name is not defined, an operation breaks a rule of its own, or its results have
other types than the text gives them.
example python:
    import mlc
    mlc.stablehlo.load("func.func @main() -> tensor<f32> { return %x : tensor<f32> }")
fix: write the program by a tool such as jax.jit(f).lower(...).as_text(), and check it with stablehlo-opt.

MLC0861 mlc does not run an operation or a type of a program of StableHLO.
Among them are those that communicate with other devices, quantized types, elements of fewer than 8 bits, and custom
calls that mlc does not know.
example python:
    import mlc
    mlc.stablehlo.load("""
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "stablehlo.custom_call"(%x) {call_target_name = "mine"} : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
fix: write the program for one device, without the operation; `mlc import FILE` lists all of them.

MLC0862 A program of StableHLO is called, within another function, with arrays of other types than it takes.
Its sizes are numbers, but for those that the text writes as `?`.
example python:
    import mlc
    f = mlc.stablehlo.load("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    mlc.compile(lambda x: f(x))(mlc.ones(3))
fix: pass arrays of the types that the message names, or write the program for other sizes.

MLC0863 A portable artifact of StableHLO cannot be read.
It is in MLIR's bytecode, which jaxlib reads: it is damaged, of a later version, or jaxlib is not installed.
example text:
    error[MLC0863]: the portable artifact cannot be read: it is damaged
fix: install jaxlib, or save the program as text.

MLC0864 A function cannot be written as StableHLO.
Its sizes are symbols, or it has an operation without a counterpart.
example python:
    import mlc
    mlc.stablehlo.text(lambda x: x + 1, [mlc.spec("B")])
fix: give arguments of fixed sizes; write the function without the operation that the message names.
'''
