// Package scheme runs the steps of a simulation on the devices of a placement: anybody's step,
// under any scheme.
//
// A Step is one or more stages. A stage sweeps the points of the grid: it reads variables, each
// with its footprint, and writes variables. Ghosts of what a stage writes are exchanged after it,
// where a stage reads them. A scheme says how the sweeps and exchanges are ordered over host
// threads, streams, graphs and kernels. Baseline, TwoStream and Assisted are those of Sourouri,
// Gillberg, Baden and Cai, "Effective multi-GPU communication using multiple CUDA streams and
// threads" (ICPADS 2014). Whatever the scheme, fields are the same to the last bit.
package scheme
