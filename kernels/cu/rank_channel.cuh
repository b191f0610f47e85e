// Channels: streams of small messages from one rank to another, with credit-based flow control.
//
// A message is a packet in a slot of a ring in the receiver's memory. Each 4 bytes are stored with a number composed of
// the position of the message and its length. All words of a slot are written each time, so that old words of longer
// messages are never read as new ones. The receiver reports how many messages it has read in a count in the sender's
// memory, once per half ring. Positions have 64 bits; a word holds the low 21 bits, which far exceeds the slots of a
// ring.
#pragma once

#include "rank_collectives.cuh"

namespace ranks {

class Channels : public Collectives {
  public:
	// send sends a message over a channel that starts at this rank: bytes, a multiple of 4 up to the channel's maximum,
	// from memory aligned to 4 bytes, which may be changed afterwards. It includes the stores of all threads of the
	// group. It may wait once slots / 2 + 1 messages are unread, and returns false if the wait timed out or the run has
	// ended. Only one group at a time may send over a channel.
	template <typename Group = Block> __device__ bool send(Channel c, i64 bytes, const void *from) {
		const int at = goes_on<Group>() ? end_of(c, true) : -1;
		if (at < 0) return false;
		auto &e = state.ends[at];
		if (!check(bytes >= 0 && bytes % 4 == 0 && bytes / 4 <= e.is.words, BAD_MESSAGE, 4 * (i64)e.is.words, bytes,
		           c.number))
			return false;
		const u64 n = e.position;
		bool room = true;
		if (Group::thread() == 0 && n - e.known >= e.is.slots) {
			const u64 *const credit = e.is.credit;
			room = wait_unless_ended(
			    [&] {
				    e.known = e.is.first + load_relaxed_sys(credit);
				    return n - e.known < e.is.slots;
			    },
			    credit);
			if (!room) fail(NO_ROOM, e.is.slots, (u64)e.is.peer, (u64)c.number);
		}
		if (!Group::all(room)) return false;
		const unsigned words = (unsigned)(bytes / 4), *const data = (const unsigned *)from;
		const u64 high = (u64)number_of(n, words) << 32;
		u64 *const slot = slot_of(e.is, n);
		const int served = served_by(e.is.peer);
		for (unsigned i = 2 * (unsigned)Group::thread(); i < e.is.words; i += 2 * (unsigned)Group::threads()) {
			const unsigned low = opaque(i < words ? data[i] : 0),
			               next = opaque(i + 1 < words ? data[i + 1] : 0); // both loads are in flight
			send_words(served, slot + i, high | low, high | next, 1 + (i + 1 < e.is.words));
		}
		Group::sync();
		if (Group::thread() == 0) e.position = n + 1;
		return true;
	}

	// receive waits for the next message of a channel that ends at this rank, copies it to memory aligned to 4 bytes,
	// with space for the longest message of the channel, and returns its bytes, or -1 if the wait timed out or the run
	// has ended. Messages arrive in the order in which they were sent. All threads of the group see the message. Only
	// one group at a time may receive from a channel.
	template <typename Group = Block> __device__ i64 receive(Channel c, void *to) {
		const int at = goes_on<Group>() ? end_of(c, false) : -1;
		if (at < 0) return -1;
		auto &e = state.ends[at];
		const u64 n = e.position, *const slot = slot_of(e.is, n);
		const unsigned number = number_of(n, 0);
		unsigned *const there = (unsigned *)to, words = 0;
		bool came = true;
		for (unsigned i = 2 * (unsigned)Group::thread(); i < e.is.words; i += 2 * (unsigned)Group::threads()) {
			const bool two = i + 1 < e.is.words;
			u64 low = 0, high = 0;
			came = wait_unless_ended([&] {
				if (two) load_relaxed_sys(slot + i, low, high);
				else low = high = load_relaxed_sys(slot + i);
				return same_position((unsigned)(low >> 32), number) && same_position((unsigned)(high >> 32), number);
			});
			if (!came) {
				fail(NO_MESSAGE, n - e.is.first + 1, (u64)e.is.peer, (u64)c.number);
				break;
			}
			words = (unsigned)(low >> 32) % LENGTHS;
			if (i < words) there[i] = (unsigned)low;
			if (i + 1 < words) there[i + 1] = (unsigned)high;
		}
		came = meet_with<Group>(came, words);
		if (came && Group::thread() == 0) {
			e.position = n + 1;
			if (2 * (n + 1 - e.known) >= e.is.slots) give_credit(e.is, n + 1), e.known = n + 1;
		}
		return came ? 4 * (i64)words : -1;
	}

  protected:
	__device__ Channels(const World &w, State &s) : Collectives(w, s) {}

	__device__ void open_ends() {
		for (int i = (int)threadIdx.x; i < MAX_ENDS; i += (int)blockDim.x) {
			state.keys[i] = -1;
			if (!world.ends) continue;
			const ChannelEnd &end = world.ends[MAX_ENDS * blockIdx.x + i];
			state.ends[i] = {end, end.first, end.first};
			state.keys[i] = end.key;
		}
	}

  private:
	enum { LENGTHS = 1 << 11 }; // of messages, in words

	static __device__ unsigned number_of(u64 position, unsigned words) {
		return (unsigned)(position + 1) * LENGTHS | words;
	}
	static __device__ bool same_position(unsigned a, unsigned b) { return a / LENGTHS == b / LENGTHS; }
	static __device__ u64 *slot_of(const ChannelEnd &e, u64 position) {
		return e.ring + (position & e.slots - 1) * ((e.words + 1) / 2 * 2);
	}

	// end_of returns the index of a channel among the ends of this rank, or a negative number.
	__device__ int end_of(Channel c, bool sends) {
		const int key = c.key(sends);
		int found = -1;
#pragma unroll
		for (int i = 0; i < MAX_ENDS; i++)
			if (state.keys[i] == key) found = i;
		if (found < 0 || (unsigned)c.number >> 30) return fail(BAD_CHANNEL, sends, (u64)(i64)c.number, 0), -1;
		return found;
	}

	__device__ void give_credit(const ChannelEnd &e, u64 position) {
		const int served = served_by(e.peer);
		if (served >= 0) post_words(served, e.credit, position - e.first, 0, 1);
		else if (is_near(e.peer)) store_release_gpu(e.credit, position - e.first);
		else store_release_sys(e.credit, position - e.first);
	}

	// meet_with returns whether all threads of a group pass true, and gives all of them the value of the first one.
	template <typename Group> __device__ bool meet_with(bool ok, unsigned &v) {
		if (!Group::WHOLE) {
			if (!same<Group, Thread>::value) v = __shfl_sync(~0u, v, 0);
			return Group::all(ok);
		}
		u64 &shared = state.base[puts++ & 1];
		if (threadIdx.x == 0) shared = v;
		ok = Block::all(ok);
		v = (unsigned)shared;
		return ok;
	}
};

} // namespace ranks
