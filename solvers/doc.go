// Package solvers solves Laplace and heat problems on a grid that is cut over several
// devices, step after step, until it has done its iterations, the change is small
// enough, or it is told to stop.
//
// A Problem says what is solved. New makes of it a step of one stage, which runs under
// any scheme of package scheme. Whatever the scheme, the path of the messages and the
// number of devices, the fields are the same to the last bit.
package solvers
