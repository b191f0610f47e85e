// Devices, their primary contexts, and the driver as a whole.

#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_device(int device) { return device < 0 || device >= fake_count; }

#ifdef FAKE_MIG
#define KIND "MIG"
#else
#define KIND "GPU"
#endif

// visible gives the device with the given number, -1 if there is none. Devices are those of CUDA_VISIBLE_DEVICES in its
// order if that has UUIDs of this driver, otherwise all. MIG instances may also be listed by number, and those that are
// not in a list are not visible.
static int visible(int ordinal) {
	const char *list = getenv("CUDA_VISIBLE_DEVICES"), *uuid = KIND "-00010203-0405-0607-0809-0a0b0c0d0e";
	const size_t length = strlen(uuid);
	int device = ordinal, mig = !strcmp(KIND, "MIG") && list && *list;
	if (mig || (list && !strncmp(list, uuid, length))) {
		for (; list && ordinal > 0; ordinal--)
			if ((list = strchr(list, ','))) list++;
		device = -1;
		if (list && !strncmp(list, uuid, length)) device = strtol(list + length, NULL, 16) - 0xf0;
		else if (list && *list >= '0' && *list <= '9') device = atoi(list);
	}
	return no_device(device) ? -1 : device;
}

API cuInit(unsigned flags) {
	CALL("cuInit");
	if (visible(0) < 0) return NO_DEVICE;
	fake_initialised = 1;
	return flags ? INVALID_VALUE : SUCCESS;
}

API cuDriverGetVersion(int *version) {
	CALL("cuDriverGetVersion");
	*version = 13000;
	return SUCCESS;
}

// Only some codes have words, so that tests meet both cases.
static const struct {
	int code;
	const char *name, *text;
} words[] = {
	{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
};

API cuGetErrorName(int code, const char **name) {
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (words[i].code == code) return *name = words[i].name, SUCCESS;
	return INVALID_VALUE;
}

API cuGetErrorString(int code, const char **text) {
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (words[i].code == code) return *text = words[i].text, SUCCESS;
	return INVALID_VALUE;
}

API cuDeviceGetCount(int *count) {
	CALL("cuDeviceGetCount");
	for (*count = 0; visible(*count) >= 0;) ++*count;
	return fake_initialised ? SUCCESS : NOT_INITIALIZED;
}

API cuDeviceGet(int *device, int ordinal) {
	CALL("cuDeviceGet");
	*device = visible(ordinal);
	return *device < 0 ? INVALID_DEVICE : SUCCESS;
}

API cuDeviceGetName(char *name, int size, int device) {
	CALL("cuDeviceGetName");
	snprintf(name, size, strcmp(KIND, "MIG") ? "Fake GPU %d" : "Fake GPU %d MIG 1g.5gb", device);
	return no_device(device) ? INVALID_DEVICE : SUCCESS;
}

API cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
	CALL("cuDeviceGetUuid");
	for (int i = 0; i < 16; i++) uuid[i] = i;
	uuid[15] = 0xf0 + device;
	return no_device(device) ? INVALID_DEVICE : SUCCESS;
}

API cuDeviceGetPCIBusId(char *id, int size, int device) {
	CALL("cuDeviceGetPCIBusId");
	snprintf(id, size, "0000:%02x:00.0", 0x3b + device);
	return no_device(device) ? INVALID_DEVICE : SUCCESS;
}

API cuDeviceTotalMem_v2(size_t *bytes, int device) {
	CALL("cuDeviceTotalMem");
	*bytes = (size_t)6 << 30;
	return no_device(device) ? INVALID_DEVICE : SUCCESS;
}

