"""Error codes of the tensor dialect."""

TEXT = r'''
MLC0110 A numpy dtype has no corresponding element type.
Tensors hold bool, integers of 8 to 64 bits, floats (f16, bf16, f32, f64), or complex numbers of f32 or f64.
example python:
    import numpy as np
    from mlc.ir.types import from_numpy
    from_numpy(np.dtype("timedelta64"))
fix: convert the array, for example with x.astype(np.float32).

MLC0111 Shapes do not broadcast.
Shapes are aligned at the right; two sizes are compatible if they are provably equal or one of them is the literal 1. A
symbolic size that happens to be 1 at run time does not broadcast.
example python:
    import mlc, numpy as np
    mlc.add(np.zeros((2, 3), np.float32), np.zeros(4, np.float32))
fix: reshape or transpose one operand; to let a symbolic size broadcast, make it 1 in the type.

MLC0112 The element types of operands differ.
The IR has no implicit conversions: the frontend inserts the casts of type promotion.
example mlir:
    func.func @f(%x: tensor<2xf32>, %y: tensor<2xf64>) -> tensor<2xf64> {
      %z = tensor.add %x, %y : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf64>
      func.return %z : tensor<2xf64>
    }
fix: tensor.cast the operands to one type.

MLC0113 An operation does not support this element type.
example mlir:
    func.func @f(%x: tensor<2xi32>) -> tensor<2xi32> {
      %y = tensor.exp %x : tensor<2xi32>
      func.return %y : tensor<2xi32>
    }
fix: cast to one of the types that the message lists.

MLC0114 An axis is out of range, used twice, or out of order.
example mlir:
    func.func @f(%x: tensor<2xf32>) -> tensor<f32> {
      %y = tensor.reduce_sum %x {axes = [1]} : (tensor<2xf32>) -> tensor<f32>
      func.return %y : tensor<f32>
    }
fix: count axes from 0 to rank - 1, in ascending order; negative ones exist only in the Python interface.

MLC0115 Sizes do not match: of contracted axes, of a reshape, of concatenated tensors, or of indices.
example mlir:
    func.func @f(%x: tensor<2x3xf32>) -> tensor<5xf32> {
      %y = tensor.reshape %x : tensor<2x3xf32> to tensor<5xf32>
      func.return %y : tensor<5xf32>
    }
fix: the message shows both sizes and their axes; change one of the shapes.

MLC0688 An operation requires a static size.
example mlir:
    func.func @f(%x: tensor<BxTx2xf32>) -> tensor<BxTx2xf32> {
      %y = tensor.dft %x {axis = 1} : tensor<BxTx2xf32>
      func.return %y : tensor<BxTx2xf32>
    }
fix: use a number for the size; mlc.compile does so by itself, unless a specification has a symbol there.

MLC0116 An attribute has an invalid value.
example mlir:
    func.func @f(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
      %y = tensor.transpose %x {perm = [1, 1]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
      func.return %y : tensor<3x2xf32>
    }
fix: give one of the values that the message lists.

MLC0117 A list attribute does not have one entry per dimension, or is empty where it may not be.
example mlir:
    func.func @f(%x: tensor<4xf32>) -> tensor<2xf32> {
      %y = tensor.slice %x {starts = [0, 0], stops = [2, 2], steps = [1, 1]} : (tensor<4xf32>) -> tensor<2xf32>
      func.return %y : tensor<2xf32>
    }
fix: write one entry for each dimension of the operand.

MLC0118 An operand is not a tensor.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = tensor.exp %x : f32
      func.return %y : f32
    }
fix: operations of the tensor dialect take tensors; use arith and math for scalars.

MLC0119 The body of a tensor.map does not match its operands.
example mlir:
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = tensor.map %x : tensor<2xf32> {
      ^bb0(%a: f64):
        tensor.yield %a : f64
      }
      func.return %y : tensor<2xf32>
    }
fix: the body must take one scalar per operand, of its element type, and yield one value.

MLC0153 The block arguments of a kernel's body do not match its operands or buffers.
example mlir:
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = tensor.kernel %x {label = "copy", domain = [2], iterator_types = ["parallel"], indexing_maps =
          [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], operandSegmentSizes = [1, 0, 0, 0]} : tensor<2xf32> {
      ^bb0(%a: tensor<3xf32>):
        tensor.yield %a : tensor<3xf32>
      }
      func.return %y : tensor<2xf32>
    }
fix: give the block arguments the types of the operands.

MLC0143 The iteration domain or an indexing map of a tensor.kernel does not match its body.
example mlir:
    func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %y = tensor.kernel %x {label = "copy", domain = [2, 3], iterator_types = ["parallel", "parallel"], indexing_maps =
          [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], operandSegmentSizes = [1, 0, 0, 0]}
          : tensor<2x3xf32> {
      ^bb0(%a: tensor<2x3xf32>):
        tensor.yield %a : tensor<2x3xf32>
      }
      func.return %y : tensor<2x3xf32>
    }
fix: use the maps in the message. The map of a result says which element a point of the domain computes, each element at
one point; the maps of operands follow from these and the body.

MLC0144 The stages of a tensor.kernel do not match its body.
example mlir:
    func.func @f(%x: tensor<2x3xf32>) -> tensor<2xf32> {
      %y = tensor.kernel %x {label = "sum", domain = [2, 3], iterator_types = ["parallel", "reduction"], indexing_maps =
          [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], stores = [0], last_reads = [0],
          operandSegmentSizes = [1, 0, 0, 0]} : (tensor<2x3xf32>) -> tensor<2xf32> {
      ^bb0(%a: tensor<2x3xf32>):
        %s = tensor.reduce_sum %a {axes = [1], stage = 0} : (tensor<2x3xf32>) -> tensor<2xf32>
        tensor.yield %s : tensor<2xf32>
      }
      func.return %y : tensor<2xf32>
    }
fix: a reduction may be used only after its `stage`; `stores` gives the stage in which each result is stored, and
`last_reads` that in which each operand is last read. The number `stages` stands for the point after all stages.

MLC0145 A reduction, a scan or a product does not say in which order it adds.
Passes below fix_numerics keep every bit: they add in the order that stands in the IR, and choose none.
example mlir:
    func.func @f(%x: tensor<2x3xf32>) -> tensor<2xf32> {
      %y = tensor.kernel %x {label = "sum", domain = [2, 3], iterator_types = ["parallel", "reduction"], indexing_maps =
          [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], stages = 1, stores = [1], last_reads = [0],
          operandSegmentSizes = [1, 0, 0, 0]} : (tensor<2x3xf32>) -> tensor<2xf32> {
      ^bb0(%a: tensor<2x3xf32>):
        %s = tensor.reduce_sum %a {axes = [1], stage = 0} : (tensor<2x3xf32>) -> tensor<2xf32>
        tensor.yield %s : tensor<2xf32>
      }
      func.return %y : tensor<2xf32>
    }
fix: run fix-numerics first, or write an order: "chain" adds one element after another.

MLC0785 An operation is not defined on complex elements.
Complex numbers have no order, so that they cannot be compared by size, rounded or sorted; other operations have no rule
for real and imaginary parts.
example python:
    import mlc
    mlc.sort(mlc.tensor([1 + 2j, 1j]))
fix: apply it to x.real and x.imag, or to abs(x).

MLC0787 There is no complex dtype with parts of a dtype.
The parts are of float32 (complex64) or float64 (complex128).
example python:
    import mlc
    mlc.complex(mlc.ones(2).half(), mlc.ones(2).half())
fix: convert the parts, as in x.float().

MLC0788 A function of complex tensors is called with a real one.
example python:
    import mlc
    mlc.imag(mlc.ones(2))
fix: convert the tensor: x.to(mlc.complex64).

MLC0789 The two parts of complex numbers are of different dtypes.
example python:
    import mlc
    mlc.complex(mlc.ones(2), mlc.ones(2).double())
fix: convert one of them.

MLC0790 Complex numbers are given for a real dtype.
example python:
    import mlc
    mlc.tensor([1 + 2j], dtype=mlc.float32)
fix: pass the real parts; a tensor that is complex already is converted by x.real.
'''
