// Packets: small messages in which each 4 bytes are stored with a number that shows their arrival.
#pragma once

#include "rank_core.cuh"

namespace ranks {

// store_value stores a value of 4 or 8 bytes as one or two words, each with 4 bytes and a number, by store(words, low,
// high).
template <typename T, typename Store>
__device__ __forceinline__ void store_value(T value, unsigned number, Store store) {
	static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a value of 4 or 8 bytes");
	const u64 high = (u64)number << 32;
	u64 bits = 0;
	memcpy(&bits, &value, sizeof value);
	store(1 + (sizeof value == 8), high | (unsigned)bits, high | bits >> 32);
}

// load_value loads such a value, and returns whether all of its words have the number. Otherwise, it returns the number
// of a word that does not match.
template <typename T>
__device__ __forceinline__ bool load_value(const u64 *from, T &value, unsigned number, unsigned &instead) {
	u64 low = 0, high = 0;
	if (sizeof value == 4) low = high = load_relaxed_sys(from);
	else load_relaxed_sys(from, low, high);
	instead = (unsigned)((unsigned)(low >> 32) == number ? high >> 32 : low >> 32);
	const u64 bits = (unsigned)low | high << 32;
	memcpy(&value, &bits, sizeof value);
	return instead == number;
}

class Packets : public Core {
  public:
	// put_packet puts bytes such that each 4 bytes arrive together with a number that signals their arrival: small
	// messages take less time than with put_notify. They take twice as many bytes at the target, at an offset that is a
	// multiple of 16; bytes and the source address are multiples of 4. The number must differ from all numbers put
	// there before, including earlier runs.
	template <typename Group = Block>
	__device__ void put_packet(Window w, int to, i64 offset, i64 bytes, const void *from, unsigned number) {
		if (Group::WHOLE && bytes > PACKET_OF_A_WARP) {
			u64 &base = state.base[puts++ & 1];
			if (threadIdx.x < 32) {
				const u64 there = goes_on<Warp>() && valid_packet(w, to, offset, bytes) ? recent(w, to).base : 0;
				if (threadIdx.x == 0) base = there;
			}
			Group::sync();
			if (base != 0)
				store_packet<Group>(served_by(in_world(w.comm, to)), (u64 *)((char *)base + offset), bytes / 4,
				                    (const unsigned *)from, number);
			return;
		}
		if (!goes_on<Group>() || !Group::in_first_warp() || !valid_packet(w, to, offset, bytes)) return;
		u64 *const there = (u64 *)((char *)(Group::WHOLE ? recent(w, to).base : entry(w, to).base) + offset);
		store_packet<typename lanes_of<Group>::type>(served_by(in_world(w.comm, to)), there, bytes / 4,
		                                             (const unsigned *)from, number);
	}

	// wait_packet waits for bytes that were put as a packet with a number, at an address of this rank's memory, and
	// copies them. The memory may be put to again once the sender knows that they were copied.
	template <typename Group = Block>
	__device__ bool wait_packet(const void *at, i64 bytes, void *to, unsigned number) {
		const u64 *const from = (const u64 *)at;
		unsigned *const there = (unsigned *)to;
		bool came = !state.failed && valid_place(at, bytes);
		for (i64 i = 2 * Group::thread(); i < bytes / 4 && came; i += 2 * Group::threads()) {
			const bool two = i + 1 < bytes / 4;
			u64 low = 0, high = 0;
			came = wait_unless_ended([&] {
				if (two) load_relaxed_sys(from + i, low, high);
				else low = high = load_relaxed_sys(from + i);
				return (unsigned)(low >> 32) == number && (unsigned)(high >> 32) == number;
			});
			if (!came) {
				const bool first = (unsigned)(low >> 32) != number; // of the two words
				fail(NO_PACKET, number, (first ? low : high) >> 32, (u64)i * 4 + (first ? 0 : 4));
				break;
			}
			there[i] = (unsigned)low;
			if (two) there[i + 1] = (unsigned)high;
		}
		return Group::all(came);
	}

