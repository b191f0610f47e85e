// Package packing packs and unpacks MPI datatypes where they lie: data on a GPU, that is
// not in one piece, into a buffer in one piece on that GPU, on a peer, or in pinned host
// memory, and back.
//
// A [MessageLayout] is some elements of a type, see package datatype. A [Packer] belongs to a device
// and makes a [Job] of a message and its place, by one of the engines of three papers: Wu et
// al. 2016 (Open MPI), Jenkins et al. 2014 (MPICH) and Shi et al. 2014 (HAND, MVAPICH2), or
// by the one that is fastest for that layout, which [Auto] measures once and remembers, and
// learns from for other layouts. A job is queued on a stream any number of times, and queuing
// it makes nothing.
package packing
