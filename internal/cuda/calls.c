//go:build linux && cgo

#include "calls.h"

#include <stdlib.h>
#include <string.h>

enum {
	DEINITIALIZED = 4,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,

	STREAM_NON_BLOCKING = 1,
	CAPTURE_RELAXED = 2,
	COOPERATIVE = 2,
	PROGRAMMATIC_STREAM_SERIALIZATION = 6,

	IPC_LAZY_ENABLE_PEER_ACCESS = 1,

	JIT_ERROR_LOG = 5,
	JIT_ERROR_LOG_SIZE = 6,
};

// enter makes ctx current. A driver that was closed and a context that was
// released are told apart here, where the driver itself could only crash.
static inline int enter(IN_CONTEXT) {
	if (!d) return DEINITIALIZED;
	if (!ctx) return INVALID_CONTEXT;
	return d->cuCtxSetCurrent(ctx);
}

// enter_stream also refuses the null stream, which would be the default stream
// and would wait for all others.
static inline int enter_stream(IN_CONTEXT, CUhandle stream) {
	return stream ? enter(d, ctx) : INVALID_HANDLE;
}

// x ?: y is x unless that is 0: go on to y only when x succeeded.
#define DRIVER(call) return (d ? 0 : DEINITIALIZED) ?: (call)
#define CONTEXT(call) return enter(d, ctx) ?: (call)
#define STREAM(call) return enter_stream(d, ctx, stream) ?: (call)
#define HANDLE(handle, call) return (handle ? enter(d, ctx) : INVALID_HANDLE) ?: (call)

int halox_init(IN_DRIVER) { DRIVER(d->cuInit(0)); }
int halox_version(IN_DRIVER, int *version) { DRIVER(d->cuDriverGetVersion(version)); }

const char *halox_error_name(IN_DRIVER, int code) {
	const char *name = NULL;
	return d && !d->cuGetErrorName(code, &name) ? name : NULL;
}

const char *halox_error_text(IN_DRIVER, int code) {
	const char *text = NULL;
	return d && !d->cuGetErrorString(code, &text) ? text : NULL;
}

int halox_device_count(IN_DRIVER, int *count) { DRIVER(d->cuDeviceGetCount(count)); }
int halox_device(IN_DRIVER, int *device, int ordinal) { DRIVER(d->cuDeviceGet(device, ordinal)); }
int halox_device_name(IN_DRIVER, char *name, int size, int device) { DRIVER(d->cuDeviceGetName(name, size, device)); }
int halox_device_uuid(IN_DRIVER, unsigned char *uuid, int device) { DRIVER(d->cuDeviceGetUuid(uuid, device)); }
int halox_device_pci(IN_DRIVER, char *id, int size, int device) { DRIVER(d->cuDeviceGetPCIBusId(id, size, device)); }
int halox_device_memory(IN_DRIVER, size_t *bytes, int device) { DRIVER(d->cuDeviceTotalMem(bytes, device)); }

int halox_device_attribute(IN_DRIVER, int *value, int attribute, int device) {
	DRIVER(d->cuDeviceGetAttribute(value, attribute, device));
}

int halox_device_can_access(IN_DRIVER, int *can, int device, int peer) {
	DRIVER(d->cuDeviceCanAccessPeer(can, device, peer));
}

int halox_device_p2p(IN_DRIVER, int *value, int attribute, int device, int peer) {
	DRIVER(d->cuDeviceGetP2PAttribute(value, attribute, device, peer));
}

int halox_primary_flags(IN_DRIVER, int device, unsigned flags) { DRIVER(d->cuDevicePrimaryCtxSetFlags(device, flags)); }
int halox_primary_retain(IN_DRIVER, CUhandle *ctx, int device) { DRIVER(d->cuDevicePrimaryCtxRetain(ctx, device)); }
int halox_primary_release(IN_DRIVER, int device) { DRIVER(d->cuDevicePrimaryCtxRelease(device)); }

int halox_ctx_enter(IN_CONTEXT) { CONTEXT(0); }
int halox_ctx_synchronize(IN_CONTEXT) { CONTEXT(d->cuCtxSynchronize()); }
int halox_ctx_enable_peer(IN_CONTEXT, CUhandle peer) { CONTEXT(d->cuCtxEnablePeerAccess(peer, 0)); }

int halox_ctx_priorities(IN_CONTEXT, int *least, int *greatest) {
	CONTEXT(d->cuCtxGetStreamPriorityRange(least, greatest));
}

