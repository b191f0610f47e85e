// What streams do.

#include "fake.h"

#include <string.h>

// held says whether the n bytes from p are memory that was not freed.
static int held(const void *p, size_t n) { return fake_find(MEMORY, p, n) || fake_find(HOST, p, n); }

static size_t spans(const work *w, size_t pitch, size_t rows) {
	return ((w->depth - 1) * rows + w->height - 1) * pitch + w->width;
}

// A kernel runs without the lock: others may have to do something before it ends.
static int perform_kernel(const work *w) {
	if (!fake_known(FUNCTION, w->function) || !fake_known(MODULE, w->function->module)) return INVALID_HANDLE;
	fake_log_launch(w);
	if (!w->function->run) return SUCCESS;
	int (*run)(const unsigned *, const unsigned *, unsigned, const void *) = w->function->run;
	pthread_mutex_unlock(&fake_mutex);
	int trapped = run(w->grid, w->block, w->shared, w->arg);
	pthread_mutex_lock(&fake_mutex);
	if (!trapped) fake_log_run(w->function->name);
	return trapped ? LAUNCH_FAILED : SUCCESS;
}

static void perform_row(const work *w, size_t y, size_t z) {
	char *to = w->dst + (z * w->dst_rows + y) * w->dst_pitch;
	if (w->src)
		memmove(to, w->src + (z * w->src_rows + y) * w->src_pitch, w->width);
	else
		memset(to, w->value, w->width);
}

int fake_perform(const work *w) {
	if (w->function) return perform_kernel(w);
	if (!w->width) return SUCCESS;
	if (!held(w->dst, spans(w, w->dst_pitch, w->dst_rows))) return ILLEGAL_ADDRESS;
	if (w->src && !held(w->src, spans(w, w->src_pitch, w->src_rows))) return ILLEGAL_ADDRESS;
	for (size_t z = 0; z < w->depth; z++)
		for (size_t y = 0; y < w->height; y++) perform_row(w, y, z);
	if (w->from != w->to && fake_links[w->from][w->to] == LYING)
		w->dst[(w->depth / 2 * w->dst_rows + w->height / 2) * w->dst_pitch + w->width / 2] ^= 1;
	return SUCCESS;
}

int fake_do(object *stream, const work *w) {
	return stream && stream->capture ? fake_remember(stream, w) : fake_enqueue(stream, w);
}
