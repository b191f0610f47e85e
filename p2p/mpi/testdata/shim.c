// An MPI library that says that it takes device memory, and lies about it in the way that SHIM names. What it does not have
// comes from the library that it is linked with.

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int MPIX_Query_cuda_support(void) { return 1; }

typedef int (*isend)(const void *, int, void *, int, int, void *, void *);

int MPI_Isend(const void *bytes, int count, void *type, int to, int tag, void *comm, void *request) {
	const char *how = getenv("SHIM");
	int alone = getenv("HALOX_PROBE_DEVICE") != NULL; // in the process that halox has started to try it
	if (how && !strcmp(how, "crashes") && alone) abort();
	if (how && !strcmp(how, alone ? "corrupts alone" : "corrupts together") && count == 1000) ((char *)bytes)[count / 2] ^= 1;
	return ((isend)dlsym(RTLD_NEXT, "MPI_Isend"))(bytes, count, type, to, tag, comm, request);
}