int halox_mem_info(IN_CONTEXT, size_t *available, size_t *total) { CONTEXT(d->cuMemGetInfo(available, total)); }
int halox_mem_alloc(IN_CONTEXT, CUaddr *p, size_t n) { CONTEXT(d->cuMemAlloc(p, n)); }
int halox_mem_free(IN_CONTEXT, CUaddr p) { CONTEXT(d->cuMemFree(p)); }
int halox_host_alloc(IN_CONTEXT, void **p, size_t n, unsigned flags) { CONTEXT(d->cuMemHostAlloc(p, n, flags)); }
int halox_host_free(IN_CONTEXT, void *p) { CONTEXT(d->cuMemFreeHost(p)); }

int halox_host_device_pointer(IN_CONTEXT, CUaddr *dp, void *p) {
	CONTEXT(d->cuMemHostGetDevicePointer(dp, p, 0));
}

int halox_copy_htod(IN_CONTEXT, CUaddr dst, const void *src, size_t n, CUhandle stream) {
	STREAM(d->cuMemcpyHtoDAsync(dst, src, n, stream));
}

int halox_copy_dtoh(IN_CONTEXT, void *dst, CUaddr src, size_t n, CUhandle stream) {
	STREAM(d->cuMemcpyDtoHAsync(dst, src, n, stream));
}

int halox_copy_dtod(IN_CONTEXT, CUaddr dst, CUaddr src, size_t n, CUhandle stream) {
	STREAM(d->cuMemcpyDtoDAsync(dst, src, n, stream));
}

int halox_copy_peer(IN_CONTEXT, CUaddr dst, CUhandle dst_ctx, CUaddr src, CUhandle src_ctx, size_t n, CUhandle stream) {
	STREAM(d->cuMemcpyPeerAsync(dst, dst_ctx, src, src_ctx, n, stream));
}

int halox_copy_3d(IN_CONTEXT, const CUcopy3D *copy, CUhandle stream) { STREAM(d->cuMemcpy3DAsync(copy, stream)); }

int halox_copy_3d_peer(IN_CONTEXT, const CUcopy3D *copy, CUhandle stream) {
	STREAM(d->cuMemcpy3DPeerAsync(copy, stream));
}

int halox_memset(IN_CONTEXT, CUaddr dst, unsigned char value, size_t n, CUhandle stream) {
	STREAM(d->cuMemsetD8Async(dst, value, n, stream));
}

int halox_stream_create(IN_CONTEXT, CUhandle *stream, int priority) {
	CONTEXT(d->cuStreamCreateWithPriority(stream, STREAM_NON_BLOCKING, priority));
}

int halox_stream_destroy(IN_CONTEXT, CUhandle stream) { STREAM(d->cuStreamDestroy(stream)); }
int halox_stream_synchronize(IN_CONTEXT, CUhandle stream) { STREAM(d->cuStreamSynchronize(stream)); }
int halox_stream_query(IN_CONTEXT, CUhandle stream) { STREAM(d->cuStreamQuery(stream)); }

int halox_stream_wait(IN_CONTEXT, CUhandle stream, CUhandle event) {
	STREAM(d->cuStreamWaitEvent(stream, event, 0));
}

// Relaxed: in the other modes a capture belongs to an OS thread, which a goroutine
// may leave, or forbids what other threads do meanwhile.
int halox_capture_begin(IN_CONTEXT, CUhandle stream) { STREAM(d->cuStreamBeginCapture(stream, CAPTURE_RELAXED)); }
int halox_capture_end(IN_CONTEXT, CUhandle stream, CUhandle *graph) { STREAM(d->cuStreamEndCapture(stream, graph)); }

int halox_graph_instantiate(IN_CONTEXT, CUhandle *exec, CUhandle graph) {
	HANDLE(graph, d->cuGraphInstantiateWithFlags(exec, graph, 0));
}

int halox_graph_upload(IN_CONTEXT, CUhandle exec, CUhandle stream) {
	if (!exec) return INVALID_HANDLE;
	STREAM(d->cuGraphUpload(exec, stream));
}

int halox_graph_launch(IN_CONTEXT, CUhandle exec, CUhandle stream) {
	if (!exec) return INVALID_HANDLE;
	STREAM(d->cuGraphLaunch(exec, stream));
}

int halox_graph_exec_destroy(IN_CONTEXT, CUhandle exec) { HANDLE(exec, d->cuGraphExecDestroy(exec)); }
int halox_graph_destroy(IN_CONTEXT, CUhandle graph) { HANDLE(graph, d->cuGraphDestroy(graph)); }

