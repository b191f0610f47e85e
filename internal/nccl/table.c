//go:build linux && cgo

#define _GNU_SOURCE

#include "table.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int resolve(halox_nccl *t, void *library, char *why, size_t size) {
	int missing = 0;
#define RESOLVE(symbol, params)                                                                    \
	*(void **)(&t->symbol) = dlsym(library, #symbol);                                          \
	if (!t->symbol) {                                                                          \
		size_t used = strlen(why);                                                         \
		snprintf(why + used, size - used, "%s%s", missing++ ? " " : "", #symbol);          \
	}
	HALOX_NCCL_SYMBOLS(RESOLVE)
#undef RESOLVE
	*(void **)(&t->ncclGetErrorString) = dlsym(library, "ncclGetErrorString");
	*(void **)(&t->ncclGetLastError) = dlsym(library, "ncclGetLastError");
	return missing;
}

halox_nccl *halox_nccl_open(const char *path, char *why, size_t size, int *missing) {
	why[0] = 0;
	*missing = 0;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(why, size, "%s", dlerror());
		return NULL;
	}
	halox_nccl *t = calloc(1, sizeof *t);
	if (!t) {
		snprintf(why, size, "out of host memory");
		return NULL;
	}
	*missing = resolve(t, library, why, size);
	if (*missing) {
		free(t);
		return NULL;
	}
	return t;
}

// Values of NCCL_CONFIG_INITIALIZER.
enum { MAGIC = 0xcafebeef, VERSION = 21800, UNDEFINED = INT_MIN };

int halox_nccl_begin(halox_nccl *t, nccl_comm *comm, int ranks, const void *id, int rank) {
	nccl_id common;
	memcpy(&common, id, sizeof common);
	nccl_config config = {
		.size = sizeof config,
		.magic = (unsigned)MAGIC,
		.version = VERSION,
		.blocking = 0,
		.cga_cluster_size = UNDEFINED,
		.min_ctas = UNDEFINED,
		.max_ctas = UNDEFINED,
		.split_share = UNDEFINED,
		.traffic_class = UNDEFINED,
	};
	return t->ncclCommInitRankConfig(comm, ranks, common, rank, &config);
}

int halox_nccl_message(halox_nccl *t, nccl_comm comm, int sends, uintptr_t address, size_t bytes, int other, uintptr_t stream) {
	int begun = t->ncclGroupStart();
	if (begun) return begun;
	int queued = sends ? t->ncclSend((const void *)address, bytes, NCCL_UINT8, other, comm, (cuda_stream)stream)
			   : t->ncclRecv((void *)address, bytes, NCCL_UINT8, other, comm, (cuda_stream)stream);
	int ended = t->ncclGroupEnd();
	return queued && queued != NCCL_IN_PROGRESS ? queued : ended;
}

int halox_nccl_version(halox_nccl *t, int *version) { return t->ncclGetVersion(version); }
int halox_nccl_id(halox_nccl *t, void *id) { return t->ncclGetUniqueId(id); }
int halox_nccl_state(halox_nccl *t, nccl_comm comm, int *state) { return t->ncclCommGetAsyncError(comm, state); }
int halox_nccl_finalize(halox_nccl *t, nccl_comm comm) { return t->ncclCommFinalize(comm); }
int halox_nccl_destroy(halox_nccl *t, nccl_comm comm) { return t->ncclCommDestroy(comm); }
int halox_nccl_abort(halox_nccl *t, nccl_comm comm) { return t->ncclCommAbort(comm); }

const char *halox_nccl_text(halox_nccl *t, int code) { return t->ncclGetErrorString ? t->ncclGetErrorString(code) : ""; }
const char *halox_nccl_last(halox_nccl *t, nccl_comm comm) { return t->ncclGetLastError ? t->ncclGetLastError(comm) : ""; }