	// put_value puts a value of 4 or 8 bytes as a packet: the value and its notification in one store. It uses the
	// value of the first thread of the group. It takes twice as many bytes at the target, at an offset that is a
	// multiple of that size. The number must differ from all numbers put there before, including earlier runs.
	template <typename Group = Block, typename T>
	__device__ void put_value(Window w, int to, i64 offset, T value, unsigned number) {
		if (!goes_on<Group>() || !Group::in_first_warp() || !valid_packet(w, to, offset, sizeof value)) return;
		const u64 base = Group::WHOLE ? recent(w, to).base : entry(w, to).base;
		if (Group::thread() == 0)
			send_value(served_by(in_world(w.comm, to)), (u64 *)(base + (u64)offset), value, number);
	}

	// wait_value waits for a value that was put with a number, at an address of this rank's memory, and returns it to
	// all threads of the group. The memory may be put to again once the sender knows that this returned.
	template <typename Group = Block, typename T>
	__device__ bool wait_value(const void *at, T &value, unsigned number) {
		bool came = !state.failed && valid_place(at, sizeof value);
		unsigned instead = 0;
		T v{};
		if (came) {
			came = wait_unless_ended([&] { return load_value((const u64 *)at, v, number, instead); });
			if (came) value = v;
			else
				fail(NO_PACKET, number, instead, (unsigned)(load_relaxed_sys((const u64 *)at) >> 32) == number ? 4 : 0);
		}
		return Group::all(came);
	}

  protected:
	enum { PACKET_OF_A_WARP = 256 }; // bytes that one warp puts

	__device__ Packets(const World &w, State &s) : Core(w, s) {}

	// valid_packet is valid for a packet, which takes twice as many bytes at the target.
	__device__ bool valid_packet(Window w, int to, i64 offset, i64 bytes) {
#ifdef RANK_CHECKS
		const i64 align = align_of(bytes), there = bytes < 0 || bytes >> 62 ? bytes : 2 * bytes;
		return valid(w, to, offset, there) &&
		       check(bytes % 4 == 0 && offset % align == 0 && (i64)entry(w, to).base % align == 0, BAD_PACKET, align,
		             bytes, offset);
#else
		return valid(w, to, offset, 2 * bytes);
#endif
	}
	// valid_place is valid for the address of a wait for a packet.
	__device__ bool valid_place(const void *at, i64 bytes) {
		return check(bytes >= 0 && bytes % 4 == 0 && (u64)at % (u64)align_of(bytes) == 0, BAD_PACKET, align_of(bytes),
		             bytes, -1);
	}
	static __device__ i64 align_of(i64 bytes) { return bytes > 4 ? 16 : 8; }

	// send_words stores one or two words, in one thread: by a proxy, if the device it serves is nonnegative.
	__device__ __forceinline__ void send_words(int device, u64 *to, u64 low, u64 high, int words) {
		if (device >= 0) post_words(device, to, low, high, words);
		else if (words == 2) store_relaxed_sys(to, low, high);
		else store_relaxed_sys(to, low);
	}
	template <typename T> __device__ __forceinline__ void send_value(int device, u64 *to, T value, unsigned number) {
		store_value(value, number, [&](int words, u64 low, u64 high) { send_words(device, to, low, high, words); });
	}

	// store_packet stores words of 4 bytes, each with a number, two per 16 bytes.
	template <typename Group>
	__device__ __forceinline__ void store_packet(int device, u64 *to, i64 words, const unsigned *from,
	                                             unsigned number) {
		const u64 high = (u64)number << 32;
#pragma unroll 1
		for (i64 i = 2 * Group::thread(); i < words; i += 2 * Group::threads()) {
			const bool two = i + 1 < words;
			const unsigned low = opaque(from[i]), next = opaque(from[two ? i + 1 : i]); // both loads are in flight
			send_words(device, to + i, high | low, high | next, 1 + two);
		}
	}
};

} // namespace ranks
