// The crossings from Go into the driver. Those that take a context make it
// current on the calling thread first, since Go may have moved the goroutine.
// All return a driver's result code.

#ifndef HALOX_CUDA_CALLS_H
#define HALOX_CUDA_CALLS_H

#include "table.h"

// The driver, and for calls in a context that context.
#define IN_DRIVER const halox_cuda *d
#define IN_CONTEXT const halox_cuda *d, CUhandle ctx

int halox_init(IN_DRIVER);
int halox_version(IN_DRIVER, int *version);
const char *halox_error_name(IN_DRIVER, int code);
const char *halox_error_text(IN_DRIVER, int code);

int halox_device_count(IN_DRIVER, int *count);
int halox_device(IN_DRIVER, int *device, int ordinal);
int halox_device_name(IN_DRIVER, char *name, int size, int device);
int halox_device_uuid(IN_DRIVER, unsigned char *uuid, int device);
int halox_device_pci(IN_DRIVER, char *id, int size, int device);
int halox_device_memory(IN_DRIVER, size_t *bytes, int device);
int halox_device_attribute(IN_DRIVER, int *value, int attribute, int device);
int halox_device_can_access(IN_DRIVER, int *can, int device, int peer);
int halox_device_p2p(IN_DRIVER, int *value, int attribute, int device, int peer);

int halox_primary_flags(IN_DRIVER, int device, unsigned flags);
int halox_primary_retain(IN_DRIVER, CUhandle *ctx, int device);
int halox_primary_release(IN_DRIVER, int device);

int halox_ctx_enter(IN_CONTEXT);
int halox_ctx_synchronize(IN_CONTEXT);
int halox_ctx_enable_peer(IN_CONTEXT, CUhandle peer);
int halox_ctx_priorities(IN_CONTEXT, int *least, int *greatest);

int halox_mem_info(IN_CONTEXT, size_t *available, size_t *total);
int halox_mem_alloc(IN_CONTEXT, CUaddr *p, size_t n);
int halox_mem_free(IN_CONTEXT, CUaddr p);
int halox_host_alloc(IN_CONTEXT, void **p, size_t n, unsigned flags);
int halox_host_free(IN_CONTEXT, void *p);
int halox_host_device_pointer(IN_CONTEXT, CUaddr *dp, void *p);

int halox_copy_htod(IN_CONTEXT, CUaddr dst, const void *src, size_t n, CUhandle stream);
int halox_copy_dtoh(IN_CONTEXT, void *dst, CUaddr src, size_t n, CUhandle stream);
int halox_copy_dtod(IN_CONTEXT, CUaddr dst, CUaddr src, size_t n, CUhandle stream);
int halox_copy_peer(IN_CONTEXT, CUaddr dst, CUhandle dst_ctx, CUaddr src, CUhandle src_ctx, size_t n, CUhandle stream);
int halox_copy_3d(IN_CONTEXT, const CUcopy3D *copy, CUhandle stream);
int halox_copy_3d_peer(IN_CONTEXT, const CUcopy3D *copy, CUhandle stream);
int halox_memset(IN_CONTEXT, CUaddr dst, unsigned char value, size_t n, CUhandle stream);

int halox_stream_create(IN_CONTEXT, CUhandle *stream, int priority);
int halox_stream_destroy(IN_CONTEXT, CUhandle stream);
int halox_stream_synchronize(IN_CONTEXT, CUhandle stream);
int halox_stream_query(IN_CONTEXT, CUhandle stream);
int halox_stream_wait(IN_CONTEXT, CUhandle stream, CUhandle event);

int halox_capture_begin(IN_CONTEXT, CUhandle stream);
int halox_capture_end(IN_CONTEXT, CUhandle stream, CUhandle *graph);
int halox_graph_instantiate(IN_CONTEXT, CUhandle *exec, CUhandle graph);
int halox_graph_upload(IN_CONTEXT, CUhandle exec, CUhandle stream);
int halox_graph_launch(IN_CONTEXT, CUhandle exec, CUhandle stream);
int halox_graph_exec_destroy(IN_CONTEXT, CUhandle exec);
int halox_graph_destroy(IN_CONTEXT, CUhandle graph);

int halox_event_create(IN_CONTEXT, CUhandle *event, unsigned flags);
int halox_event_destroy(IN_CONTEXT, CUhandle event);
int halox_event_record(IN_CONTEXT, CUhandle event, CUhandle stream);
int halox_event_query(IN_CONTEXT, CUhandle event);
int halox_event_synchronize(IN_CONTEXT, CUhandle event);
int halox_event_elapsed(IN_CONTEXT, float *ms, CUhandle start, CUhandle end);

int halox_ipc_memory_handle(IN_CONTEXT, CUipc *handle, CUaddr p);
int halox_ipc_open_memory(IN_CONTEXT, CUaddr *p, const CUipc *handle);
int halox_ipc_close_memory(IN_CONTEXT, CUaddr p);
int halox_ipc_event_handle(IN_CONTEXT, CUipc *handle, CUhandle event);
int halox_ipc_open_event(IN_CONTEXT, CUhandle *event, const CUipc *handle);

int halox_module_load(IN_CONTEXT, CUhandle *module, const void *image, char *log, size_t log_size);
int halox_module_unload(IN_CONTEXT, CUhandle module);
int halox_module_function(IN_CONTEXT, CUhandle *fn, CUhandle module, const char *name);
int halox_function_attribute(IN_CONTEXT, int *value, int attribute, CUhandle fn);
int halox_function_set_attribute(IN_CONTEXT, CUhandle fn, int attribute, int value);
int halox_occupancy(IN_CONTEXT, int *blocks, CUhandle fn, int threads, size_t shared);

// A launch that is ready to go: the driver wants an array of pointers to the
// arguments, and cgo forbids to build one from Go memory.
typedef struct {
	CUhandle fn;
	unsigned grid[3], block[3], shared;
	int early;       // it may begin while what is queued before it still ends
	int cooperative; // all its blocks run at the same time
	size_t arg_size;
	void *params[1]; // points at arg
	_Alignas(64) unsigned char arg[];
} halox_launch;

halox_launch *halox_launch_new(CUhandle fn, size_t arg_size);
int halox_launch_kernel(IN_CONTEXT, const halox_launch *l, CUhandle stream, int early);

#endif
