// An NVRTC whose compilations take SLOW milliseconds each, but refuse the program that REFUSES names. It notes the
// names of programs in the file LOG, after + where one begins and after - where it ends. A driver of package cudafake
// loads what it returns, and runs none of it.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, COMPILATION = 6, CANCELLED = 16 };

struct program {
	char name[256];
	int (*stop)(void *, void *);
	void *of;
};

// note adds a line to LOG, whole also where several threads do.
static void note(char mark, const char *name) {
	char line[300];
	int n = snprintf(line, sizeof line, "%c%s\n", mark, name);
	int file = open(LOG, O_WRONLY | O_APPEND | O_CREAT, 0644);
	if (file < 0 || write(file, line, n) != n) abort();
	close(file);
}

const char *nvrtcGetErrorString(int code) { return code == SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION"; }

int nvrtcVersion(int *major, int *minor) { return *major = 98, *minor = 0, SUCCESS; } // no real one

int nvrtcGetNumSupportedArchs(int *count) { return *count = 1, SUCCESS; }

int nvrtcGetSupportedArchs(int *archs) { return *archs = 90, SUCCESS; }

int nvrtcCreateProgram(struct program **p, const char *text, const char *name, int count, const char *const *texts,
                       const char *const *names) {
	(void)text, (void)count, (void)texts, (void)names;
	*p = calloc(1, sizeof **p);
	snprintf((*p)->name, sizeof (*p)->name, "%s", name);
	return SUCCESS;
}

int nvrtcDestroyProgram(struct program **p) { return free(*p), SUCCESS; }

int nvrtcCompileProgram(struct program *p, int count, const char *const *options) {
	(void)count, (void)options;
	note('+', p->name);
	struct timespec time = {0, 1000000};
	int cancelled = 0;
	for (long i = 0; i < SLOW && !cancelled; i++) {
		nanosleep(&time, NULL);
		cancelled = p->stop && p->stop(p->of, NULL);
	}
	note('-', p->name);
	return cancelled ? CANCELLED : strcmp(p->name, REFUSES) ? SUCCESS : COMPILATION;
}

int nvrtcSetFlowCallback(struct program *p, int (*stop)(void *, void *), void *of) {
	return p->stop = stop, p->of = of, SUCCESS;
}

int nvrtcGetProgramLogSize(struct program *p, size_t *size) { return (void)p, *size = 1, SUCCESS; }
int nvrtcGetProgramLog(struct program *p, char *log) { return (void)p, *log = 0, SUCCESS; }
int nvrtcGetCUBINSize(struct program *p, size_t *size) { return (void)p, *size = sizeof(Elf64_Ehdr), SUCCESS; }

int nvrtcGetCUBIN(struct program *p, char *image) {
	(void)p;
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F'}, .e_machine = 190}; // CUDA's
	return memcpy(image, &header, sizeof header), SUCCESS;
}

int nvrtcGetPTXSize(struct program *p, size_t *size) { return (void)p, *size = 0, SUCCESS; }
int nvrtcGetPTX(struct program *p, char *image) { return (void)p, (void)image, SUCCESS; }
