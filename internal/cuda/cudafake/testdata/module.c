// Modules, kernels and launches. A fake image is a text: the line "fake", then
// for each kernel a line with its name and the size of its argument in bytes.
// PTX and cubins load too; their kernels are taken on trust to have no
// argument.

#define _GNU_SOURCE
#include "fake.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ERROR_LOG = 5, ERROR_LOG_SIZE = 6 };

static int is_fake(const char *image) { return !strncmp(image, "fake\n", 5); }
static int is_elf(const char *image) { return !strncmp(image, "\177ELF", 4); }

// A shared object for this machine holds kernels that run; ELF's machine 190 is CUDA.
static int is_library(const char *image) { return is_elf(image) && ((const Elf64_Ehdr *)image)->e_machine != 190; }
static int is_cubin(const char *image) { return is_elf(image) && !is_library(image); }

// load loads a shared object from memory. Its sections end with the table of their headers.
static void *load(const char *image) {
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
	size_t size = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
	char path[] = "/tmp/fakecuda-XXXXXX"; // of its own: the loader knows libraries by their paths
	int file = mkstemp(path);
	if (file < 0) return NULL;
	void *library = NULL;
	if (write(file, image, size) == (ssize_t)size) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	close(file);
	unlink(path);
	return library;
}

static void complain(unsigned n, const int *options, void **values) {
	char *log = NULL;
	size_t size = 0;
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == ERROR_LOG) log = values[i];
		if (options[i] == ERROR_LOG_SIZE) size = (size_t)values[i];
	}
	if (log) snprintf(log, size, "ptxas fatal: this is not an image");
}

API cuModuleLoadDataEx(object **m, const char *image, unsigned n, int *options, void **values) {
	LIVE("cuModuleLoadDataEx");
	void *library = is_library(image) ? load(image) : NULL;
	if (!library && !is_cubin(image) && !is_fake(image) && !strstr(image, ".version")) {
		complain(n, options, values);
		return INVALID_IMAGE;
	}
	*m = fake_new(MODULE, 0);
	(*m)->bytes = is_elf(image) ? strdup("\177ELF") : strdup(image);
	(*m)->library = library;
	return SUCCESS;
}

API cuModuleUnload(void *m) {
	LIVE("cuModuleUnload");
	object *o = fake_get(MODULE, m);
	if (!o) return INVALID_HANDLE;
	fake_drain_device(o->device);
	fake_drop(o);
	return SUCCESS;
}

// symbol finds what a library has of a kernel.
static void *symbol(void *library, const char *what, const char *kernel) {
	char name[128];
	snprintf(name, sizeof name, "%s_%s", what, kernel);
	return dlsym(library, name);
}

// argument is the size of the named kernel's argument, or -1 if the image has
// no such kernel.
static long argument(const char *image, const char *name) {
	if (is_elf(image)) return 0;
	if (!is_fake(image)) return strstr(image, name) ? 0 : -1;
	char found[64];
	long size;
	int used;
	for (const char *p = image + 5; sscanf(p, "%63s %ld %n", found, &size, &used) == 2; p += used)
		if (!strcmp(found, name)) return size;
	return -1;
}

API cuModuleGetFunction(object **f, void *m, const char *name) {
	LIVE("cuModuleGetFunction");
	object *module = fake_get(MODULE, m);
	if (!module) return INVALID_HANDLE;
	const unsigned *known = module->library ? symbol(module->library, "size", name) : NULL;
	long size = known ? *known : module->library ? -1 : argument(module->bytes, name);
	if (size < 0) return NOT_FOUND;
	*f = fake_new(FUNCTION, size);
	(*f)->module = module;
	if (known) *(void **)&(*f)->run = symbol(module->library, "run", name);
	strncpy((*f)->name, name, sizeof (*f)->name - 1);
	return SUCCESS;
}

// static_shared is the shared memory that a kernel has itself: 1 KiB where its name says so.
static unsigned static_shared(const object *f) { return strcmp(f->name, "has_1_kib") ? 0 : 1 << 10; }

// shared_fits returns whether a launch may have so much dynamic shared memory: more than the default must be asked for.
static int shared_fits(const object *f, size_t shared) { return shared + static_shared(f) <= 48 << 10 || shared <= (size_t)f->flags; }

API cuFuncGetAttribute(int *value, int which, void *f) {
	LIVE("cuFuncGetAttribute");
	object *o = fake_get(FUNCTION, f);
	if (!o) return INVALID_HANDLE;
	switch (which) {
	case 0: *value = 1024; break;
	case 1: *value = (int)static_shared(o); break;
	case 4: *value = 32; break;
	case 8: *value = o->flags; break;
	default: *value = 0;
	}
	return SUCCESS;
}

API cuFuncSetAttribute(void *f, int which, int value) {
	LIVE("cuFuncSetAttribute");
	object *o = fake_get(FUNCTION, f);
	if (!o) return INVALID_HANDLE;
	if (which == 8) o->flags = value;
	return SUCCESS;
}

static int active_blocks(int threads, size_t shared) {
	int blocks = 2048 / threads;
	return shared && (228u << 10) / shared < (size_t)blocks ? (int)((228u << 10) / shared) : blocks;
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *f, int threads, size_t shared) {
	LIVE("cuOccupancyMaxActiveBlocksPerMultiprocessor");
	const object *o = fake_get(FUNCTION, f);
	if (!o) return INVALID_HANDLE;
	if (threads <= 0) return INVALID_VALUE;
	*blocks = shared_fits(o, shared) ? active_blocks(threads, shared) : 0;
	return SUCCESS;
}

// The driver's CUlaunchConfig and CUlaunchAttribute.
typedef struct {
	int id;
	char pad[4];
	union { int number; char all[64]; } value;
} attribute;

typedef struct {
	unsigned grid[3], block[3], shared;
	void *stream;
	attribute *attrs;
	unsigned attr_count;
} config;

static size_t blocks_of(const config *c) { return (size_t)c->grid[0] * c->grid[1] * c->grid[2]; }
static int threads_of(const config *c) { return (int)(c->block[0] * c->block[1] * c->block[2]); }

API cuLaunchKernelEx(const config *c, void *f, void **params, void **extra) {
	LIVE("cuLaunchKernelEx");
	object *o = fake_get(FUNCTION, f);
	if (!o || !fake_known(MODULE, o->module) || !fake_get(STREAM, c->stream)) return INVALID_HANDLE;
	if (extra || (o->size && (!params || !params[0]))) return INVALID_VALUE;
	if (!shared_fits(o, c->shared)) return INVALID_VALUE;
	work w = {.function = o, .shared = c->shared};
	for (unsigned i = 0; i < c->attr_count; i++) {
		switch (c->attrs[i].id) {
		case 2: w.cooperative = c->attrs[i].value.number; break;
		case 6: w.early = c->attrs[i].value.number; break;
		default: return INVALID_VALUE; // it knows no other
		}
	}
	if (w.cooperative && blocks_of(c) > (size_t)active_blocks(threads_of(c), c->shared) * fake_attribute(16)) return COOPERATIVE_TOO_LARGE;
	memcpy(w.grid, c->grid, sizeof w.grid);
	memcpy(w.block, c->block, sizeof w.block);
	if (o->size) memcpy(w.arg, params[0], o->size);
	return fake_do(c->stream, &w);
}
