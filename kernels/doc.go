// Package kernels holds what all code that runs on devices has in common: the CUDA C++ sources under
// cu/, the Compiler that compiles a Program of them when a GPU needs it and keeps it in a cache, and
// arrays as kernels see them. Each kernel has a host version, in Go. Sweeps and copies give the same
// bits on both; sums are taken in another order.
//
// Launch and Points make kernels of the caller's own ready, from a Source. Those of halox itself are
// made ready by the packages below: pack copies and adds, reduce makes one number of many, flags has
// devices wait for each other, sweep computes point functions, and step makes many steps on chip.
// Each launch is a streams.Kernel with its arguments fixed, so that queuing it costs nothing but the
// launch.
package kernels
