"""Error codes of the IR parser."""

TEXT = r'''
MLC0200 The text is not valid IR in a way that has no code of its own.
This is the fallback of the parser.
example text:
    error[MLC0200]: ...
fix: the message says what was expected.

MLC0201 A file cannot be read.
example shell:
    mlc opt no-such-file.mlir
fix: check the path and its permissions.

MLC0202 A file is not UTF-8 text.
example text:
    error[MLC0202]: model.mlir is not UTF-8: byte 0xff at offset 0
fix: convert it to UTF-8; bytecode and object files are not IR text.

MLC0203 Syntax error: another token was expected.
example mlir:
    func.func @f( {
fix: the caret shows where; a missing token is often missing at the end of the line before.

MLC0204 The text exceeds a limit on nesting, sizes or length.
Files may come from untrusted sources: what no real program needs is rejected before memory is allocated for it.
example mlir:
    func.func @f(%x: tensor<99999999999999999999xf32>) { func.return }
fix: write the program with less nesting, or smaller static sizes.

MLC0205 A symbolic size is ill-formed.
Sizes are polynomials of symbols, with floordiv and mod.
example mlir:
    func.func @f(%x: tensor<(B+*2)xf32>) { func.return }
fix: write for example tensor<(2*B + 1)xf32> or tensor<(B floordiv 2)xf32>.

MLC0450 A symbolic size has too many terms or too deeply nested divisions.
Sizes are normalized to polynomials: a product of twenty sums would have a million terms.
example mlir:
    func.func @f(%x: tensor<((A+B)*(C+D)*(E+F)*(G+H)*(I+J)*(K+L)*(M+N)*(O+P)*(Q+R)*(S+T)*(U+V)*(W+X))xf32>) {
      func.return
    }
fix: use one symbol in place of each sum, as in tensor<(A*C*E)xf32>, or numbers for some of the symbols.

MLC0206 A type is ill-formed or unknown.
example mlir:
    func.func @f(%x: tenso<2xf32>) { func.return }
fix: types are i1 ... i64, ui8 ... ui64, f16, bf16, f32, f64, index, tensor<...>, memref<...>, vector<...> and
those of dialects, such as !llvm.ptr.

MLC0207 The numbers of a constant do not fit its type.
example mlir:
    func.func @f() -> tensor<3xf32> {
      %0 = tensor.constant dense<[1.0, 2.0]> : tensor<3xf32>
      func.return %0 : tensor<3xf32>
    }
fix: give as many elements as the type has, or a single one for all (a splat).

MLC0208 A value or block is used that is not defined.
example mlir:
    func.func @f() -> f32 {
      func.return %x : f32
    }
fix: define it, or correct the name; values of another function are not visible.

MLC0209 A value is used with a type other than its own, or the numbers of operands and types differ.
example mlir:
    func.func @f(%x: f32) -> f64 {
      func.return %x : f64
    }
fix: write the value's own type, or convert it.

MLC0210 A value name is defined twice, or the number of names is not the number of results.
example mlir:
    func.func @f(%x: f32) -> f32 {
      %x = arith.addf %x, %x : f32
      func.return %x : f32
    }
fix: use a new name; write %r:2 = ... for two results.

MLC0211 The operation is unknown.
example mlir:
    func.func @f(%x: tensor<2xf32>) {
      %y = tensor.expp %x : tensor<2xf32>
      func.return
    }
fix: mlc ops lists the operations; a dialect of your own has to be imported first.

MLC0212 An operation lacks a required attribute, or is otherwise ill-formed.
example mlir:
    func.func @f(%x: tensor<2xf32>) -> tensor<f32> {
      %y = "mlc.tensor.reduce_sum"(%x) : (tensor<2xf32>) -> tensor<f32>
      func.return %y : tensor<f32>
    }
fix: mlc ops NAME lists the attributes that an operation needs.
'''
