"""Error codes of the levels below tensor: loop, scf, memref, vector, llvm and the passes between them."""

TEXT = r'''
MLC0150 The domain, iterator types, schedule or symbols of a loop.kernel are inconsistent.
example mlir:
    func.func @f() {
      loop.kernel {symbols = [], domain = [5, 3], iterator_types = ["parallel", "parallel"],
                   schedule = #loop.schedule<tile = [1]>} {
        loop.end
      }
      func.return
    }
fix: give one iterator type and one tile size per dimension of the domain, parallel dimensions first; `vector` is the
number of a dimension, or -1.

MLC0151 The indexing map of an access, or the type of a tile, does not match the buffer or operands.
example mlir:
    func.func @f(%x: memref<4xf32>) {
      loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
        %0 = loop.load %x {map = affine_map<(d0) -> (d0, d0)>, operandSegmentSizes = [1, 0, 0]}
          : (memref<4xf32>) -> !loop.tile<d0xf32>
        loop.store %0, %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]}
          : (!loop.tile<d0xf32>, memref<4xf32>) -> ()
        loop.end
      }
      func.return
    }
fix: write one expression per dimension of the buffer, over dimensions d0, d1, ... and the symbols of the kernel.

MLC0152 The initial values, block arguments and yielded values of a loop.for differ in type.
example mlir:
    func.func @f(%x: memref<4xf32>) {
      loop.kernel {symbols = [], domain = [4], iterator_types = ["reduction"], schedule = #loop.schedule<tile = [1]>} {
        %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<f32>
        %1 = loop.for %0 {dim = 0} : !loop.tile<f32> {
        ^bb0(%a: !loop.tile<f64>):
          loop.yield %a : (!loop.tile<f64>) -> ()
        }
        loop.end
      }
      func.return
    }
fix: give the three the same types.

MLC0154 A kernel distributes dimensions over threads although one block writes memory that another one accesses.
example python:
    import numpy as np
    from mlc.ir.interp import run_function
    from mlc.ir.parser import parse_module

    run_function(parse_module("""
        func.func @f(%x: memref<4xf32>) {
          loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"],
                       schedule = #loop.schedule<tile = [1], thread_dims = 1>} {
            %0 = loop.load %x {map = affine_map<(d0) -> (-d0 + 3)>, operandSegmentSizes = [1, 0, 0]}
              : (memref<4xf32>) -> !loop.tile<d0xf32>
            loop.store %0, %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]}
              : (!loop.tile<d0xf32>, memref<4xf32>) -> ()
            loop.end
          }
          func.return
        }"""), "f", [np.zeros(4, np.float32)])
fix: distribute only leading dimensions whose blocks access disjoint memory, or set `threads` of the schedule to 0.

MLC0155 An affine map has the wrong dimensions, index tiles, symbols or results for its kernel and its use.
example mlir:
    func.func @f(%x: memref<4xf32>) {
      loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
        %0 = loop.load %x {map = affine_map<(d0, d1) -> (d1)>, operandSegmentSizes = [1, 0, 0]}
          : (memref<4xf32>) -> !loop.tile<d1xf32>
        loop.end
      }
      func.return
    }
fix: give the map one dimension per dimension of the kernel's domain, one index tile per operand that is one, and only
symbols of the kernel.

MLC0156 The text of an affine map is ill-formed.
example mlir:
    func.func @f(%x: memref<4xf32>) {
      loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
        %0 = loop.load %x {map = affine_map<(d0) -> (d1)>, operandSegmentSizes = [1, 0, 0]}
          : (memref<4xf32>) -> !loop.tile<d0xf32>
        loop.end
      }
      func.return
    }
fix: write affine_map<(d0, d1, t0)[B] -> (t0, d1 + B)>: dimensions d0, d1, ..., then index tiles t0, t1, ..., symbols in
brackets, and expressions over these.

MLC0160 The regions of an scf operation do not match its operands or results.
example mlir:
    func.func @f(%c: i1, %x: f32) -> f32 {
      %y = scf.if %c -> (f32) {
        scf.yield %x : f32
      }
      func.return %y : f32
    }
fix: in every region, yield one value per result of the operation, of the same type.

MLC0161 The step of a loop is not positive, or the size of a temporary is data-dependent.
example text:
    error[MLC0161]: scf.for: the step is 0, not positive
fix: use a step of at least 1; the sizes of temporaries must be computable from those of the arguments.

MLC0162 A memref operation has operands of the wrong type, or the wrong number of indices or sizes.
A function of tensors that calls itself has this code too: no memory is known to be enough for it.
example mlir:
    func.func @f(%m: memref<2x3xf32>, %i: index) -> f32 {
      %x = memref.load %m[%i] : memref<2x3xf32>
      func.return %x : f32
    }
fix: give one index per dimension, and values of the memref's element type.

MLC0163 The interpreter detected undefined behaviour, such as an access out of bounds.
Compiled code would read or write memory that it does not own. Above the level `low` this cannot happen.
example text:
    error[MLC0163]: memref.load: index 5 on axis 0 is outside of size 4
fix: if mlc generated this IR, report it; the location is that of the operation.

MLC0164 The types of a vector operation do not match each other or the memref.
example mlir:
    func.func @f(%m: memref<8xf32>, %i: index) -> vector<4xf64> {
      %v = vector.load %m[%i] : memref<8xf32>, vector<4xf64>
      func.return %v : vector<4xf64>
    }
fix: a loaded vector has one dimension and the memref's element type; masks have one i1 per lane.

MLC0165 A type of the llvm dialect cannot be stored in memory.
example text:
    error[MLC0165]: vector<8xi1> has no place in memory: masks stay in registers
fix: store truth values as i8.

MLC0166 A value has a type that the llvm operation does not accept.
example mlir:
    llvm.func @f(%x: f32) -> i64 {
      %y = llvm.bitcast %x : f32 to i64
      llvm.return %y : i64
    }
fix: use the conversion operation for these types.

MLC0167 An address, count or mask operand of an llvm operation has the wrong type.
example mlir:
    llvm.func @f(%x: i64) -> f32 {
      %y = "llvm.load"(%x) : (i64) -> f32
      llvm.return %y : f32
    }
fix: addresses are !llvm.ptr, counts integers, masks vectors of i1.

MLC0168 The values that an llvm function, branch or call passes or returns do not have the declared types.
example mlir:
    llvm.func @f(%x: f32) -> i64 {
      llvm.return %x : f32
    }
fix: pass each block and function values of the types that it takes.

MLC0170 An operation has no lowering to loops.
example text:
    error[MLC0170]: my.op has no lowering to loops
fix: give it a decomposition into primitives, or a rule in passes/tensor_to_loop.

MLC0171 A schedule vectorizes a dimension along which a sum is ordered.
fix_numerics fixes the order of each sum, and a schedule must not change it.
example text:
    error[MLC0171]: loop.reduce: an ordered sum cannot lie in vector registers along its own dimension
fix: choose another `vector` dimension for the kernel.

MLC0480 Checked code detected undefined behaviour.
Code compiled with checked=True or --checked reports accesses out of bounds, reads of uninitialised memory, and overflow
in index arithmetic. Any of these means that a lowering is wrong or that a dump was edited. The message names the
operation, the memory and the index; the line is that of the program.
example text:
    model.py:4:12: error[MLC0480]: memref.load outside of memref<?x5xf32>, at index 17
fix: if you edited a dump, correct it at that operation; if not, report it, with the output of mlc run --check.

MLC0481 A function cannot be instrumented with checks.
Checks report to the error record of an entry, and must be able to trace each memref back to its definition.
example mlir insert_checks:
    func.func @f(%m: memref<4xf32>, %i: index) -> f32 {
      %x = memref.load %m[%i] : memref<4xf32>
      func.return %x : f32
    }
fix: give the function an interface and an error record, or make it private; a memref must not depend on the path taken.

MLC0482 Checked code is requested where it is not supported.
Checked code is native CPU code, compiled from a module above the llvm dialect.
example shell:
    mlc run --checked --exec=interp model.mlir
fix: leave out --checked, or the option that it conflicts with.

MLC0540 An operation has no lowering to the llvm dialect.
example text:
    error[MLC0540]: my.op has no lowering to llvm
fix: lower it to scf, memref, vector, arith and math before scf_to_llvm.

MLC0541 A type cannot be converted to the llvm dialect.
example mlir scf_to_llvm:
    func.func @f(%v: vector<2x2x2xf32>, %x: tensor<2xf32>) {
      func.return
    }
fix: bufferize tensors, and unroll vectors of more dimensions than it supports.

MLC0542 A memref has i1 elements.
example mlir scf_to_llvm:
    func.func @f(%m: memref<2xi1>) {
      %0 = arith.constant 0 : index
      %1 = memref.load %m[%0] : memref<2xi1>
      memref.store %1, %m[%0] : memref<2xi1>
      func.return
    }
fix: store truth values as i8, and compare with 0 after a load.

MLC0543 A stack allocation is too large, or its size is not a constant.
example mlir scf_to_llvm:
    func.func @f(%n: index) {
      %m = memref.alloca(%n) : memref<?xf32>
      func.return
    }
fix: let bufferize allocate temporaries in the arena, or pass the buffer as an argument.

MLC0544 A position in a vector is dynamic in a dimension other than the last.
example text:
    error[MLC0544]: vector.extract: only the last index of a position may be dynamic
fix: use constant positions in the leading dimensions.

MLC0545 A native function cannot return a memref or a vector.
example mlir scf_to_llvm:
    func.func @f(%m: memref<2xf32>) -> memref<2xf32> {
      func.return %m : memref<2xf32>
    }
fix: pass the memory for the result as an argument.

MLC0546 The interface of an entry does not match its arguments.
The attribute `interface`, which bufferize writes, says which tensor each buffer holds.
example mlir scf_to_llvm:
    func.func @f(%m: memref<2xf32>)
        attributes {interface = "(tensor<2xf32>) -> tensor<2xf32>", symbols = [], aliases = [-1], error_sites = []} {
      func.return
    }
fix: when you edit a dump, keep interface, symbols, aliases and the arguments consistent.
'''
