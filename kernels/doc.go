// Package kernels holds the code that runs on devices: CUDA C++ sources, which
// are compiled when a GPU needs them and kept in a cache, and the host version
// of each. Sweeps and copies give the same bits on both; sums are taken in
// another order.
//
// A Sweeper, a BoxCopier, a NormReducer or a Reducer makes launches ready for one device, and
// so do a BlockPacker, a UnitPacker and a TreePacker for data that is not regular;
// each launch is a streams.Kernel with its arguments fixed, so that queuing it
// costs nothing but the launch. Launch and Points do the same for kernels of the
// caller's own.
package kernels
