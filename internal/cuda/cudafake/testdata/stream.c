// Streams and events. All work is done when it is asked for, so that a stream
// is always empty and an event is done once it is recorded. Nothing may be asked of
// those that are in a capture.

#include "fake.h"

#include <time.h>

enum { NON_BLOCKING = 1, NO_TIMING = 2 };

static double now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

API cuStreamCreateWithPriority(object **s, unsigned flags, int priority) {
	LIVE("cuStreamCreateWithPriority");
	if (flags != NON_BLOCKING) return INVALID_VALUE;
	*s = fake_new(STREAM, 0);
	(*s)->priority = priority;
	return SUCCESS;
}

API cuStreamDestroy_v2(void *s) {
	LIVE("cuStreamDestroy");
	object *o = fake_get(STREAM, s);
	int rc = fake_untouched(o);
	if (!rc) fake_drop(o);
	return rc;
}

API cuStreamSynchronize(void *s) {
	LIVE("cuStreamSynchronize");
	return fake_untouched(fake_get(STREAM, s));
}

API cuStreamQuery(void *s) {
	LIVE("cuStreamQuery");
	return fake_untouched(fake_get(STREAM, s));
}

// A stream may wait for another device's event.
API cuStreamWaitEvent(void *s, void *e, unsigned flags) {
	LIVE("cuStreamWaitEvent");
	if (flags) return INVALID_VALUE;
	object *stream = fake_get(STREAM, s), *event = fake_known(EVENT, e);
	return stream && event ? fake_wait(stream, event) : INVALID_HANDLE;
}

API cuEventCreate(object **e, unsigned flags) {
	LIVE("cuEventCreate");
	if (flags > 3) return INVALID_VALUE;
	*e = fake_new(EVENT, 0);
	(*e)->flags = flags;
	return SUCCESS;
}

API cuEventDestroy_v2(void *e) {
	LIVE("cuEventDestroy");
	object *o = fake_get(EVENT, e);
	if (!o) return INVALID_HANDLE;
	fake_drop(o);
	return SUCCESS;
}

API cuEventRecord(void *e, void *s) {
	LIVE("cuEventRecord");
	object *o = fake_get(EVENT, e), *stream = fake_get(STREAM, s);
	if (!o || !stream) return INVALID_HANDLE;
	o->recorded = now_ms();
	return fake_record(o, stream);
}

API cuEventQuery(void *e) {
	LIVE("cuEventQuery");
	return fake_untouched(fake_get(EVENT, e));
}

API cuEventSynchronize(void *e) {
	LIVE("cuEventSynchronize");
	return fake_untouched(fake_get(EVENT, e));
}

API cuEventElapsedTime(float *ms, void *start, void *end) {
	LIVE("cuEventElapsedTime");
	object *a = fake_get(EVENT, start), *b = fake_get(EVENT, end);
	int rc = fake_untouched(a) ?: fake_untouched(b);
	if (rc) return rc;
	if ((a->flags | b->flags) & NO_TIMING || !a->recorded || !b->recorded) return INVALID_HANDLE;
	*ms = b->recorded - a->recorded;
	return SUCCESS;
}
