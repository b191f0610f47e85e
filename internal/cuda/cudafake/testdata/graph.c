// Graphs. A launch does all their work before it returns, in an order that the
// captured order allows and that is as unlike the order of the calls as it can be:
// what lacks a dependency comes out wrong.

#include "fake.h"

#include <stdlib.h>
#include <string.h>

API cuGraphInstantiateWithFlags(object **exec, void *graph, unsigned long long flags) {
	LIVE("cuGraphInstantiateWithFlags");
	object *g = fake_known(GRAPH, graph);
	if (!g || flags) return INVALID_VALUE;
	object *x = fake_new(EXEC, g->size);
	x->bytes = malloc(g->size + 1);
	if (g->size) memcpy(x->bytes, g->bytes, g->size);
	*exec = x;
	return SUCCESS;
}

static int drop(enum kind kind, void *handle) {
	object *o = fake_known(kind, handle);
	if (!o) return INVALID_VALUE;
	fake_drop(o);
	return SUCCESS;
}

API cuGraphDestroy(void *graph) {
	LIVE("cuGraphDestroy");
	return drop(GRAPH, graph);
}

API cuGraphExecDestroy(void *exec) {
	LIVE("cuGraphExecDestroy");
	return drop(EXEC, exec);
}

API cuGraphUpload(void *exec, void *s) {
	LIVE("cuGraphUpload");
	return fake_known(EXEC, exec) ? fake_untouched(fake_get(STREAM, s)) : INVALID_VALUE;
}

static int comes_after(const past *done, const past *before) {
	for (int i = 0; i < MAX_STREAMS; i++)
		if (done->of[i] < before->of[i]) return 0;
	return 1;
}

// next is the first node of the stream from a place on, or the count of all.
static size_t next(const node *nodes, size_t count, int stream, size_t from) {
	while (from < count && nodes[from].stream != stream) from++;
	return from;
}

// run always takes the work of the stream that joined last, of those that have some
// which nothing is still to come before.
int fake_run_nodes(const node *nodes, size_t count) {
	past done = {0};
	size_t head[MAX_STREAMS];
	for (int i = 0; i < MAX_STREAMS; i++) head[i] = next(nodes, count, i, 0);
	for (size_t left = count; left; left--) {
		int i = MAX_STREAMS - 1;
		while (head[i] == count || !comes_after(&done, &nodes[head[i]].before)) i--;
		const node *n = &nodes[head[i]];
		int rc = fake_contexts[n->device].dead ?: fake_perform(&n->work);
		if (rc) return rc;
		done.of[i]++;
		head[i] = next(nodes, count, i, head[i] + 1);
	}
	return SUCCESS;
}

// A real driver makes a launch on a stream that is being captured a part of the
// capture; nobody here needs that.
API cuGraphLaunch(void *exec, void *s) {
	LIVE("cuGraphLaunch");
	object *x = fake_known(EXEC, exec);
	if (!x) return INVALID_VALUE;
	object *stream = fake_get(STREAM, s);
	return fake_untouched(stream) ?: fake_enqueue_nodes(stream, (node *)x->bytes, x->size / sizeof(node));
}
