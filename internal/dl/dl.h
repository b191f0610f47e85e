// How functions of dynamic libraries are called: all arguments are ints, sizes, handles or pointers.

#ifndef HALOX_DL_H
#define HALOX_DL_H

#include <stdint.h>

// halox_dl_open opens a library; an empty path is the program itself with everything that is global in it. It returns 0
// if it cannot; halox_dl_error then returns the loader's message, on the same thread.
uintptr_t halox_dl_open(const char *path, int flags);
const char *halox_dl_error(void);

// halox_dl_symbol returns the address of a function or a variable, 0 if there is none.
uintptr_t halox_dl_symbol(uintptr_t library, const char *name);

// halox_dl_call calls a function that returns int. On amd64 and arm64 an int, a handle and a pointer take a register or
// 8 bytes of the stack each, and a function does not see arguments that it does not take: one signature serves all.
int halox_dl_call(uintptr_t function, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f,
		  uintptr_t g, uintptr_t h, uintptr_t i);

#endif
