// Notifications that keep where they come from, in queues: for waits for those of a window, a source and a tag.
//
// A rank has a queue for each device of the world, in its own device's memory. The ranks of that device claim
// places in it by a count in their own memory, and so keep their order; the rank says there how many it has read. A
// sender whose queue is full waits. What a rank has read and does not want yet it keeps, in the order of arrival.
#pragma once

#include "rank_world.cuh"

namespace ranks {

// Which notifications to wait for. ANY matches every source or tag. A Match without a window matches notifications of
// every window, and those without one.
enum { ANY = -1, ANY_WINDOW = -2, NO_WINDOW = -1 };
struct Match {
	Window window;
	int source, tag; // source is an index of the world

	__device__ Match(Window w, int source, int tag) : window(w), source(source), tag(tag) {}
	__device__ Match(int source, int tag) : window{ANY_WINDOW, WORLD}, source(source), tag(tag) {}
};

// Where a notification comes from: source is an index of the world, and a window that does not exist is none.
struct Notification {
	Window window;
	int source, tag;
};

// A notification in 8 bytes: 28 bits say how often its place was used, so that its reader knows it as new.
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
