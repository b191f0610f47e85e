// Data that a launch of ranks shares with the host and between devices: see ranks.cuh. The Go counterparts of the
// structs are in halo/ranks/layout.go.
#pragma once

#include "device.cuh"

#ifndef RANK_TAGS
#define RANK_TAGS 256
#endif

namespace ranks {

// Communicators: all ranks, and those of one device. A rank has an index in each.
enum Comm { WORLD, DEVICE };

enum {
	MAX_DEVICES = 16,
	MAX_WINDOWS = 16, // per communicator
	MAX_TIMINGS = 1000,
	LOG_LINES = 256, // not yet read by the host
	QUEUED = 64,     // notifications of a queue not yet read by its rank
	KEPT = 1024,     // notifications read by a rank and not yet matched
	MAX_LEVELS = 18, // of the tree of a communicator: fewer than 2^18 ranks
	BOX_SLOTS = 4,   // parts of collectives from another rank that are not yet read
	BOX_VALUES = 32, // per part, 16 bytes each
	MAX_ENDS = 16,   // of channels, per rank
	COMMANDS = 64,   // not yet executed by the proxy of a device
	PAYLOAD = 4032,  // bytes per command
};

// Reasons for failures of ranks; their texts are in the Go type failure.
enum Failure {
	NONE,
	NO_NOTIFICATIONS,
	NO_BARRIER,
	BAD_RANK,
	BAD_TAG,
	BAD_WINDOW,
	BAD_RANGE,
	BAD_SOURCE,
	NO_PACKET,
	NO_MATCH,
	LOG_FULL,
	QUEUE_FULL,
	NO_COLLECTIVE,
	BAD_COLLECTIVE,
	NO_ROOM,
	NO_MESSAGE,
	BAD_CHANNEL,
	BAD_MESSAGE,
	NO_PROXY,
	BAD_COUNT,
	BAD_PACKET,
	BAD_BOX,
	BY_PROGRAM, // with a user-defined code and detail
	ENDED,
};

// Data that a device and the host exchange during a run, in host memory.
struct Control {
	u64 ended;                  // used only by the host, which copies this to the line RUN_ENDED
	u64 claimed, written;       // by the device: a rank has failed, and the report is complete
	u64 failure, rank;          // the reason, and the rank's index in the world
	u64 expected, came, detail; // details of the failure
	u64 where;                  // in a window: its slot, and from bit 32 on the rank of the world
	u64 logged;                 // by the host: number of lines read
	u64 done;                   // by the host: number of commands executed by its proxy
};

// A line of the log. The host reads lines in order of their numbers, and a line's slot is then reused.
struct LogLine {
	u64 number; // 1 for the first; written last
	u64 rank, length;
	char text[232];
};
enum LogItem { LOG_SIGNED = 1, LOG_UNSIGNED, LOG_DOUBLE };

// One end of a channel, see rank_channel.cuh.
struct ChannelEnd {
	u64 *ring;             // at the receiver: an even number of slots, each of some words
	u64 *credit;           // at the sender: number of messages read
	u64 first;             // number of the first message
	int key, peer;         // Channel::key, -1 for none; the rank of the world at the other end
	unsigned slots, words; // slots: a power of two; words: in 4 bytes, of the longest message
};

// A command for the proxy of the host, see rank_core.cuh: in host memory, aligned to 16 bytes.
struct Command {
	u64 number;                  // 1 for the first; written last
	u64 reply, taken;            // the number, of FETCH: the host has written the bytes; the device has read them
	u64 what, device, at, bytes; // device and address of the memory
	u64 unused;
	char payload[PAYLOAD];
};
enum CommandKind {
	STORE = 1,     // the payload to an address
	FETCH,         // the bytes of an address to the payload
	RAISE,         // increment a count of notifications
	RAISE_BARRIER, // increment a count of devices, once all earlier stores are visible to all
};

// The argument of a launch. memories points to the memory of each device for its ranks, all with the same layout: see
// DeviceMemory.
struct World {
	i64 limit;                   // per wait, in ns
	i64 ranks, devices, device;  // ranks per device; this device
	i64 edges;                   // per rank in the trees of its communicators, see rank_tree.cuh
	u64 reciprocal;              // 2^32 / ranks, rounded up
	u64 served;                  // bits of the devices that it reaches only by its proxy
	u64 windows[2];              // bits of the windows made by the host, by communicator
	void *data;                  // of this device
	Control *control;            // of this device
	const u64 *ended;            // in memory of this device: nonzero once the host has ended the run
	LogLine *log;                // of this device, in host memory
	Command *commands;           // of this device, in host memory, for its proxy
	const ChannelEnd *ends;      // MAX_ENDS for each rank of this device; null if there are no channels
	char *memories[MAX_DEVICES]; // as addressed by this device or its proxy, or in another process
};

// The first lines of the memory of a device for its ranks. Separate lines of 128 bytes hold counts that different ranks
// poll.
enum Line {
	DEVICE_ARRIVALS,
	WORLD_ARRIVALS,
	OTHER_DEVICES, // two words, see wait_for_devices
	LOG_LINES_CLAIMED,
	COMMANDS_CLAIMED,
	SERVED_DEVICES, // as OTHER_DEVICES, by proxies
	RUN_ENDED,      // set by the host: a rank has failed, or the run must end
	COMMANDS_DONE,  // two words: a copy of Control::done, and 1 while a rank reads it: see try_claim
	LINES = 8
};
enum { LINE_BYTES = 128 };

struct WindowEntry {
	u64 base;
	i64 bytes;
};

struct Timings {
	u64 count;
	i64 nanoseconds[MAX_TIMINGS];
};

// The notifications that a rank has read from its queues and keeps, see rank_queue.cuh, protected by State::queue_lock.
// They are in device memory because racecheck, which checks shared memory, does not recognize that the lock orders
// them.
struct Kept {
	u64 count, envelopes[KEPT];
	u64 read[MAX_DEVICES]; // from the queue of each device
	u64 told[MAX_DEVICES]; // as reported to those devices
};

// The memory of a device for its ranks.
struct DeviceMemory {
	char *at;
	i64 ranks, devices, edges;

