// NVRTC's functions that halox uses, and the table that holds them.

#ifndef HALOX_NVRTC_TABLE_H
#define HALOX_NVRTC_TABLE_H

#include <stddef.h>

typedef struct halox_program halox_program; // NVRTC's opaque program

#define HALOX_NVRTC_SYMBOLS(X)                                                                       \
	X(nvrtcGetErrorString, const char *, (int))                                                  \
	X(nvrtcVersion, int, (int *, int *))                                                         \
	X(nvrtcGetNumSupportedArchs, int, (int *))                                                   \
	X(nvrtcGetSupportedArchs, int, (int *))                                                      \
	X(nvrtcCreateProgram, int,                                                                   \
	  (halox_program **, const char *, const char *, int, const char *const *, const char *const *)) \
	X(nvrtcDestroyProgram, int, (halox_program **))                                              \
	X(nvrtcCompileProgram, int, (halox_program *, int, const char *const *))                     \
	X(nvrtcGetProgramLogSize, int, (halox_program *, size_t *))                                  \
	X(nvrtcGetProgramLog, int, (halox_program *, char *))                                        \
	X(nvrtcGetCUBINSize, int, (halox_program *, size_t *))                                       \
	X(nvrtcGetCUBIN, int, (halox_program *, char *))                                             \
	X(nvrtcGetPTXSize, int, (halox_program *, size_t *))                                         \
	X(nvrtcGetPTX, int, (halox_program *, char *))

#define HALOX_NVRTC_FIELD(name, result, params) result(*name) params;
typedef struct {
	HALOX_NVRTC_SYMBOLS(HALOX_NVRTC_FIELD)
	int (*nvrtcSetFlowCallback)(halox_program *, int (*)(void *, void *), void *); // NULL before 12.8
	int cancelled;
} halox_nvrtc;
#undef HALOX_NVRTC_FIELD

// halox_nvrtc_open loads the library and fills a table that the caller frees.
// When it cannot it returns NULL and writes into why, which has room for size
// bytes, the loader's words or the names of the missing symbols.
halox_nvrtc *halox_nvrtc_open(const char *path, char *why, size_t size);

// halox_nvrtc_file writes the file that the library was loaded from.
void halox_nvrtc_file(const halox_nvrtc *n, char *file, size_t size);

// halox_nvrtc_load loads any library and reports whether that worked.
int halox_nvrtc_load(const char *path);

const char *halox_nvrtc_error(const halox_nvrtc *n, int code);
int halox_nvrtc_version(const halox_nvrtc *n, int *major, int *minor);
int halox_nvrtc_arch_count(const halox_nvrtc *n, int *count);
int halox_nvrtc_archs(const halox_nvrtc *n, int *archs);

// halox_nvrtc_create makes a program of a text, and of headers that it may include by their names.
int halox_nvrtc_create(const halox_nvrtc *n, halox_program **p, const char *text, const char *name, int headers,
		       char **header_texts, char **header_names);
void halox_nvrtc_destroy(const halox_nvrtc *n, halox_program *p);
int halox_nvrtc_compile(halox_nvrtc *n, halox_program *p, int count, char **options);

// halox_nvrtc_cancel has compilations fail that are in progress, and all later ones.
void halox_nvrtc_cancel(halox_nvrtc *n);

// An output of a program: its size in bytes and its bytes.
enum halox_output { HALOX_LOG, HALOX_CUBIN, HALOX_PTX };
int halox_nvrtc_size(const halox_nvrtc *n, halox_program *p, enum halox_output which, size_t *size);
int halox_nvrtc_bytes(const halox_nvrtc *n, halox_program *p, enum halox_output which, char *bytes);

#endif
