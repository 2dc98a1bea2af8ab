"""Error codes of the IR at every level: structure, calls, derivatives, the interpreter; and the fallback codes."""

TEXT = r'''
MLC0001 An error of unknown kind.
This is the fallback of the base class; every error that mlc raises should have a more specific code.
example text:
    error[MLC0001]: ...
fix: report it: an error should have a code of its own.

MLC0100 The IR violates a rule that has no code of its own.
This is the fallback for errors about IR.
example text:
    error[MLC0100]: ...
fix: the message says which rule; report it, since it should have a code of its own.

MLC0101 An operation has the wrong number of operands, regions, successors or results, or an ill-typed attribute.
The definition of an operation fixes these; mlc ops NAME shows it.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = "arith.addf"(%x) : (f32) -> f32
      func.return %y : f32
    }
fix: give the operation the operands, attributes and regions that mlc ops NAME lists.

MLC0102 A result type is not the one that follows from the operands.
The types of results are inferred from operands and attributes; a type in the text must be the inferred one.
example mlir:
    func.func @f(%x: tensor<2xf32>) -> tensor<3xf32> {
      %y = tensor.exp %x : (tensor<2xf32>) -> tensor<3xf32>
      func.return %y : tensor<3xf32>
    }
fix: write the type that the message names, or change the operands.

MLC0103 The definition of a value does not dominate its use.
A value may be used after its definition in the same block, in blocks that this block dominates, and in regions nested
in these; never in another function.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = "arith.addf"(%z, %x) : (f32, f32) -> f32
      %z = arith.addf %x, %x : f32
      func.return %y : f32
    }
fix: move the definition up, or yield the value from the region. In a pass, check that the operation was built within
`with before(op)`; otherwise it may have been inserted after its users.

MLC0104 A block has no terminator at its end, has one in the middle, or is unreachable.
Every block but that of a module ends in a terminator: the operation that transfers control.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = arith.addf %x, %x : f32
    }
fix: end the block with func.return, scf.yield, or the terminator that its parent expects.

MLC0105 A symbol is defined twice in one module.
Functions and globals of a module are referenced by name.
example mlir:
    func.func @f() { func.return }
    func.func @f() { func.return }
fix: rename one.

MLC0106 A symbol reference names a function or global that the module does not define.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = func.call @g(%x) : (f32) -> f32
      func.return %y : f32
    }
fix: define it in the same module, or correct the name.

MLC0107 The use lists, owners and parents of the IR are inconsistent.
Only a pass can cause this, by changing lists of operands or blocks other than through their methods.
example text:
    error[MLC0107]: tensor.add: this use is missing from the use list of operand 0
fix: in the pass, change operands with set_operand and move operations with move_before.

MLC0108 A function's type does not match its entry block or the values that it returns.
example mlir:
    func.func @f(%x: f32) -> i32 {
      func.return %x : f32
    }
fix: return values of the types in the signature.

MLC0109 An arith or math operation does not support the type or value of an operand.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = arith.addi %x, %x : f32
      func.return %y : f32
    }
fix: use the operation for this type (addf for floats, addi for integers), or convert first.

MLC0120 A call does not match the signature of its callee.
The arguments must have the callee's types, up to a substitution of one size for each of its size symbols.
example mlir:
    func.func @g(%x: tensor<Nxf32>, %y: tensor<Nxf32>) -> tensor<Nxf32> {
      func.return %x : tensor<Nxf32>
    }
    func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
      %z = func.call @g(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
      func.return %z : tensor<2xf32>
    }
fix: pass arguments of the types in the signature; the note says where the function is defined.

MLC0121 The interpreter exceeded its limit on steps.
The interpreter is exact but slow: an infinite loop, or large arrays, reach this limit.
example text:
    error[MLC0121]: interpretation passed 200000000 steps
fix: use smaller arrays, or run native code (--exec=native).

MLC0122 The reference semantics of an operation do not match its result type.
`ref` of the operation returned an array of another shape or dtype than the type from `infer`.
example text:
    error[MLC0122]: my.op: ref returns float64[3], the result type is tensor<3xf32>
fix: correct `ref` or `infer` of the operation; if it is one of mlc's, report it.

MLC0130 An operation has no derivative.
Its result is an integer or a truth value, or it is a user-defined operation without `vjp`.
example text:
    error[MLC0130]: my.op has no derivative
fix: give the operation a `vjp`, or differentiate a function that does not depend on it.

MLC0131 A derivative is requested with the wrong arguments, results or cotangents.
autodiff.grad needs a function whose first result is one float, and differentiates with respect to float arguments.
example mlir:
    func.func @g(%x: tensor<3xf32>) -> tensor<3xf32> {
      func.return %x : tensor<3xf32>
    }
    func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y:2 = autodiff.grad @g(%x) wrt [0] : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
      func.return %y#1 : tensor<3xf32>
    }
fix: return a scalar, such as the sum, or use autodiff.vjp with a cotangent.

MLC0132 The control flow of a function has no derivative: recursion, or branches between blocks.
example mlir grad:
    func.func @g(%x: tensor<f32>) -> tensor<f32> {
      %y = func.call @g(%x) : (tensor<f32>) -> tensor<f32>
      func.return %y : tensor<f32>
    }
    func.func @f(%x: tensor<f32>) -> tensor<f32> {
      %y:2 = autodiff.grad @g(%x) wrt [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      func.return %y#1 : tensor<f32>
    }
fix: write the recursion as a loop, and branches as scf.if.

MLC0133 The derivative rule of an operation returns a cotangent of the wrong type.
example text:
    error[MLC0133]: the vjp of my.op gives tensor<3xf32> for an operand of type tensor<f32>
fix: undo broadcasting in `vjp` (unbroadcast), and cast to the operand's element type.

MLC0136 An autodiff.predicated, or the yield that ends its body, is ill-formed.
The predicate is a tensor of i1 whose shape is a prefix of the shape of each carry and each float argument.
example mlir:
    func.func @f(%p: tensor<3xi1>, %x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %y = autodiff.predicated %p (%x) carried 1 : (tensor<3xi1>, tensor<2x3xf32>) -> tensor<2x3xf32> {
      ^bb0(%a: tensor<2x3xf32>):
        autodiff.yield %a : tensor<2x3xf32>
      }
      func.return %y : tensor<2x3xf32>
    }
fix: make the axes of the predicate the leading ones.

MLC0137 Something cannot be batched: recursion, branches between blocks, or a size that differs between batch elements.
example mlir grad:
    func.func @g(%x: tensor<f32>) -> tensor<f32> {
      %y = func.call @g(%x) : (tensor<f32>) -> tensor<f32>
      func.return %y : tensor<f32>
    }
    func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = autodiff.vmap @g(%x) batched [0] size 3 : (tensor<3xf32>) -> tensor<3xf32>
      func.return %y : tensor<3xf32>
    }
fix: write recursion as a loop and branches as scf.if; where sizes would differ, keep one size and select by a mask.

MLC0138 The batched arguments, batch size or results of an autodiff.vmap do not match its function.
example mlir:
    func.func @g(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func @f(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
      %y = autodiff.vmap @g(%x) batched [0] size 4 : (tensor<3x2xf32>) -> tensor<3x2xf32>
      func.return %y : tensor<3x2xf32>
    }
fix: the first axis of each batched argument, and of each batched result, must have the batch size.

MLC0139 A result that vmap should return unbatched differs between batch elements.
None in out_dims requests such a result; the buffers that a module assigns must be the same for all elements, too.
example python:
    import mlc
    mlc.vmap(lambda x: x * 2, out_dims=None)(mlc.ones(3))
fix: give the result an axis in out_dims; for a buffer, call the module's eval().

MLC0140 An operation is illegal in the form of the IR that a pass leaves.
Each pass declares the form that it gives (mlc passes); --verify-each checks it after every pass.
example text:
    error[MLC0140]: tensor.exp is not allowed in the form 'loop'
fix: if the pass is yours, lower the operation or correct `gives`; otherwise report it.

MLC0141 A composite operation remains where only primitives are legal.
example text:
    error[MLC0141]: tensor.softmax is composite
fix: run decompose first.

MLC0142 Rewriting does not terminate.
Some rules undo each other's rewrites; the message names the one that fires most often.
example text:
    error[MLC0142]: canonicalize does not terminate; the rule that fires most is swap_operands
fix: choose a cost measure that every rule strictly reduces, and change the rules that do not.
'''
