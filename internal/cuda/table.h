// The driver's functions that halox uses, and the table that holds them.

#ifndef HALOX_CUDA_TABLE_H
#define HALOX_CUDA_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t CUaddr;    // an address in device memory
typedef uintptr_t CUhandle; // any of the driver's opaque pointers

// CUipc is CUipcMemHandle and CUipcEventHandle, which the driver takes by value.
typedef struct {
	unsigned char bytes[64];
} CUipc;

// CUend3D is one end of a CUcopy3D. The context is of peer copies; for others
// its place is reserved and 0. The host address is no pointer here, so that Go
// may fill the struct in.
typedef struct {
	size_t x, y, z, lod; // where the box begins, here always 0
	int kind;            // 1: host memory, 2: device memory
	uintptr_t host;
	CUaddr device;
	CUhandle array, ctx;
	size_t pitch;  // bytes from one row to the next
	size_t height; // rows from one plane to the next
} CUend3D;

// CUcopy3D is CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER, which have one layout.
typedef struct {
	CUend3D src, dst;
	size_t width, height, depth; // bytes of a row, rows of a plane, planes
} CUcopy3D;

_Static_assert(sizeof(void *) != 8 || (sizeof(CUend3D) == 88 && sizeof(CUcopy3D) == 200), "the driver's layout");

// CUlaunchAttr is CUlaunchAttribute. Its values are of all kinds; those used here are
// numbers.
typedef struct {
	int id; // of CUlaunchAttributeID
	_Alignas(8) int value;
	unsigned char rest[60];
} CUlaunchAttr;

// CUlaunch is CUlaunchConfig.
typedef struct {
	unsigned grid[3], block[3], shared;
	CUhandle stream;
	CUlaunchAttr *attrs;
	unsigned attr_count;
} CUlaunch;

_Static_assert(sizeof(void *) != 8 || (sizeof(CUlaunchAttr) == 72 && sizeof(CUlaunch) == 56), "the driver's layout");

// Each line is a function's field in the table, the symbol that the driver
// exports for the version meant here, and its parameters. The symbol carries
// the version because the plain one may keep an older signature.
#define HALOX_CUDA_SYMBOLS(X)                                                                                            \
	X(cuInit, "cuInit", (unsigned))                                                                                  \
	X(cuDriverGetVersion, "cuDriverGetVersion", (int *))                                                             \
	X(cuGetErrorName, "cuGetErrorName", (int, const char **))                                                        \
	X(cuGetErrorString, "cuGetErrorString", (int, const char **))                                                    \
	X(cuDeviceGetCount, "cuDeviceGetCount", (int *))                                                                 \
	X(cuDeviceGet, "cuDeviceGet", (int *, int))                                                                      \
	X(cuDeviceGetName, "cuDeviceGetName", (char *, int, int))                                                        \
	X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (unsigned char *, int))                                                 \
	X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *, int, int))                                                \
	X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, int))                                                      \
	X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, int))                                               \
	X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int *, int, int))                                             \
	X(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute", (int *, int, int, int))                                    \
	X(cuDevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2", (int, unsigned))                                  \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUhandle *, int))                                       \
	X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int))                                              \
	X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUhandle))                                                                \
	X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                                                  \
	X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUhandle, unsigned))                                          \
	X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int *, int *))                                    \
	X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                                                         \
	X(cuMemAlloc, "cuMemAlloc_v2", (CUaddr *, size_t))                                                               \
	X(cuMemFree, "cuMemFree_v2", (CUaddr))                                                                           \
	X(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                                 \
	X(cuMemFreeHost, "cuMemFreeHost", (void *))                                                                      \
	X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (CUaddr *, void *, unsigned))                       \
	X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUaddr, const void *, size_t, CUhandle))                           \
	X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, CUaddr, size_t, CUhandle))                                 \
	X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUaddr, CUaddr, size_t, CUhandle))                                 \
	X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", (CUaddr, CUhandle, CUaddr, CUhandle, size_t, CUhandle))                \
	X(cuMemcpy3DAsync, "cuMemcpy3DAsync_v2", (const CUcopy3D *, CUhandle))                                           \
	X(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", (const CUcopy3D *, CUhandle))                                      \
	X(cuMemsetD8Async, "cuMemsetD8Async", (CUaddr, unsigned char, size_t, CUhandle))                                 \
	X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", (CUhandle *, unsigned, int))                         \
	X(cuStreamDestroy, "cuStreamDestroy_v2", (CUhandle))                                                             \
	X(cuStreamSynchronize, "cuStreamSynchronize", (CUhandle))                                                        \
	X(cuStreamQuery, "cuStreamQuery", (CUhandle))                                                                    \
	X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUhandle, CUhandle, unsigned))                                        \
	X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUhandle, int))                                              \
	X(cuStreamEndCapture, "cuStreamEndCapture", (CUhandle, CUhandle *))                                              \
	X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", (CUhandle *, CUhandle, unsigned long long))        \
	X(cuGraphUpload, "cuGraphUpload", (CUhandle, CUhandle))                                                          \
	X(cuGraphLaunch, "cuGraphLaunch", (CUhandle, CUhandle))                                                          \
	X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUhandle))                                                          \
	X(cuGraphDestroy, "cuGraphDestroy", (CUhandle))                                                                  \
	X(cuEventCreate, "cuEventCreate", (CUhandle *, unsigned))                                                        \
	X(cuEventDestroy, "cuEventDestroy_v2", (CUhandle))                                                               \
	X(cuEventRecord, "cuEventRecord", (CUhandle, CUhandle))                                                          \
	X(cuEventQuery, "cuEventQuery", (CUhandle))                                                                      \
	X(cuEventSynchronize, "cuEventSynchronize", (CUhandle))                                                          \
	X(cuEventElapsedTime, "cuEventElapsedTime", (float *, CUhandle, CUhandle))                                       \
	X(cuIpcGetMemHandle, "cuIpcGetMemHandle", (CUipc *, CUaddr))                                                     \
	X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2", (CUaddr *, CUipc, unsigned))                                      \
	X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", (CUaddr))                                                          \
	X(cuIpcGetEventHandle, "cuIpcGetEventHandle", (CUipc *, CUhandle))                                               \
	X(cuIpcOpenEventHandle, "cuIpcOpenEventHandle", (CUhandle *, CUipc))                                             \
	X(cuModuleLoadDataEx, "cuModuleLoadDataEx", (CUhandle *, const void *, unsigned, int *, void **))                \
	X(cuModuleUnload, "cuModuleUnload", (CUhandle))                                                                  \
	X(cuModuleGetFunction, "cuModuleGetFunction", (CUhandle *, CUhandle, const char *))                              \
	X(cuFuncGetAttribute, "cuFuncGetAttribute", (int *, int, CUhandle))                                              \
	X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUhandle, int, int))                                                \
	X(cuOccupancyMaxActiveBlocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *, CUhandle, int, size_t))     \
	X(cuLaunchKernelEx, "cuLaunchKernelEx", (const CUlaunch *, CUhandle, void **, void **))

#define HALOX_CUDA_FIELD(field, symbol, params) int(*field) params;
typedef struct {
	HALOX_CUDA_SYMBOLS(HALOX_CUDA_FIELD)
} halox_cuda;
#undef HALOX_CUDA_FIELD

// halox_cuda_open opens the library and fills a table that the caller frees.
// When it cannot, it returns NULL and writes into why, which has room for size
// bytes, the loader's words; or, with *missing set, the names of the symbols
// that the library lacks.
halox_cuda *halox_cuda_open(const char *path, char *why, size_t size, int *missing);

#endif
