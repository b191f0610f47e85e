// Memory and events that other processes open. They lie in files without a name, which a handle names by the process
// and its number of the file. Events need streams that work by themselves.

#define _GNU_SOURCE
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

enum { LAZY = 1, PAGE = 4096 };

typedef struct {
	int process, file, device, peers;
	size_t size;
	char rest[64 - 16 - sizeof(size_t)];
} handle;

_Static_assert(sizeof(handle) == 64, "the driver's layout");

int fake_shared_file(size_t n) {
	const int file = memfd_create("fakecuda", MFD_CLOEXEC);
	if (file < 0) return 0;
	if (file && !ftruncate(file, n)) return file;
	close(file);
	return 0;
}

void *fake_map(void *at, int file, size_t n, size_t from) {
	void *p = mmap(at, n, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), file, from);
	return p == MAP_FAILED ? NULL : p;
}

// The last page of a file counts the processes that have the memory open.
static long *opened(int file, size_t size) {
	return fake_map(NULL, file, PAGE, (size + PAGE - 1) / PAGE * PAGE);
}

static int count(int file, size_t size, long change) {
	long *n = opened(file, size);
	if (!n) return -1;
	const long now = __atomic_add_fetch(n, change, __ATOMIC_SEQ_CST);
	munmap(n, PAGE);
	return now;
}

int fake_is_open(const object *o) { return o->file && count(o->file, o->size, 0) > 0; }

API cuIpcGetMemHandle(handle *h, addr p) {
	LIVE("cuIpcGetMemHandle");
	object *o = fake_find(MEMORY, (void *)p, 1);
	if (!o || o->bytes != (char *)p || o->opened) return INVALID_VALUE;
	if (o->device != fake_current->device) return INVALID_CONTEXT;
	if (!o->file) return INVALID_VALUE; // a part of 2 MiB, which a real driver would pass as a whole
	*h = (handle){.process = getpid(), .file = o->file, .device = o->device, .size = o->size};
	return SUCCESS;
}

#ifdef FAKE_LYING_IPC
#define SHARED_MAP(file, n) mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0)
#else
#define SHARED_MAP(file, n) fake_map(NULL, file, n, 0)
#endif

#ifdef FAKE_WITHOUT_IPC
#define PROCESSES "/nowhere"
#else
#define PROCESSES "/proc"
#endif

// open_file opens the file of a handle of another process.
static int open_file(const handle *h) {
	char name[64];
	if (h->process == getpid()) return 0;
	snprintf(name, sizeof name, PROCESSES "/%d/fd/%d", h->process, h->file);
	const int file = open(name, O_RDWR | O_CLOEXEC);
	return file < 0 ? 0 : file;
}

API cuIpcOpenMemHandle_v2(addr *p, handle h, unsigned flags) {
	LIVE("cuIpcOpenMemHandle");
	if (flags != LAZY) return INVALID_VALUE;
	const int file = open_file(&h);
	if (!file) return h.process == getpid() ? INVALID_CONTEXT : MAP_FAILURE;
	const size_t bytes = (h.size + PAGE - 1) / PAGE * PAGE;
	void *map = SHARED_MAP(file, bytes);
	if (!map || count(file, h.size, 1) < 1) return MAP_FAILURE;
	object *o = fake_new(MEMORY, h.size);
	o->map = o->bytes = map;
	o->mapped = bytes;
	o->file = file;
	o->opened = 1;
	*p = (addr)o->bytes;
	return SUCCESS;
}

API cuIpcCloseMemHandle(addr p) {
	LIVE("cuIpcCloseMemHandle");
	object *o = fake_find(MEMORY, (void *)p, 1);
	if (!o || o->bytes != (char *)p || !o->opened) return INVALID_VALUE;
	if (o->device != fake_current->device) return INVALID_CONTEXT;
	fake_drain_device(o->device);
	count(o->file, o->size, -1);
	fake_drop(o);
	return SUCCESS;
}

int fake_share_event(object *event) {
	event->mapped = PAGE;
	if (!(event->file = fake_shared_file(PAGE))) return OUT_OF_MEMORY;
	if (!(event->map = fake_map(NULL, event->file, PAGE, 0))) return OUT_OF_MEMORY;
	fake_share_mark(event, event->map);
	return SUCCESS;
}

API cuIpcGetEventHandle(handle *h, void *event) {
	LIVE("cuIpcGetEventHandle");
	object *o = fake_get(EVENT, event);
	if (!o || !o->file || o->opened) return INVALID_HANDLE;
	*h = (handle){.process = getpid(), .file = o->file, .device = o->device, .size = PAGE};
	return SUCCESS;
}

API cuIpcOpenEventHandle(object **event, handle h) {
	LIVE("cuIpcOpenEventHandle");
	const int file = open_file(&h);
	void *map = file ? fake_map(NULL, file, PAGE, 0) : NULL;
	if (!map) return h.process == getpid() ? INVALID_CONTEXT : MAP_FAILURE;
	object *o = *event = fake_new(EVENT, 0);
	o->flags = 6;
	o->file = file;
	o->map = map;
	o->mapped = PAGE;
	o->opened = 1;
	fake_share_mark(o, map);
	return SUCCESS;
}