// Attributes that a program may divide by have a plausible value.
int fake_attribute(int which) {
	switch (which) {
	case 1: return 1024;        // threads of a block
	case 8: return 48 << 10;    // shared memory of a block
	case 10: return 32;         // warp
	case 11: return MAX_PITCH;
	case 13: return 1000000;    // clock
	case 16: return FAKE_MULTIPROCESSORS;
	case 36: return 1000000;    // memory clock
	case 37: return 1024;       // bus width
	case 38: return 1 << 20;    // L2
	case 39: return 2048;       // threads of a multiprocessor
	case 40: return 2;          // copy engines
	case 41: return 1;          // unified addressing
	case 75: return 9;          // compute capability
	case 76: return 0;
	case 95: return 1;          // cooperative launches
	case 81: return 228 << 10;  // shared memory of a multiprocessor
	case 97: return FAKE_SHARED; // the most of it for a block
	}
	return 0;
}

API cuDeviceGetAttribute(int *value, int which, int device) {
	CALL("cuDeviceGetAttribute");
	*value = fake_attribute(which);
	return no_device(device) ? INVALID_DEVICE : SUCCESS;
}

// is_closed tells whether one device cannot reach another: none can with FAKE_APART.
static int is_closed(int device, int peer) {
#ifdef FAKE_APART
	return 1;
#endif
	return fake_links[device][peer] == CLOSED;
}

API cuDeviceCanAccessPeer(int *can, int device, int peer) {
	CALL("cuDeviceCanAccessPeer");
	if (no_device(device) || no_device(peer)) return INVALID_DEVICE;
	*can = device != peer && !is_closed(device, peer);
	return SUCCESS;
}

API cuDeviceGetP2PAttribute(int *value, int which, int device, int peer) {
	CALL("cuDeviceGetP2PAttribute");
	if (no_device(device) || no_device(peer) || device == peer) return INVALID_DEVICE;
	*value = which == 1 ? 0 : 1;
	return SUCCESS;
}

API cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
	CALL("cuDevicePrimaryCtxSetFlags");
	if (no_device(device)) return INVALID_DEVICE;
	fake_contexts[device].flags = flags;
	return SUCCESS;
}

API cuDevicePrimaryCtxRetain(context **ctx, int device) {
	CALL("cuDevicePrimaryCtxRetain");
	if (no_device(device)) return INVALID_DEVICE;
	*ctx = &fake_contexts[device];
	(*ctx)->device = device;
	(*ctx)->shares++;
	return SUCCESS;
}

API cuDevicePrimaryCtxRelease_v2(int device) {
	CALL("cuDevicePrimaryCtxRelease");
	context *c = &fake_contexts[device];
	if (!c->shares) return INVALID_CONTEXT;
	if (--c->shares == 0) {
		fake_drain_device(device);
		fake_drop_all(device);
		c->peers = 0;
	}
	return SUCCESS;
}

API cuCtxSetCurrent(context *ctx) {
	CALL("cuCtxSetCurrent");
	if (ctx && !ctx->shares) return INVALID_CONTEXT;
	fake_current = ctx;
	return SUCCESS;
}

API cuCtxSynchronize(void) {
	LIVE("cuCtxSynchronize");
	fake_drain_device(fake_current->device);
	return fake_current->dead;
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
	LIVE("cuCtxGetStreamPriorityRange");
	*least = 0;
	*greatest = -5;
	return SUCCESS;
}

// FAKE_WITHOUT_PEER makes a driver that lacks two functions.
#ifndef FAKE_WITHOUT_PEER
API cuCtxEnablePeerAccess(context *peer, unsigned flags) {
	LIVE("cuCtxEnablePeerAccess");
	if (flags) return INVALID_VALUE;
	if (!peer || !peer->shares) return INVALID_CONTEXT;
	if (peer == fake_current) return INVALID_DEVICE;
	if (is_closed(fake_current->device, peer->device)) return PEER_UNSUPPORTED;
	if (fake_current->peers >> peer->device & 1) return PEER_ALREADY_ENABLED;
	fake_current->peers |= 1u << peer->device;
	return SUCCESS;
}
#endif
