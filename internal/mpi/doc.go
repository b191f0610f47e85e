// Package mpi binds MPI, which is opened at run time: nothing of MPI is needed to build.
//
// [Open] looks for the library and tells which of three binary interfaces it has: that of
// MPICH, which Intel MPI and others share, that of Open MPI, or the standard ABI of MPI 5.
// [Library.Init] starts MPI and gives a communicator of its own; [Library.Lend] makes one of a
// communicator of a program that has started MPI itself. [FindLauncher] tells what started the
// process, without any library.
//
// All functions of MPI that are used return at once, so that every wait here has a limit; only
// Init and Finalize run on a thread of their own and are left behind when they do not return.
// Any goroutine may call a communicator: MPI must provide MPI_THREAD_MULTIPLE.
//
// Handlers of signals that the library takes while it is loaded, started and ended are given
// back to Go.
//
// Open returns [ErrUnsupported] where package dl opens no libraries.
package mpi
