//go:build linux && cgo

#include "table.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// note adds a name to the list of missing symbols, as far as it has room.
static void note(char *list, size_t size, const char *name) {
	size_t used = strlen(list);
	snprintf(list + used, size - used, "%s%s", used ? " " : "", name);
}

static int resolve(halox_cuda *d, void *library, char *why, size_t size) {
	int missing = 0;
#define RESOLVE(field, symbol, params)                     \
	*(void **)(&d->field) = dlsym(library, symbol);    \
	if (!d->field) {                                   \
		missing++;                                 \
		note(why, size, symbol);                   \
	}
	HALOX_CUDA_SYMBOLS(RESOLVE)
#undef RESOLVE
	return missing;
}

// The library is never closed, not even when symbols are missing: the driver
// runs threads of its own, whose code must not be unmapped under them.
halox_cuda *halox_cuda_open(const char *path, char *why, size_t size, int *missing) {
	why[0] = 0;
	*missing = 0;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(why, size, "%s", dlerror());
		return NULL;
	}
	halox_cuda *d = calloc(1, sizeof *d);
	if (!d) {
		snprintf(why, size, "out of host memory");
		return NULL;
	}
	*missing = resolve(d, library, why, size);
	if (*missing) {
		free(d);
		return NULL;
	}
	return d;
}
