// Memory and copies.

#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PORTABLE = 1, MAPPED = 2 };

API cuMemGetInfo_v2(size_t *available, size_t *total) {
	LIVE("cuMemGetInfo");
	*available = (size_t)FAKE_MEMORY - fake_used(fake_current->device);
	*total = (size_t)6 << 30;
	return SUCCESS;
}

enum { ALIGNED = 16, PAGE = 4096, SHARED_UNIT = 2 << 20 }; // a real driver aligns to 256 bytes

// New memory holds a pattern, so that nobody lives on zeros. It lies between pages that nobody may touch: at the end of what is before
// the second, and each fourth time at the beginning of what is behind the first.
static object *allocate(enum kind kind, size_t n) {
	static size_t count;
	const size_t used = (n + ALIGNED - 1) / ALIGNED * ALIGNED, pages = (n + PAGE - 1) / PAGE * PAGE;
	if (n > (size_t)6 << 30) return NULL;
	char *map = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) return NULL;
	if (mprotect(map + PAGE, pages, PROT_READ | PROT_WRITE)) {
		munmap(map, pages + 2 * PAGE);
		return NULL;
	}
	object *o = fake_new(kind, n);
	o->map = map;
	o->mapped = pages + 2 * PAGE;
	if (kind == MEMORY && n % SHARED_UNIT == 0 && (o->file = fake_shared_file(pages + PAGE)))
		fake_map(map + PAGE, o->file, pages, 0);
	o->bytes = map + PAGE + (count++ % 4 ? pages - used : 0);
	memset(o->bytes, 0xA5, n);
	return o;
}

API cuMemAlloc_v2(addr *p, size_t n) {
	LIVE("cuMemAlloc");
	if (!n) return INVALID_VALUE;
	if (n > (size_t)FAKE_MEMORY - fake_used(fake_current->device)) return OUT_OF_MEMORY;
	object *o = allocate(MEMORY, n);
	if (!o) return OUT_OF_MEMORY;
	*p = (addr)o->bytes;
	return SUCCESS;
}

API cuMemHostAlloc(void **p, size_t n, unsigned flags) {
	LIVE("cuMemHostAlloc");
	if (!n) return INVALID_VALUE;
	object *o = allocate(HOST, n);
	if (!o) return OUT_OF_MEMORY;
	o->flags = flags;
	*p = o->bytes;
	return SUCCESS;
}

static int release(enum kind kind, void *p) {
	object *o = fake_find(kind, p, 1);
	if (!o || o->bytes != p) return INVALID_VALUE;
	if (o->device != fake_current->device) return INVALID_CONTEXT;
	if (o->opened || fake_is_open(o)) return ILLEGAL_STATE;
	fake_drain_device(o->device);
	fake_drop(o);
	return SUCCESS;
}

API cuMemFree_v2(addr p) {
	LIVE("cuMemFree");
	return release(MEMORY, (void *)p);
}

API cuMemFreeHost(void *p) {
	LIVE("cuMemFreeHost");
	return release(HOST, p);
}

API cuMemHostGetDevicePointer_v2(addr *dp, void *p, unsigned flags) {
	LIVE("cuMemHostGetDevicePointer");
	object *o = fake_find(HOST, p, 1);
	if (flags || !o || !(o->flags & MAPPED)) return INVALID_VALUE;
	*dp = (addr)p;
	return SUCCESS;
}

// on_device: n bytes of memory that the current context may use.
static int on_device(addr p, size_t n) {
	object *o = fake_find(MEMORY, (void *)p, n);
	if (!o) return INVALID_VALUE;
	if (o->device == fake_current->device) return SUCCESS;
	return fake_current->peers >> o->device & 1 ? SUCCESS : INVALID_CONTEXT;
}

// in_context: n bytes of memory of that context.
static int in_context(addr p, size_t n, context *c) {
	object *o = fake_find(MEMORY, (void *)p, n);
	if (!o) return INVALID_VALUE;
	return c && o->device == c->device ? SUCCESS : INVALID_CONTEXT;
}

// pinned: n bytes of pinned memory that the current context may use. A real
// driver takes any host memory, but then copies are not asynchronous.
static int pinned(const void *p, size_t n) {
	object *o = fake_find(HOST, p, n);
	if (!o) return INVALID_VALUE;
	return o->flags & PORTABLE || o->device == fake_current->device ? SUCCESS : INVALID_CONTEXT;
}

// on_stream takes the null stream as a real driver does, for which it is the
// default stream: that nobody uses it is the binding's business.
static int on_stream(void *s) { return !s || fake_get(STREAM, s) ? SUCCESS : INVALID_HANDLE; }

static int copy(void *s, void *dst, const void *src, size_t n) {
	work w = {.dst = dst, .src = src, .width = n, .height = 1, .depth = 1};
	return fake_do(s, &w);
}

API cuMemcpyHtoDAsync_v2(addr dst, const void *src, size_t n, void *s) {
	LIVE("cuMemcpyHtoDAsync");
	return on_stream(s) ?: on_device(dst, n) ?: pinned(src, n) ?: copy(s, (void *)dst, src, n);
}

