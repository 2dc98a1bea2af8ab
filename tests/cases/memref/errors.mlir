// test: verify
func.func @f(%m: memref<?x4xf32>, %i: index) -> f32 {
  %x = memref.load %m[%i] : memref<?x4xf32>  // error: takes 2 indices of type index, got index
  func.return %x : f32
}
// -----
func.func @f(%m: memref<?x4xf32>) -> memref<5x5xf32> {
  %x = memref.cast %m : memref<?x4xf32> to memref<5x5xf32>  // error: cannot cast memref<?x4xf32> to memref<5x5xf32>
  func.return %x : memref<5x5xf32>
}
// -----
func.func @f(%m: memref<?xi16>, %i: index) {
  %x = memref.view %m[%i][] : memref<?xi16> to memref<5xf32>  // error: views a buffer memref<?xi8>, not memref<?xi16>
  func.return
}
// -----
func.func @f(%m: memref<?x8xf32>, %i: index) {
  %x = memref.subview %m[%i, 2] [4, 4] [1, 2] : memref<?x8xf32> to memref<4x4xf32, strided<[8, 1], offset: ?>>  // error: gives memref<4x4xf32, strided<[8, 2], offset: ?>>
  func.return
}
// -----
func.func @f(%i: index) {
  %x = memref.alloc() : memref<?xf32>  // error: needs 1 sizes, got 0
  func.return
}
// -----
memref.global "private" constant @g : memref<3xf32> = dense<1.0> : tensor<4xf32>  // error: is no value of memref<3xf32>
// -----
memref.global "private" constant @g : memref<3xf32> = dense<1.0> : tensor<3xf32>
func.func @f() {
  %x = memref.get_global @g : memref<4xf32>  // error: @g is memref<3xf32>, not memref<4xf32>
  func.return
}
// -----
func.func @f(%m: memref<4x4xf32, strided<[?, 1], offset: ?>>, %i: index) {
  %x = memref.reinterpret_cast %m to offset: [0], sizes: [4], strides: [1] : memref<4x4xf32, strided<[?, 1], offset: ?>> to memref<4xf32, strided<[1]>>  // error: has an offset
  func.return
}
