// Package solvers sweeps a stencil over a grid that is cut over several
// devices, step after step, until it has done its iterations, the change is
// small enough, or it is told to stop.
//
// A Problem says what is solved, a Scheme how the sweeps and exchanges of a
// step are ordered over threads and streams; each scheme is a file of its own.
// Whatever the scheme, the path of the messages and the number of devices, the
// fields are the same to the last bit.
package solvers
