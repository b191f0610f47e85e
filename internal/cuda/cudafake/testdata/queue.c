// What streams do by themselves, see fake.h.

#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef FAKE_RUNS

enum what { WORK, NODES, RECORD, WAIT };

// mark is how often an event was recorded: by calls, and by streams.
typedef struct mark {
	long asked, done;
	double time;
	int shared; // other processes see it, and count it too
} mark;

#define LOAD(n) __atomic_load_n(&(n), __ATOMIC_ACQUIRE)
#define STORE(n, v) __atomic_store_n(&(n), v, __ATOMIC_RELEASE)

typedef struct task {
	enum what what;
	work work;
	node *nodes;
	size_t count;
	mark *mark;
	long number; // of the record
	struct task *next;
} task;

typedef struct queue {
	int device, busy, ends;
	int abroad; // it waits for another process, which may have ended
	task *first, **last;
	struct queue *next;
} queue;

static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static queue *queues;

static double now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static int *dead(const queue *q) { return &fake_contexts[q->device].dead; }

// await_progress waits for a change of this process, or a moment for one of another.
static void await_progress(const mark *m) {
	if (!m->shared) {
		pthread_cond_wait(&progress, &fake_mutex);
		return;
	}
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 200000;
	if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
	pthread_cond_timedwait(&progress, &fake_mutex, &t);
}

static void perform(queue *q, task *t) {
	int rc = SUCCESS;
	switch (t->what) {
	case WORK: rc = fake_perform(&t->work); break;
	case NODES: rc = fake_run_nodes(t->nodes, t->count); break;
	case RECORD:
		if (t->mark->done < t->number) t->mark->time = now_ms(), STORE(t->mark->done, t->number);
		break;
	case WAIT:
		q->abroad = t->mark->shared;
		while (LOAD(t->mark->done) < t->number && !*dead(q) && !q->ends) await_progress(t->mark);
		q->abroad = 0;
		break;
	}
	if (rc && !*dead(q)) *dead(q) = rc;
}

static void *serve(void *arg) {
	queue *q = arg;
	pthread_mutex_lock(&fake_mutex);
	fake_current = &fake_contexts[q->device];
	for (;;) {
		while (!q->first && !q->ends) pthread_cond_wait(&progress, &fake_mutex);
		task *t = q->first;
		if (!t) break;
		if (!(q->first = t->next)) q->last = &q->first;
		q->busy = 1;
		if (!*dead(q) || t->what == RECORD) perform(q, t);
		q->busy = 0;
		free(t->nodes);
		free(t);
		pthread_cond_broadcast(&progress);
	}
	for (queue **p = &queues; *p; p = &(*p)->next)
		if (*p == q) {
			*p = q->next;
			break;
		}
	free(q);
	pthread_mutex_unlock(&fake_mutex);
	return NULL;
}

static task *enqueue(object *stream, enum what what) {
	if (!stream->queue) {
		queue *q = calloc(1, sizeof *q);
		q->device = stream->device;
		q->last = &q->first;
		q->next = queues;
		stream->queue = queues = q;
		pthread_t thread;
		if (pthread_create(&thread, NULL, serve, q)) abort();
		pthread_detach(thread);
	}
	task *t = calloc(1, sizeof *t);
	t->what = what;
	*stream->queue->last = t;
	stream->queue->last = &t->next;
	pthread_cond_broadcast(&progress);
	return t;
}

int fake_enqueue(object *stream, const work *w) {
	if (!stream) return fake_perform(w);
	enqueue(stream, WORK)->work = *w;
	return SUCCESS;
}

int fake_enqueue_nodes(object *stream, const node *nodes, size_t count) {
	task *t = enqueue(stream, NODES);
	t->nodes = malloc(count * sizeof *nodes + 1);
	if (count) memcpy(t->nodes, nodes, count * sizeof *nodes);
	t->count = count;
	return SUCCESS;
}

// The mark of an event outlives it, since tasks may still need it.
static mark *mark_of(object *event) {
	if (!event->mark) event->mark = calloc(1, sizeof(mark));
	return event->mark;
}

void fake_share_mark(object *event, void *shared) {
	event->mark = shared;
	event->mark->shared = 1;
}

int fake_enqueue_record(object *stream, object *event) {
	task *t = enqueue(stream, RECORD);
	t->mark = mark_of(event);
	t->number = t->mark->asked + 1;
	STORE(t->mark->asked, t->number);
	return SUCCESS;
}

int fake_enqueue_wait(object *stream, object *event) {
	mark *m = mark_of(event);
	const long asked = LOAD(m->asked);
	if (LOAD(m->done) >= asked) return SUCCESS;
	task *t = enqueue(stream, WAIT);
	t->mark = m;
	t->number = asked;
	return SUCCESS;
}

static int idle(const queue *q) { return !q || (!q->first && !q->busy); }

int fake_idle(const object *stream) { return idle(stream->queue) ? SUCCESS : NOT_READY; }

int fake_recorded(const object *event) {
	return !event->mark || LOAD(event->mark->done) >= LOAD(event->mark->asked) ? SUCCESS : NOT_READY;
}

void fake_drain(object *stream) {
	while (!idle(stream->queue)) pthread_cond_wait(&progress, &fake_mutex);
}

void fake_drain_to_end(object *stream) {
	while (!idle(stream->queue) && !stream->queue->abroad) await_progress(&(mark){.shared = 1});
}

void fake_drain_device(int device) {
	for (queue *q = queues; q;) {
		if (q->device == device && !idle(q)) {
			pthread_cond_wait(&progress, &fake_mutex);
			q = queues; // which may have changed
		} else {
			q = q->next;
		}
	}
}

void fake_await(object *event) {
	mark *m = mark_of(event);
	const long number = m->asked;
	while (LOAD(m->done) < number) await_progress(m);
}

double fake_time(const object *event) { return event->mark ? event->mark->time : 0; }

void fake_end_queue(object *stream) {
	if (!stream->queue) return;
	stream->queue->ends = 1;
	stream->queue = NULL;
	pthread_cond_broadcast(&progress);
}

#else

int fake_enqueue(object *stream, const work *w) { return (void)stream, fake_perform(w); }
int fake_enqueue_nodes(object *stream, const node *nodes, size_t count) { return (void)stream, fake_run_nodes(nodes, count); }
int fake_enqueue_record(object *stream, object *event) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	event->recorded = t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
	return (void)stream, SUCCESS;
}
void fake_share_mark(object *event, void *shared) { (void)event, (void)shared; }
int fake_enqueue_wait(object *stream, object *event) { return (void)stream, (void)event, SUCCESS; }
int fake_idle(const object *stream) { return (void)stream, SUCCESS; }
int fake_recorded(const object *event) { return (void)event, SUCCESS; }
void fake_drain(object *stream) { (void)stream; }
void fake_drain_to_end(object *stream) { (void)stream; }
void fake_drain_device(int device) { (void)device; }
void fake_await(object *event) { (void)event; }
double fake_time(const object *event) { return event->recorded; }
void fake_end_queue(object *stream) { (void)stream; }

#endif
