// Package sweep applies point functions to boxes of a subdomain: on a GPU by kernels that keep
// what neighbouring points read in registers, on a host device row by row.
//
// A [Point] is what one point of a stage computes, as CUDA C++ and as Go. An [Access] is what
// it reads or writes, under the name that the source uses. A [Sweeper] joins the two for a
// device; it makes launches ready, with norms and reductions on the way where they are wanted.
// A constant linear stencil is such a point function, see [Linear].
package sweep
