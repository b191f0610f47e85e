// Notifications with their source, in queues, so that waits can select a window, a source and a tag.
//
// A rank has a queue for each device of the world, in its own device's memory. The ranks of the sending device claim
// queue slots by a count in their own memory, which keeps their order; the receiver stores there how many it has read.
// A sender waits while the queue is full. A rank keeps unmatched notifications in order of arrival.
#pragma once

#include "rank_world.cuh"

namespace ranks {

// The notifications to wait for. ANY matches every source or tag. A Match without a window matches all notifications,
// with a window or without.
enum { ANY = -1, ANY_WINDOW = -2, NO_WINDOW = -1 };
struct Match {
	Window window;
	int source, tag; // source is an index of the world

	__device__ Match(Window w, int source, int tag) : window(w), source(source), tag(tag) {}
	__device__ Match(int source, int tag) : window{ANY_WINDOW, WORLD}, source(source), tag(tag) {}
};

// The origin of a notification: source is an index of the world; the window is invalid if there is none.
struct Notification {
	Window window;
	int source, tag;
};

// A notification in 8 bytes: 28 bits count the uses of its slot, so that the reader recognizes it as new.
struct Envelope {
	u64 word;

	static __device__ Envelope of(u64 lap, int slot, int source, int tag) {
		return {lap << 36 | (u64)(unsigned)(slot + 1) << 28 | (u64)(unsigned)source << 8 | (u64)(unsigned)tag};
	}
	__device__ bool is_of(u64 lap) const { return word >> 36 == (lap & 0xfffffff); }
	__device__ int tag() const { return (int)(word & 0xff); }
	__device__ int source() const { return (int)(word >> 8 & 0xfffff); }
	__device__ int slot() const { return (int)(word >> 28 & 0xff) - 1; }
	__device__ bool matches(const Match &m) const {
		return (m.window.slot == ANY_WINDOW || m.window.slot == slot()) && (m.source == ANY || m.source == source()) &&
		       (m.tag == ANY || m.tag == tag());
	}
};

} // namespace ranks
