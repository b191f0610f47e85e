// What the fake driver remembers, and the knobs by which a test steers it.

#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KNOB __attribute__((visibility("default")))

enum { MAX_CALLS = 128, MAX_LAUNCHES = 1024 };

pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER;
int fake_count = FAKE_DEVICES;
int fake_initialised;
context fake_contexts[MAX_DEVICES];
enum link fake_links[MAX_DEVICES][MAX_DEVICES];
_Thread_local context *fake_current;

static object *objects;

static struct call {
	char name[64];
	long count; // calls so far
	int code;   // ordered, or 0
	long skip;  // calls to let pass before the order holds
	long times; // calls that it holds for, negative for ever
} calls[MAX_CALLS];

typedef struct {
	char name[64];
	int device;
	unsigned grid[3], block[3], shared;
	int early, cooperative;
	unsigned arg_size;
	unsigned char arg[MAX_ARG];
} launch;

static launch launches[MAX_LAUNCHES]; // a ring
static long launch_count;

static struct call *call_named(const char *name) {
	for (int i = 0; i < MAX_CALLS; i++) {
		if (!calls[i].name[0]) strncpy(calls[i].name, name, sizeof calls[i].name - 1);
		if (!strcmp(calls[i].name, name)) return &calls[i];
	}
	abort();
}

int fake_enter(const char *name) {
	struct call *c = call_named(name);
	c->count++;
	if (!c->code || c->times == 0) return SUCCESS;
	if (c->skip > 0) {
		c->skip--;
		return SUCCESS;
	}
	if (c->times > 0) c->times--;
	return c->code;
}

int fake_alive(void) {
	if (!fake_initialised) return NOT_INITIALIZED;
	if (!fake_current || !fake_current->shares) return INVALID_CONTEXT;
	return fake_current->dead;
}

object *fake_new(enum kind kind, size_t size) {
	object *o = calloc(1, sizeof *o);
	o->kind = kind;
	o->device = fake_current->device;
	o->size = size;
	o->next = objects;
	objects = o;
	return o;
}

void fake_drop(object *o) {
	for (object **p = &objects; *p; p = &(*p)->next) {
		if (*p != o) continue;
		*p = o->next;
		fake_end_queue(o);
		if (!o->map) free(o->bytes);
		else if (o->kind != EVENT) munmap(o->map, o->mapped); // streams may still need the mark of an event
		if (o->file) close(o->file);
		free(o);
		return;
	}
}

void fake_drop_all(int device) {
	for (object *o = objects, *next; o; o = next) {
		next = o->next;
		if (o->device == device) fake_drop(o);
	}
}

object *fake_known(enum kind kind, void *handle) {
	for (object *o = objects; o; o = o->next)
		if ((void *)o == handle && o->kind == kind) return o;
	return NULL;
}

object *fake_get(enum kind kind, void *handle) {
	object *o = fake_known(kind, handle);
	return o && fake_current && o->device == fake_current->device ? o : NULL;
}

object *fake_find(enum kind kind, const void *p, size_t n) {
	const char *from = p;
	for (object *o = objects; o; o = o->next)
		if (o->kind == kind && from >= o->bytes && from + n <= o->bytes + o->size) return o;
	return NULL;
}

// The names of the kernels that ran, each once.
enum { MAX_RAN = 256 };
static char ran[MAX_RAN][64];
static long ran_count;

void fake_log_run(const char *kernel) {
	for (long i = 0; i < ran_count; i++)
		if (!strcmp(ran[i], kernel)) return;
	if (ran_count < MAX_RAN) strcpy(ran[ran_count++], kernel);
}

void fake_log_launch(const work *w) {
	launch *l = &launches[launch_count++ % MAX_LAUNCHES];
	memset(l, 0, sizeof *l);
	strcpy(l->name, w->function->name);
	l->device = w->function->device;
	memcpy(l->grid, w->grid, sizeof l->grid);
	memcpy(l->block, w->block, sizeof l->block);
	l->shared = w->shared;
	l->early = w->early;
	l->cooperative = w->cooperative;
	l->arg_size = w->function->size;
	memcpy(l->arg, w->arg, l->arg_size);
}

// fake_fail orders a code for calls of a function, after letting skip pass.
KNOB void fake_fail(const char *call, int code, long skip, long times) {
	pthread_mutex_lock(&fake_mutex);
	struct call *c = call_named(call);
	c->code = code;
	c->skip = skip;
	c->times = times;
	pthread_mutex_unlock(&fake_mutex);
}

// fake_kill makes each further call in the device's context fail with the code.
KNOB void fake_kill(int device, int code) {
	pthread_mutex_lock(&fake_mutex);
	fake_contexts[device].dead = code;
	pthread_mutex_unlock(&fake_mutex);
}

KNOB void fake_set_link(int from, int to, int link) {
	pthread_mutex_lock(&fake_mutex);
	fake_links[from][to] = link;
	pthread_mutex_unlock(&fake_mutex);
}

// fake_streams counts the streams of a priority.
KNOB long fake_streams(int priority) {
	long n = 0;
	pthread_mutex_lock(&fake_mutex);
	for (object *o = objects; o; o = o->next) n += o->kind == STREAM && o->priority == priority;
	pthread_mutex_unlock(&fake_mutex);
	return n;
}

KNOB long fake_calls(const char *call) {
	pthread_mutex_lock(&fake_mutex);
	long n = call_named(call)->count;
	pthread_mutex_unlock(&fake_mutex);
	return n;
}

size_t fake_used(int device) {
	size_t n = 0;
	for (object *o = objects; o; o = o->next) n += o->kind == MEMORY && o->device == device && !o->opened ? o->size : 0;
	return n;
}

// fake_live counts the objects of a kind, or the shares in contexts.
KNOB long fake_live(int kind) {
	long n = 0;
	pthread_mutex_lock(&fake_mutex);
	for (object *o = objects; o; o = o->next) n += (int)o->kind == kind;
	if (kind == KINDS)
		for (int i = 0; i < MAX_DEVICES; i++) n += fake_contexts[i].shares;
	pthread_mutex_unlock(&fake_mutex);
	return n;
}

// fake_ran gives the i-th kernel that ran, NULL after the last one.
KNOB const char *fake_ran(long i) { return i < ran_count ? ran[i] : NULL; }

KNOB unsigned fake_primary_flags(int device) { return fake_contexts[device].flags; }
KNOB long fake_launches(void) { return launch_count; }
KNOB const void *fake_launch(long i) { return &launches[i % MAX_LAUNCHES]; }
