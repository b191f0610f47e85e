//go:build linux && cgo

#define _GNU_SOURCE // dladdr

#include "signals.h"
#include "table.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int resolve(halox_nvrtc *n, void *library, char *why, size_t size) {
	int missing = 0;
#define RESOLVE(name, result, params)                                                        \
	*(void **)(&n->name) = dlsym(library, #name);                                        \
	if (!n->name) {                                                                      \
		size_t used = strlen(why);                                                   \
		snprintf(why + used, size - used, "%s" #name, missing++ ? ", " : "it lacks "); \
	}
	HALOX_NVRTC_SYMBOLS(RESOLVE)
#undef RESOLVE
	*(void **)(&n->nvrtcSetFlowCallback) = dlsym(library, "nvrtcSetFlowCallback");
	return missing;
}

halox_nvrtc *halox_nvrtc_open(const char *path, char *why, size_t size) {
	why[0] = 0;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(why, size, "%s", dlerror());
		return NULL;
	}
	halox_nvrtc *n = calloc(1, sizeof *n);
	if (n && !resolve(n, library, why, size)) {
		if (halox_leave_signals((void *)n->nvrtcVersion)) return n;
		snprintf(why, size, "%s", "its calls of signal cannot be kept from it");
	}
	free(n);
	return NULL;
}

void halox_nvrtc_file(const halox_nvrtc *n, char *file, size_t size) {
	Dl_info info;
	file[0] = 0;
	if (dladdr((void *)n->nvrtcVersion, &info)) snprintf(file, size, "%s", info.dli_fname);
}

int halox_nvrtc_load(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL; }

const char *halox_nvrtc_error(const halox_nvrtc *n, int code) { return n->nvrtcGetErrorString(code); }
int halox_nvrtc_version(const halox_nvrtc *n, int *major, int *minor) { return n->nvrtcVersion(major, minor); }
int halox_nvrtc_arch_count(const halox_nvrtc *n, int *count) { return n->nvrtcGetNumSupportedArchs(count); }
int halox_nvrtc_archs(const halox_nvrtc *n, int *archs) { return n->nvrtcGetSupportedArchs(archs); }

int halox_nvrtc_create(const halox_nvrtc *n, halox_program **p, const char *text, const char *name, int headers,
		       char **header_texts, char **header_names) {
	return n->nvrtcCreateProgram(p, text, name, headers, (const char *const *)header_texts,
				     (const char *const *)header_names);
}

void halox_nvrtc_destroy(const halox_nvrtc *n, halox_program *p) { n->nvrtcDestroyProgram(&p); }

// is_cancelled is called by NVRTC from time to time, from any thread.
static int is_cancelled(void *n, void *unused) {
	(void)unused;
	return __atomic_load_n(&((halox_nvrtc *)n)->cancelled, __ATOMIC_RELAXED);
}

void halox_nvrtc_cancel(halox_nvrtc *n) { __atomic_store_n(&n->cancelled, 1, __ATOMIC_RELAXED); }

int halox_nvrtc_compile(halox_nvrtc *n, halox_program *p, int count, char **options) {
	int rc = n->nvrtcSetFlowCallback ? n->nvrtcSetFlowCallback(p, is_cancelled, n) : 0;
	return rc ? rc : n->nvrtcCompileProgram(p, count, (const char *const *)options);
}

int halox_nvrtc_size(const halox_nvrtc *n, halox_program *p, enum halox_output which, size_t *size) {
	switch (which) {
	case HALOX_LOG: return n->nvrtcGetProgramLogSize(p, size);
	case HALOX_CUBIN: return n->nvrtcGetCUBINSize(p, size);
	default: return n->nvrtcGetPTXSize(p, size);
	}
}

int halox_nvrtc_bytes(const halox_nvrtc *n, halox_program *p, enum halox_output which, char *bytes) {
	switch (which) {
	case HALOX_LOG: return n->nvrtcGetProgramLog(p, bytes);
	case HALOX_CUBIN: return n->nvrtcGetCUBIN(p, bytes);
	default: return n->nvrtcGetPTX(p, bytes);
	}
}
