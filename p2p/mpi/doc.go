// Package mpi connects the processes of one program on one or more hosts: their identities, collective calls, and
// messages between devices of different processes.
//
// [Join] detects whether a launcher started this process as one of several, and opens MPI only in that case.
// [Lend] accepts a communicator from a program that uses MPI itself. If a process fails, all others are informed,
// and every wait ends with an error that names the rank and host: a thread of each process listens, and sends
// heartbeats to rank 0; see [Processes.Fail].
//
// A [Sender] and a [Receiver] transfer one message of a fixed length from a device of one process to a device of
// another, repeatedly. They use pieces and three buffers of pinned memory on each side, so that copies on both
// sides overlap with the transfer.
package mpi