API cuMemcpyDtoHAsync_v2(void *dst, addr src, size_t n, void *s) {
	LIVE("cuMemcpyDtoHAsync");
	return on_stream(s) ?: on_device(src, n) ?: pinned(dst, n) ?: copy(s, dst, (void *)src, n);
}

API cuMemcpyDtoDAsync_v2(addr dst, addr src, size_t n, void *s) {
	LIVE("cuMemcpyDtoDAsync");
	return on_stream(s) ?: on_device(dst, n) ?: on_device(src, n) ?: copy(s, (void *)dst, (void *)src, n);
}

// to_peer: copies to peers are not captured; one that is refused leaves the capture
// as it was.
static int to_peer(void *s) {
	object *o = s;
	return o && o->capture ? CAPTURE_UNSUPPORTED : SUCCESS;
}

#ifndef FAKE_WITHOUT_PEER
API cuMemcpyPeerAsync(addr dst, context *dst_ctx, addr src, context *src_ctx, size_t n, void *s) {
	LIVE("cuMemcpyPeerAsync");
	int rc = on_stream(s) ?: in_context(dst, n, dst_ctx) ?: in_context(src, n, src_ctx) ?: to_peer(s);
	if (rc) return rc;
	work w = {.dst = (char *)dst, .src = (char *)src, .width = n, .height = 1, .depth = 1,
		  .from = src_ctx->device, .to = dst_ctx->device};
	return fake_do(s, &w);
}
#endif

// copy3d is CUDA_MEMCPY3D, and with contexts in the reserved places
// CUDA_MEMCPY3D_PEER.
typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	int srcMemoryType;
	const void *srcHost;
	addr srcDevice;
	void *srcArray;
	context *srcContext;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	int dstMemoryType;
	void *dstHost;
	addr dstDevice;
	void *dstArray;
	context *dstContext;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} copy3d;

enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };

// end is either end of a copy3d.
typedef struct {
	size_t x, y, z, lod;
	int type;
	char *host;
	addr device;
	void *array;
	context *ctx;
	size_t pitch, height;
} end;

#define END(c, at)                                                                          \
	(end) {                                                                             \
		(c)->at##XInBytes, (c)->at##Y, (c)->at##Z, (c)->at##LOD, (c)->at##MemoryType, \
			(char *)(c)->at##Host, (c)->at##Device, (c)->at##Array, (c)->at##Context, \
			(c)->at##Pitch, (c)->at##Height,                                      \
	}

// first is where the box begins; a real driver ignores the address that is not
// of the memory's type.
static char *first(const end *e) {
	return (e->type == TYPE_HOST ? e->host : (char *)e->device) + (e->z * e->height + e->y) * e->pitch + e->x;
}

// takes says whether the end can hold the box of c, and leaves no place set
// that means nothing.
static int takes(const end *e, const copy3d *c, int peer) {
	if (e->lod || e->array || (!peer && e->ctx)) return INVALID_VALUE;
	if (e->type != TYPE_HOST && e->type != TYPE_DEVICE) return INVALID_VALUE;
	if (e->type == TYPE_HOST ? e->device || !e->host : e->host || !e->device) return INVALID_VALUE;
	if (e->pitch > MAX_PITCH || e->pitch < e->x + c->WidthInBytes) return INVALID_VALUE;
	if (c->Depth > 1 && e->height < e->y + c->Height) return INVALID_VALUE;
	size_t n = ((c->Depth - 1) * e->height + c->Height - 1) * e->pitch + c->WidthInBytes;
	if (peer) return e->type == TYPE_DEVICE ? in_context((addr)first(e), n, e->ctx) : INVALID_VALUE;
	return e->type == TYPE_HOST ? pinned(first(e), n) : on_device((addr)first(e), n);
}

static int copy_box(const copy3d *c, void *s, int peer) {
	if (!c->WidthInBytes || !c->Height || !c->Depth) return INVALID_VALUE;
	end dst = END(c, dst), src = END(c, src);
	int rc = on_stream(s) ?: takes(&dst, c, peer) ?: takes(&src, c, peer) ?: (peer ? to_peer(s) : SUCCESS);
	if (rc) return rc;
	work w = {.dst = first(&dst), .src = first(&src),
		  .width = c->WidthInBytes, .height = c->Height, .depth = c->Depth,
		  .dst_pitch = dst.pitch, .dst_rows = dst.height, .src_pitch = src.pitch, .src_rows = src.height};
	if (peer) w.from = src.ctx->device, w.to = dst.ctx->device;
	return fake_do(s, &w);
}

API cuMemcpy3DAsync_v2(const copy3d *c, void *s) {
	LIVE("cuMemcpy3DAsync");
	return copy_box(c, s, 0);
}

API cuMemcpy3DPeerAsync(const copy3d *c, void *s) {
	LIVE("cuMemcpy3DPeerAsync");
	return copy_box(c, s, 1);
}

API cuMemsetD8Async(addr dst, unsigned char value, size_t n, void *s) {
	LIVE("cuMemsetD8Async");
	work w = {.dst = (char *)dst, .value = value, .width = n, .height = 1, .depth = 1};
	return on_stream(s) ?: on_device(dst, n) ?: fake_do(s, &w);
}
