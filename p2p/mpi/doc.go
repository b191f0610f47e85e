// Package mpi is the processes of one program on many hosts: who they are, what they tell each
// other, and the messages between devices of different processes.
//
// [Join] finds out whether a launcher started this process as one of several, and opens MPI only
// then. [Lend] takes a communicator of a program that uses MPI itself. Where one process fails,
// all others learn of it, and whatever waits ends with an error that names rank and host: a
// thread of each process listens, and tells rank 0 that it lives; see [Processes.Fail].
//
// A [Sender] and a [Receiver] carry one message of a fixed length from a device of one process to
// a device of another, any number of times: in pieces through three buffers of pinned memory each,
// so that copies, the wire and copies on the other side go on at once.
package mpi
