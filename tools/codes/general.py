"""Codes of the IR whatever its level: structure, calls, derivatives, the interpreter; and the fallbacks."""

TEXT = r'''
MLC0001 Something is wrong, and nothing more is known about its kind.
The fallback of the base class; every place in mlc that raises an error says more.
example text:
    error[MLC0001]: ...
fix: report it: an error should have a code of its own.

MLC0100 The IR breaks a rule that has no code of its own.
The fallback for errors about IR.
example text:
    error[MLC0100]: ...
fix: the message says which rule; report it, since it should have a code of its own.

MLC0101 An operation has the wrong number of operands, regions, successors or results, or an attribute of another kind.
How many there are, and of what kind the attributes are, is part of what an operation is: mlc ops NAME shows it.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = "arith.addf"(%x) : (f32) -> f32
      func.return %y : f32
    }
fix: give the operation what mlc ops NAME lists.

MLC0102 A result type is not what the operands give.
The types of results follow from operands and attributes; where the text spells one, it has to be that one.
example mlir:
    func.func @f(%x: tensor<2xf32>) -> tensor<3xf32> {
      %y = tensor.exp %x : (tensor<2xf32>) -> tensor<3xf32>
      func.return %y : tensor<3xf32>
    }
fix: write the type that the message names, or change the operands.

MLC0103 A value is used where its definition does not reach.
A value is known after its definition, in the same block, in blocks that it dominates and in regions inside them;
never in a function beside.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = "arith.addf"(%z, %x) : (f32, f32) -> f32
      %z = arith.addf %x, %x : f32
      func.return %y : f32
    }
fix: move the definition up, or yield the value from the region. In a pass: was the operation built within
`with before(op)`? Otherwise it may stand after those that use it.

MLC0104 A block does not end in a terminator, or in the middle of it there is one, or nothing leads to it.
Every block but that of a module ends in the operation that says where control goes.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = arith.addf %x, %x : f32
    }
fix: end the block with func.return, scf.yield or what its parent expects.

MLC0105 A name is defined twice in one module.
Functions and globals of a module are found by their names.
example mlir:
    func.func @f() { func.return }
    func.func @f() { func.return }
fix: rename one.

MLC0106 A function or global is named that the module does not have.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = func.call @g(%x) : (f32) -> f32
      func.return %y : f32
    }
fix: define it in the same module, or correct the name.

MLC0107 The IR's own bookkeeping is broken: uses, owners and parents do not agree.
Only a pass can do this, by changing lists of operands or blocks without the methods for it.
example text:
    error[MLC0107]: tensor.add: this use is missing from the use list of operand 0
fix: in the pass, change operands with set_operand and move operations with move_before.

MLC0108 A function's type, its entry block and what it returns do not agree.
example mlir:
    func.func @f(%x: f32) -> i32 {
      func.return %x : f32
    }
fix: return values of the types in the signature.

MLC0109 An operation of arith or math is given a type or a value that it does not work on.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %y = arith.addi %x, %x : f32
      func.return %y : f32
    }
fix: use the operation for this type (addf for floats, addi for integers), or convert first.

MLC0120 A call does not fit the function that it calls.
Arguments have the function's types, where its size symbols may stand for other sizes, each for one size only.
example mlir:
    func.func @g(%x: tensor<Nxf32>, %y: tensor<Nxf32>) -> tensor<Nxf32> {
      func.return %x : tensor<Nxf32>
    }
    func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
      %z = func.call @g(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
      func.return %z : tensor<2xf32>
    }
fix: pass what the signature asks for; the note says where the function is defined.

MLC0121 The interpreter gave up after very many steps.
It is exact and slow; a loop that does not end, or arrays that are too large for it, come to this limit.
example text:
    error[MLC0121]: interpretation passed 200000000 steps
fix: use smaller arrays, or run native code (--exec=native).

MLC0122 The meaning of an operation and its type do not agree.
The interpreter found an array of another shape or dtype than the type says: `ref` and `infer` of the operation differ.
example text:
    error[MLC0122]: my.op: ref returns float64[3], the result type is tensor<3xf32>
fix: correct `ref` or `infer` of the operation; if it is one of mlc's, report it.

MLC0130 An operation has no derivative.
Its result is an integer or a truth value, or it is one of your own without `vjp`.
example text:
    error[MLC0130]: my.op has no derivative
fix: give the operation a `vjp`, or take the derivative of something that does not depend on it.

MLC0131 A derivative is asked for that does not exist: wrong arguments, results or cotangents.
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

MLC0133 The derivative rule of an operation gives a cotangent of the wrong type.
example text:
    error[MLC0133]: the vjp of my.op gives tensor<3xf32> for an operand of type tensor<f32>
fix: undo broadcasting in `vjp` (unbroadcast), and cast to the operand's element type.

MLC0136 An autodiff.predicated, or the yield that ends its body, is ill-formed.
The predicate is a tensor of i1, whose shape is that of the first axes of each carry and of each float argument.
example mlir:
    func.func @f(%p: tensor<3xi1>, %x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %y = autodiff.predicated %p (%x) carried 1 : (tensor<3xi1>, tensor<2x3xf32>) -> tensor<2x3xf32> {
      ^bb0(%a: tensor<2x3xf32>):
        autodiff.yield %a : tensor<2x3xf32>
      }
      func.return %y : tensor<2x3xf32>
    }
fix: put the axes of the predicate first.

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
fix: write recursion as a loop and branches as scf.if; choose by a mask where sizes would differ.

MLC0138 A vmap does not fit its function: the arguments it lists, the batch size, or the results.
example mlir:
    func.func @g(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func @f(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
      %y = autodiff.vmap @g(%x) batched [0] size 4 : (tensor<3x2xf32>) -> tensor<3x2xf32>
      func.return %y : tensor<3x2xf32>
    }
fix: the first axis of each batched argument has the batch size, and so has that of each result that is not common.

MLC0139 A result that vmap should give once differs between batch elements.
In Python it is asked for by None in out_axes; buffers that a module assigns are meant once as well.
example python:
    import mlc
    mlc.vmap(lambda x: x * 2, out_axes=None)(mlc.ones(3))
fix: give the result an axis in out_axes; call the module's eval() if it is about a buffer.

MLC0140 An operation stands where its level does not allow it.
Each pass says which dialects it leaves (mlc passes); with --verify-each that is checked after it.
example text:
    error[MLC0140]: tensor.exp is not allowed in the form 'loop'
fix: if the pass is yours, lower the operation or correct `gives`; otherwise report it.

MLC0141 A composite operation is left where only primitives may be.
example text:
    error[MLC0141]: tensor.softmax is composite
fix: run decompose before.

MLC0142 Rewriting does not come to an end.
Two rules undo each other's work for ever; the message names the one that fires most.
example text:
    error[MLC0142]: canonicalize does not terminate; the rule that fires most is swap_operands
fix: make the right side of one rule better than its left side by a measure that no other rule undoes.
'''