int halox_event_create(IN_CONTEXT, CUhandle *event, unsigned flags) { CONTEXT(d->cuEventCreate(event, flags)); }
int halox_event_destroy(IN_CONTEXT, CUhandle event) { CONTEXT(d->cuEventDestroy(event)); }
int halox_event_record(IN_CONTEXT, CUhandle event, CUhandle stream) { STREAM(d->cuEventRecord(event, stream)); }
int halox_event_query(IN_CONTEXT, CUhandle event) { CONTEXT(d->cuEventQuery(event)); }
int halox_event_synchronize(IN_CONTEXT, CUhandle event) { CONTEXT(d->cuEventSynchronize(event)); }

int halox_event_elapsed(IN_CONTEXT, float *ms, CUhandle start, CUhandle end) {
	CONTEXT(d->cuEventElapsedTime(ms, start, end));
}

int halox_ipc_memory_handle(IN_CONTEXT, CUipc *handle, CUaddr p) { CONTEXT(d->cuIpcGetMemHandle(handle, p)); }

int halox_ipc_open_memory(IN_CONTEXT, CUaddr *p, const CUipc *handle) {
	CONTEXT(d->cuIpcOpenMemHandle(p, *handle, IPC_LAZY_ENABLE_PEER_ACCESS));
}

int halox_ipc_close_memory(IN_CONTEXT, CUaddr p) { CONTEXT(d->cuIpcCloseMemHandle(p)); }

int halox_ipc_event_handle(IN_CONTEXT, CUipc *handle, CUhandle event) {
	HANDLE(event, d->cuIpcGetEventHandle(handle, event));
}

int halox_ipc_open_event(IN_CONTEXT, CUhandle *event, const CUipc *handle) {
	CONTEXT(d->cuIpcOpenEventHandle(event, *handle));
}

int halox_module_load(IN_CONTEXT, CUhandle *module, const void *image, char *log, size_t log_size) {
	int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE};
	void *values[] = {log, (void *)log_size}; // the size goes by value, in the pointer
	CONTEXT(d->cuModuleLoadDataEx(module, image, 2, options, values));
}

int halox_module_unload(IN_CONTEXT, CUhandle module) { CONTEXT(d->cuModuleUnload(module)); }

int halox_module_function(IN_CONTEXT, CUhandle *fn, CUhandle module, const char *name) {
	CONTEXT(d->cuModuleGetFunction(fn, module, name));
}

int halox_function_attribute(IN_CONTEXT, int *value, int attribute, CUhandle fn) {
	CONTEXT(d->cuFuncGetAttribute(value, attribute, fn));
}

int halox_function_set_attribute(IN_CONTEXT, CUhandle fn, int attribute, int value) {
	CONTEXT(d->cuFuncSetAttribute(fn, attribute, value));
}

int halox_occupancy(IN_CONTEXT, int *blocks, CUhandle fn, int threads, size_t shared) {
	CONTEXT(d->cuOccupancyMaxActiveBlocks(blocks, fn, threads, shared));
}

// The allocation is a multiple of its alignment, which aligned_alloc wants and
// which suits the tensor maps that an argument may hold.
halox_launch *halox_launch_new(CUhandle fn, size_t arg_size) {
	const size_t align = _Alignof(halox_launch);
	size_t size = (sizeof(halox_launch) + arg_size + align - 1) / align * align;
	halox_launch *l = aligned_alloc(align, size);
	if (!l) return NULL;
	memset(l, 0, size);
	l->fn = fn;
	l->arg_size = arg_size;
	l->params[0] = l->arg;
	return l;
}

int halox_launch_kernel(IN_CONTEXT, const halox_launch *l, CUhandle stream, int early) {
	if (!l) return INVALID_HANDLE;
	CUlaunchAttr attrs[2];
	CUlaunch launch = {.shared = l->shared, .stream = stream, .attrs = attrs};
	if (l->early && early) attrs[launch.attr_count++] = (CUlaunchAttr){.id = PROGRAMMATIC_STREAM_SERIALIZATION, .value = 1};
	if (l->cooperative) attrs[launch.attr_count++] = (CUlaunchAttr){.id = COOPERATIVE, .value = 1};
	memcpy(launch.grid, l->grid, sizeof launch.grid);
	memcpy(launch.block, l->block, sizeof launch.block);
	STREAM(d->cuLaunchKernelEx(&launch, l->fn, l->arg_size ? (void **)l->params : NULL, NULL));
}
