// How the functions of MPI are called: all arguments are ints, handles or pointers.

#ifndef HALOX_MPI_CALL_H
#define HALOX_MPI_CALL_H

#include <stdint.h>

// halox_mpi_open loads a library, "" for the program itself with all that is global in it. It
// returns 0 if it cannot; halox_mpi_why then has the loader's words, on the same thread.
uintptr_t halox_mpi_open(const char *path, int flags);
const char *halox_mpi_why(void);

// halox_mpi_symbol returns the address of a function or a variable, 0 if there is none.
uintptr_t halox_mpi_symbol(uintptr_t library, const char *name);

// halox_mpi_call calls a function that returns int. On amd64 and arm64 an int, a handle and a
// pointer take a register or 8 bytes of the stack each, and a function does not see arguments
// that it does not take: so one signature serves all functions of all families.
int halox_mpi_call(uintptr_t function, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f,
		   uintptr_t g, uintptr_t h, uintptr_t i);

#endif
