// The functions of NCCL that halox uses, and the table that holds them.

#ifndef HALOX_NCCL_TABLE_H
#define HALOX_NCCL_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum {
	NCCL_SUCCESS = 0,
	NCCL_IN_PROGRESS = 7,
	NCCL_UINT8 = 1,
};

typedef struct {
	char bytes[128];
} nccl_id;

typedef void *nccl_comm;
typedef void *cuda_stream;

// nccl_config is ncclConfig_t of NCCL 2.18 with the member that came next, which takes the place of padding. Newer libraries
// read as many bytes as size says.
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking, cga_cluster_size, min_ctas, max_ctas;
	const char *net_name;
	int split_share, traffic_class;
} nccl_config;

_Static_assert(sizeof(void *) != 8 || sizeof(nccl_config) == 48, "NCCL's layout");

#define HALOX_NCCL_SYMBOLS(X)                                                       \
	X(ncclGetVersion, (int *))                                                  \
	X(ncclGetUniqueId, (nccl_id *))                                             \
	X(ncclCommInitRankConfig, (nccl_comm *, int, nccl_id, int, nccl_config *))  \
	X(ncclCommGetAsyncError, (nccl_comm, int *))                                \
	X(ncclCommFinalize, (nccl_comm))                                            \
	X(ncclCommDestroy, (nccl_comm))                                             \
	X(ncclCommAbort, (nccl_comm))                                               \
	X(ncclGroupStart, (void))                                                   \
	X(ncclGroupEnd, (void))                                                     \
	X(ncclSend, (const void *, size_t, int, int, nccl_comm, cuda_stream))       \
	X(ncclRecv, (void *, size_t, int, int, nccl_comm, cuda_stream))

#define HALOX_NCCL_FIELD(symbol, params) int(*symbol) params;
typedef struct {
	HALOX_NCCL_SYMBOLS(HALOX_NCCL_FIELD)
	const char *(*ncclGetErrorString)(int);
	const char *(*ncclGetLastError)(nccl_comm);
} halox_nccl;
#undef HALOX_NCCL_FIELD

// halox_nccl_open opens the library and fills a table, which is never freed, nor is the library closed. When it cannot, it
// returns NULL and writes into why the loader's words, or, with *missing set, the names that the library lacks.
halox_nccl *halox_nccl_open(const char *path, char *why, size_t size, int *missing);

// halox_nccl_begin begins a communicator that does not block.
int halox_nccl_begin(halox_nccl *t, nccl_comm *comm, int ranks, const void *id, int rank);

// halox_nccl_message queues a message to or from the other rank, in a group of its own.
int halox_nccl_message(halox_nccl *t, nccl_comm comm, int sends, uintptr_t address, size_t bytes, int other, uintptr_t stream);

int halox_nccl_version(halox_nccl *t, int *version);
int halox_nccl_id(halox_nccl *t, void *id);
int halox_nccl_state(halox_nccl *t, nccl_comm comm, int *state);
int halox_nccl_finalize(halox_nccl *t, nccl_comm comm);
int halox_nccl_destroy(halox_nccl *t, nccl_comm comm);
int halox_nccl_abort(halox_nccl *t, nccl_comm comm);
const char *halox_nccl_text(halox_nccl *t, int code);
const char *halox_nccl_last(halox_nccl *t, nccl_comm comm);

#endif
