// Captures: what streams are to do becomes the nodes of a graph. Waiting for an event
// of a capture makes a stream part of it.

#include "fake.h"

#include <stdlib.h>
#include <string.h>

enum { RELAXED = 2 };

typedef struct capture {
	long id;
	object *streams[MAX_STREAMS]; // the origin first
	int joined;
	int invalid;
	node *nodes;
	size_t count, room;
	struct capture *next;
} capture;

static capture *captures; // that have not ended
static long last_id;

static capture *capture_of(const object *o) {
	for (capture *c = captures; c; c = c->next)
		if (o->capture && c->id == o->capture) return c;
	return NULL;
}

static int invalidate(capture *c, int code) {
	if (c) c->invalid = 1;
	return code;
}

static int join(capture *c, object *stream) {
	if (c->joined == MAX_STREAMS) return OUT_OF_MEMORY;
	stream->capture = c->id;
	stream->place = c->joined;
	memset(&stream->before, 0, sizeof stream->before);
	c->streams[c->joined++] = stream;
	return SUCCESS;
}

API cuStreamBeginCapture_v2(void *s, int mode) {
	LIVE("cuStreamBeginCapture");
	object *stream = fake_get(STREAM, s);
	if (!stream) return INVALID_HANDLE;
	if (mode != RELAXED) return INVALID_VALUE; // others do not go with goroutines
	if (stream->capture) return ILLEGAL_STATE;
	capture *c = calloc(1, sizeof *c);
	c->id = ++last_id;
	c->next = captures;
	captures = c;
	return join(c, stream);
}

int fake_remember(object *stream, const work *w) {
	capture *c = capture_of(stream);
	if (c->invalid) return CAPTURE_INVALIDATED;
	if (c->count == c->room) {
		c->room = 2 * c->room + 16;
		c->nodes = realloc(c->nodes, c->room * sizeof *c->nodes);
	}
	c->nodes[c->count++] = (node){stream->device, stream->place, stream->before, *w};
	stream->before.of[stream->place]++;
	return SUCCESS;
}

int fake_untouched(const object *o) {
	if (!o) return INVALID_HANDLE;
	if (!o->capture) return SUCCESS;
	return invalidate(capture_of(o), o->kind == EVENT ? CAPTURED_EVENT : CAPTURE_UNSUPPORTED);
}

int fake_record(object *event, object *stream) {
	capture *c = capture_of(stream);
	if (c && c->invalid) return CAPTURE_INVALIDATED;
	event->capture = stream->capture;
	event->before = stream->before;
	return SUCCESS;
}

int fake_wait(object *stream, object *event) {
	capture *of = capture_of(event), *in = capture_of(stream);
	if (in && in->invalid) return CAPTURE_INVALIDATED;
	if (!of) {
		if (in) return invalidate(in, CAPTURE_ISOLATION);
		return event->capture ? CAPTURED_EVENT : SUCCESS; // of a capture that has ended
	}
	if (of->invalid) return INVALID_VALUE;
	if (in && in != of) {
		invalidate(of, 0);
		return invalidate(in, CAPTURE_MERGE);
	}
	int rc = in ? SUCCESS : join(of, stream);
	for (int i = 0; !rc && i < MAX_STREAMS; i++)
		if (stream->before.of[i] < event->before.of[i]) stream->before.of[i] = event->before.of[i];
	return rc;
}

// unjoined says whether a stream did work that the origin did not wait for.
static int unjoined(const capture *c) {
	for (int i = 1; i < c->joined; i++)
		if (c->streams[0]->before.of[i] < c->streams[i]->before.of[i]) return 1;
	return 0;
}

static void end(capture *c) {
	capture **p = &captures;
	while (*p != c) p = &(*p)->next;
	*p = c->next;
	for (int i = 0; i < c->joined; i++) c->streams[i]->capture = 0;
	free(c->nodes);
	free(c);
}

API cuStreamEndCapture(void *s, object **graph) {
	LIVE("cuStreamEndCapture");
	*graph = NULL;
	object *stream = fake_get(STREAM, s);
	if (!stream) return INVALID_HANDLE;
	capture *c = capture_of(stream);
	if (!c) return ILLEGAL_STATE;
	if (c->streams[0] != stream) return invalidate(c, CAPTURE_UNMATCHED);
	int rc = c->invalid ? CAPTURE_INVALIDATED : unjoined(c) ? CAPTURE_UNJOINED : SUCCESS;
	if (!rc) {
		*graph = fake_new(GRAPH, c->count * sizeof *c->nodes);
		(*graph)->bytes = (char *)c->nodes;
		c->nodes = NULL;
	}
	end(c);
	return rc;
}
