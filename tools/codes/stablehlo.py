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
It has an operation without a counterpart.
example python:
    import mlc
    mlc.stablehlo.text(lambda x: mlc.where(x > 0, x, 0)[..., ::-1].nonzero(), [mlc.spec(3)])
fix: write the function without the operation that the message names.

MLC0865 A function with sizes that elements determine cannot be written as StableHLO.
Programs of XLA have sizes that are known when they are compiled; those of arguments may be symbols until then.
example python:
    import mlc
    mlc.stablehlo.text(lambda x: x[x > 0], [mlc.spec(3)])
fix: give the array a fixed size, and a mask of the elements that count.

MLC0866 A function that reports errors at run time cannot be written as StableHLO.
No operation of XLA stops a program because of the elements of arrays.
example python:
    import mlc
    def f(x):
        assert x.sum() > 0
        return x
    mlc.stablehlo.text(f, [mlc.spec(3)])
fix: return the condition as a result, and check it where the results are used.

MLC0867 A module is below the level that models are written from.
StableHLO and ONNX are made of tensor operations.
example text:
    error[MLC0867]: low.mlir has memref.load, which is below the level tensor; stablehlo is made of tensor operations
fix: give the module at the level tensor.
'''
