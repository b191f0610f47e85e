// Package datatype describes data that does not lie in one piece, by MPI's names and meanings (MPI-4.1, chapter 5):
// predefined types, types made of others, and what count elements of a type occupy.
//
// A [Type] is built by constructors named after MPI's: [Contiguous], [Vector], [Indexed], [Subarray], [Struct] and their
// like, nested to any depth. [Commit] brings count elements of a type to a canonical form, a [Layout]: a few strided
// pieces, or a list of blocks where there is no regularity. Two types that touch the same bytes in the same order, and
// were only described differently, as a rule commit to equal layouts.
//
// All displacements are in bytes and relative to an origin, the address that MPI calls buf. They may be negative. The
// pack order is that of the type map, always.
//
// The package computes with integers and moves bytes of the host; it knows no device. The engines that pack on GPUs start
// from a [Layout], or from the tree of constructors that [Type.Envelope] exposes.
package datatype
