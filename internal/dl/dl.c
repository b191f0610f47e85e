//go:build linux && cgo && (amd64 || arm64)

#include "dl.h"

#include <dlfcn.h>

uintptr_t halox_dl_open(const char *path, int flags) { return (uintptr_t)dlopen(*path ? path : (char *)0, flags); }

const char *halox_dl_error(void) {
	const char *why = dlerror();
	return why ? why : "the loader does not say why";
}

uintptr_t halox_dl_symbol(uintptr_t library, const char *name) { return (uintptr_t)dlsym((void *)library, name); }

typedef int (*function_of_ints)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
				uintptr_t);

int halox_dl_call(uintptr_t function, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f,
		  uintptr_t g, uintptr_t h, uintptr_t i) {
	return ((function_of_ints)function)(a, b, c, d, e, f, g, h, i);
}
