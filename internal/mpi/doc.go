// Package mpi binds MPI, which is opened at run time: building does not need MPI.
//
// [Open] finds the library and its binary interface, one of three: that of MPICH, which Intel MPI and others share,
// that of Open MPI, or the standard ABI of MPI 5. [Library.Init] starts MPI and returns a separate communicator;
// [Library.Lend] makes one from a communicator of a program that has started MPI itself. [FindLauncher] returns the
// launcher of the process, without any library.
//
// All used functions of MPI return at once, so that every wait has a limit; only Init and Finalize block: they run on a
// separate thread, and are abandoned if they do not return. Any goroutine may call a communicator: MPI must provide
// MPI_THREAD_MULTIPLE.
//
// Signal handlers that the library installs while it is loaded, started and ended are replaced by those of Go.
//
// Open returns [ErrUnsupported] if package dl cannot open libraries.
package mpi
