//go:build linux && cgo

#include "begin.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

typedef struct {
	char bytes[128];
} nccl_id;

// nccl_config is ncclConfig_t of NCCL 2.18 with the member that came next, which takes the place of padding. Newer
// libraries read as many bytes as size says.
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking, cga_cluster_size, min_ctas, max_ctas;
	const char *net_name;
	int split_share, traffic_class;
} nccl_config;

_Static_assert(sizeof(void *) != 8 || sizeof(nccl_config) == 48, "NCCL's layout");

// Values of NCCL_CONFIG_INITIALIZER.
enum { MAGIC = 0xcafebeef, VERSION = 21800, UNDEFINED = INT_MIN };

typedef int (*init_rank_config)(void **, int, nccl_id, int, nccl_config *);

int halox_nccl_begin(uintptr_t function, void **comm, int ranks, const void *id, int rank) {
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
	return ((init_rank_config)function)(comm, ranks, common, rank, &config);
}

const char *halox_nccl_text(uintptr_t function, uintptr_t argument) {
	return function ? ((const char *(*)(uintptr_t))function)(argument) : "";
}
