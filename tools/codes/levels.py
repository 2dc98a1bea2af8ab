"""Codes of the levels below tensors: loop, scf, memref, vector, llvm and the passes between them."""

TEXT = r'''
MLC0150 The domain, iterator types, schedule or symbols of a loop.kernel do not fit each other.
example mlir:
    func.func @f() {
      loop.kernel {symbols = [], domain = [5, 3], iterator_types = ["parallel", "parallel"],
                   schedule = #loop.schedule<tile = [1]>} {
        loop.end
      }
      func.return
    }
fix: give one iterator type and one tile size per dimension of the domain, parallel dimensions first; `vector` names a
dimension or is -1.

MLC0151 An access, a tile or a map of tiles does not fit its buffer or operands.
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

MLC0152 What a loop.for carries, its body takes and its yield gives differ in type.
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
fix: let the three agree.

MLC0154 Threads share dimensions of a kernel in which one block writes what another one reads or writes.
example python:
    import numpy as np
    from mlc.ir.interp import run_function
    from mlc.ir.parser import parse_module

    run_function(parse_module("""
        func.func @f(%x: memref<4xf32>) {
          loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"],
                       schedule = #loop.schedule<tile = [1], threads = 1>} {
            %0 = loop.load %x {map = affine_map<(d0) -> (-d0 + 3)>, operandSegmentSizes = [1, 0, 0]}
              : (memref<4xf32>) -> !loop.tile<d0xf32>
            loop.store %0, %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]}
              : (!loop.tile<d0xf32>, memref<4xf32>) -> ()
            loop.end
          }
          func.return
        }"""), "f", [np.zeros(4, np.float32)])
fix: share only leading dimensions whose blocks touch memory of their own, or set `threads` of the schedule to 0.

MLC0155 An affine map does not fit its kernel, its index tiles or what it is used for.
example mlir:
    func.func @f(%x: memref<4xf32>) {
      loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
        %0 = loop.load %x {map = affine_map<(d0, d1) -> (d1)>, operandSegmentSizes = [1, 0, 0]}
          : (memref<4xf32>) -> !loop.tile<d1xf32>
        loop.end
      }
      func.return
    }
fix: let the map take as many dimensions as the kernel's domain has, one index tile per operand that is one, and no
symbols but those of the kernel.

MLC0156 The text of an affine map is none.
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

MLC0160 The regions of an operation of scf do not fit its operands or results.
example mlir:
    func.func @f(%c: i1, %x: f32) -> f32 {
      %y = scf.if %c -> (f32) {
        scf.yield %x : f32
      }
      func.return %y : f32
    }
fix: yield as many values, of the same types, in every region, as the operation has results.

MLC0161 A loop's step is not positive, or a size stems from data.
example text:
    error[MLC0161]: scf.for: the step is 0, not positive
fix: loops count upwards by at least 1; sizes of temporaries must be computable from the sizes of the arguments.

MLC0162 An operation of memref is given the wrong kind of memory, indices or sizes.
example mlir:
    func.func @f(%m: memref<2x3xf32>, %i: index) -> f32 {
      %x = memref.load %m[%i] : memref<2x3xf32>
      func.return %x : f32
    }
fix: give one index per dimension, and values of the memref's element type.

MLC0163 The interpreter saw an access outside of memory, or something else that no correct program does.
Compiled code would read or write what is not its own. Above `low` this cannot happen.
example text:
    error[MLC0163]: memref.load: index 5 on axis 0 is outside of size 4
fix: if mlc made this IR, report it; the location names the operation.

MLC0164 An operation of vector does not fit the vector or the memory.
example mlir:
    func.func @f(%m: memref<8xf32>, %i: index) -> vector<4xf64> {
      %v = vector.load %m[%i] : memref<8xf32>, vector<4xf64>
      func.return %v : vector<4xf64>
    }
fix: vectors that are loaded have the memref's element type and one dimension; masks have one i1 per lane.

MLC0165 A type of the llvm dialect cannot lie in memory.
example text:
    error[MLC0165]: vector<8xi1> has no place in memory: masks stay in registers
fix: store truth values as i8.

MLC0166 A value of the llvm dialect does not fit the operation's type.
example mlir:
    llvm.func @f(%x: f32) -> i64 {
      %y = llvm.bitcast %x : f32 to i64
      llvm.return %y : i64
    }
fix: use the conversion for these widths.

MLC0167 An address, count or mask of an operation of the llvm dialect has the wrong type.
example mlir:
    llvm.func @f(%x: i64) -> f32 {
      %y = "llvm.load"(%x) : (i64) -> f32
      llvm.return %y : f32
    }
fix: addresses are !llvm.ptr, counts integers, masks vectors of i1.

MLC0168 A function, branch or call of the llvm dialect does not fit.
example mlir:
    llvm.func @f(%x: f32) -> i64 {
      llvm.return %x : f32
    }
fix: give each block and function the values of the types that it takes.

MLC0170 An operation has no lowering to loops.
example text:
    error[MLC0170]: my.op has no lowering to loops
fix: give it a decomposition into primitives, or a rule in passes/tensor_to_loop.

MLC0171 A schedule puts a dimension in vector registers along which numbers are added one after the other.
The order of a sum is fixed before (fix_numerics), and a schedule may not change it.
example text:
    error[MLC0171]: loop.reduce: an ordered sum cannot lie in vector registers along its own dimension
fix: choose another `vector` dimension for the kernel.

MLC0480 Checked code has found something undefined.
Code compiled with checked=True or --checked does not read or write outside of memory, does not read what nothing has
written, and has no index arithmetic that overflows. Where it does, the lowering is wrong, or a dump was edited; the
message names the operation, the memory and the index, and the line is that of the program.
example text:
    model.py:4:12: error[MLC0480]: memref.load outside of memref<?x5xf32>, at index 17
fix: if you edited the dump, mend it there; if not, report it, with what mlc run --check says.

MLC0481 A function cannot be checked.
Checks report to the error record of an entry, and follow each memref from where it comes from to where it is used.
example mlir insert_checks:
    func.func @f(%m: memref<4xf32>, %i: index) -> f32 {
      %x = memref.load %m[%i] : memref<4xf32>
      func.return %x : f32
    }
fix: give the function an interface and an error record, or make it private, and use the same memref on all paths.

MLC0482 Checked code is asked for where there is none.
It is native code for the CPU, made from what stands above the llvm dialect.
example shell:
    mlc run --checked --exec=interp model.mlir
fix: leave out --checked, or what it does not go with.

MLC0540 An operation has no lowering to the llvm dialect.
example text:
    error[MLC0540]: my.op has no lowering to llvm
fix: lower it to scf, memref, vector, arith and math before scf_to_llvm.

MLC0541 A value of this type has no form in the llvm dialect.
example mlir scf_to_llvm:
    func.func @f(%v: vector<2x2x2xf32>, %x: tensor<2xf32>) {
      func.return
    }
fix: bufferize tensors, and unroll what is larger than a vector.

MLC0542 A truth value is stored in memory as i1.
example mlir scf_to_llvm:
    func.func @f(%m: memref<2xi1>) {
      %0 = arith.constant 0 : index
      %1 = memref.load %m[%0] : memref<2xi1>
      memref.store %1, %m[%0] : memref<2xi1>
      func.return
    }
fix: store booleans as i8 and compare with 0.

MLC0543 Compiled code would need more of the stack than there is, or stack of a size that is not known.
example mlir scf_to_llvm:
    func.func @f(%n: index) {
      %m = memref.alloca(%n) : memref<?xf32>
      func.return
    }
fix: let bufferize plan temporaries in the arena, or pass the buffer as an argument.

MLC0544 A position in a vector is computed in a dimension that is not the last.
example text:
    error[MLC0544]: vector.extract: only the last index of a position may be dynamic
fix: use constant positions in the leading dimensions.

MLC0545 A function that returns memory or a vector has no native form.
example mlir scf_to_llvm:
    func.func @f(%m: memref<2xf32>) -> memref<2xf32> {
      func.return %m : memref<2xf32>
    }
fix: take the memory for the result as an argument.

MLC0546 The interface of an entry does not fit its arguments.
The attribute `interface` says which tensors the buffers stand for; bufferize writes it.
example mlir scf_to_llvm:
    func.func @f(%m: memref<2xf32>)
        attributes {interface = "(tensor<2xf32>) -> tensor<2xf32>", symbols = [], aliases = [-1], error_sites = []} {
      func.return
    }
fix: keep interface, symbols, aliases and the arguments in step when you edit a dump.
'''