	__device__ u64 *line(Line n) const { return (u64 *)(at + n * LINE_BYTES); }
	__device__ Timings *timings() const { return (Timings *)(at + LINES * LINE_BYTES); }
	// The number of notifications that a rank of the device has received from ranks of its device and from others. They
	// are incremented at different scopes, and so are separate words.
	__device__ u64 *near_count(i64 rank, int tag) const {
		return (u64 *)(at + LINES * LINE_BYTES + sizeof(Timings)) + rank * RANK_TAGS + tag;
	}
	__device__ u64 *far_count(i64 rank, int tag) const { return near_count(ranks, 0) + rank * RANK_TAGS + tag; }
	// Notifications by proxies, which store whole counts.
	__device__ u64 *served_count(i64 rank, int tag) const { return far_count(ranks, 0) + rank * RANK_TAGS + tag; }
	// The number of parts sent by a rank of the device at an edge that its peer has read.
	__device__ u64 *credit(i64 rank, i64 edge) const {
#ifdef RANK_PROXY
		return served_count(ranks, 0) + rank * edges + edge;
#else
		return far_count(ranks, 0) + rank * edges + edge;
#endif
	}
	// The windows of all ranks of the world, by slot.
	__device__ WindowEntry *window(int slot, i64 rank) const {
		return (WindowEntry *)credit(ranks, 0) + slot * ranks * devices + rank;
	}
	// The buffers for parts that a rank of the device receives at an edge.
	__device__ u64 *box(i64 rank, i64 edge) const {
		const u64 before = (u64)((char *)window(2 * MAX_WINDOWS, 0) - at);
		return (u64 *)(at + (before + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES) +
		       (rank * edges + edge) * (BOX_SLOTS * BOX_VALUES * 2);
	}
	// The number of slots claimed in the queue that a rank of the world has for this device, and the number it has
	// read; the queue that a rank of this device has for a device; and the notifications that a rank of this device
	// keeps.
	__device__ u64 *claimed(i64 rank) const { return box(ranks, 0) + 2 * rank; }
	__device__ u64 *read(i64 rank) const { return claimed(rank) + 1; }
	__device__ u64 *queue(i64 rank, i64 device) const {
		return claimed(ranks * devices) + (rank * devices + device) * QUEUED;
	}
	__device__ Kept *kept(i64 rank) const { return (Kept *)queue(ranks, 0) + rank; }
};

// A window: memory of each rank of a communicator that the others may write to and read.
struct Window {
	int slot; // negative: none
	Comm comm;

	__device__ bool exists() const { return slot >= 0; }
};

// A channel made by the host, by its number.
struct Channel {
	int number;

	__device__ int key(bool sends) const { return (int)(2 * (unsigned)number + sends); }
};

} // namespace ranks
