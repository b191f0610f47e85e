// Streams and events. Unless streams work by themselves, all work is done when it is
// asked for: a stream is always empty and an event is done once it is recorded. Nothing
// may be asked of those that are in a capture.

#include "fake.h"

enum { NON_BLOCKING = 1, NO_TIMING = 2, INTERPROCESS = 4 };

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
	if (!rc) fake_drain_to_end(o), fake_drop(o);
	return rc;
}

API cuStreamSynchronize(void *s) {
	LIVE("cuStreamSynchronize");
	object *stream = fake_get(STREAM, s);
	int rc = fake_untouched(stream);
	if (!rc) fake_drain(stream);
	return rc ?: fake_current->dead;
}

API cuStreamQuery(void *s) {
	LIVE("cuStreamQuery");
	object *stream = fake_get(STREAM, s);
	return fake_untouched(stream) ?: fake_idle(stream) ?: fake_current->dead;
}

// A stream may wait for another device's event.
API cuStreamWaitEvent(void *s, void *e, unsigned flags) {
	LIVE("cuStreamWaitEvent");
	if (flags) return INVALID_VALUE;
	object *stream = fake_get(STREAM, s), *event = fake_known(EVENT, e);
	if (!stream || !event) return INVALID_HANDLE;
	int rc = fake_wait(stream, event);
	return rc || stream->capture ? rc : fake_enqueue_wait(stream, event);
}

API cuEventCreate(object **e, unsigned flags) {
	LIVE("cuEventCreate");
	if (flags > 3 && flags != (NO_TIMING | INTERPROCESS)) return INVALID_VALUE;
	*e = fake_new(EVENT, 0);
	(*e)->flags = flags;
	return flags & INTERPROCESS ? fake_share_event(*e) : SUCCESS;
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
	int rc = fake_record(o, stream);
	return rc || stream->capture ? rc : fake_enqueue_record(stream, o);
}

API cuEventQuery(void *e) {
	LIVE("cuEventQuery");
	object *event = fake_get(EVENT, e);
	return fake_untouched(event) ?: fake_recorded(event) ?: fake_current->dead;
}

API cuEventSynchronize(void *e) {
	LIVE("cuEventSynchronize");
	object *event = fake_get(EVENT, e);
	int rc = fake_untouched(event);
	if (!rc) fake_await(event);
	return rc ?: fake_current->dead;
}

API cuEventElapsedTime(float *ms, void *start, void *end) {
	LIVE("cuEventElapsedTime");
	object *a = fake_get(EVENT, start), *b = fake_get(EVENT, end);
	int rc = fake_untouched(a) ?: fake_untouched(b);
	if (rc) return rc;
	if ((a->flags | b->flags) & NO_TIMING || !fake_time(a) || !fake_time(b)) return INVALID_HANDLE;
	if (fake_recorded(a) || fake_recorded(b)) return NOT_READY;
	*ms = fake_time(b) - fake_time(a);
	return SUCCESS;
}
