// What a launch of ranks shares with the host, and what its devices share: see ranks.cuh. Go's forms of the structs
// are in halo/ranks/layout.go.
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
	MAX_WINDOWS = 16, // of a communicator
	MAX_TIMINGS = 1000,
	LOG_LINES = 256, // that the host has not read yet
	QUEUED = 64,     // notifications of a queue that its rank has not read yet
	KEPT = 1024,     // that a rank has read and not taken
	MAX_LEVELS = 18, // of the tree of a communicator: fewer than 2^18 ranks
	BOX_SLOTS = 4,   // parts of collectives that a rank has not read yet, from another rank
	BOX_VALUES = 32, // of a part, 16 bytes each
	MAX_ENDS = 16,   // of channels, of a rank
	COMMANDS = 64,   // that the proxy of a device has not done yet
	PAYLOAD = 4032,  // bytes that go with a command
};

// What a rank can fail of: Go's failure has the words for it.
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
	BY_PROGRAM, // with a code and a detail of its own
	ENDED,
};

// What a device and the host tell each other during a run, in host memory.
struct Control {
	u64 ended;                  // for the host alone: it copies this to the line RUN_ENDED
	u64 claimed, written;       // by the device: a rank has failed, and has said how
	u64 failure, rank;          // what it failed of, and its index in the world
	u64 expected, came, detail; // numbers that go with the failure
	u64 where;                  // of a window: its slot, and from bit 32 on the rank of the world
	u64 logged;                 // by the host: how many lines it has read
	u64 done;                   // by the host: how many commands its proxy has done
};

// A line of the log. The host takes those with the numbers that it expects, and a line's place is used again then.
struct LogLine {
	u64 number; // 1 for the first; written last
	u64 rank, length;
	char text[232];
};
enum LogItem { LOG_SIGNED = 1, LOG_UNSIGNED, LOG_DOUBLE };

// One end of a channel, see rank_channel.cuh.
struct ChannelEnd {
	u64 *ring;             // of the receiver: slots of words, an even number of them
	u64 *credit;           // of the sender: how many messages were read
	u64 first;             // the number of the first message
	int key, peer;         // Channel::key, -1 for none; the rank of the world at the other end
	unsigned slots, words; // a power of two; of 4 bytes, of the longest message
};

// What the proxy of the host is to do, see rank_core.cuh: in host memory, 16 bytes aligned.
struct Command {
	u64 number;                  // 1 for the first; written last
	u64 reply, taken;            // the number, of FETCH: by the host, the bytes are there; by the device, it has them
	u64 what, device, at, bytes; // of whose memory, at which address
	u64 unused;
	char payload[PAYLOAD];
};
enum CommandKind {
	STORE = 1,     // the payload to an address
	FETCH,         // the bytes of an address to the payload
	RAISE,         // one more at a count of notifications
	RAISE_BARRIER, // one more at a count of devices, once all that was stored before is there for all
};

// What a kernel is launched with. memories are what each device has for its ranks, all laid out alike: see
// DeviceMemory.
struct World {
	i64 limit;                   // of any wait, in ns
	i64 ranks, devices, device;  // ranks of each device; this device
	i64 edges;                   // of a rank in the trees of its communicators, see rank_tree.cuh
	u64 reciprocal;              // of ranks: 2^32 over it, rounded up
	u64 served;                  // the devices that it reaches by its proxy alone, a bit each
	u64 windows[2];              // those that the host made, a bit each, by communicator
	void *data;                  // of this device
	Control *control;            // of this device
	const u64 *ended;            // of this device, in its memory: not 0 once the host has ended the run
	LogLine *log;                // of this device, in host memory
	Command *commands;           // of this device, in host memory, for its proxy
	const ChannelEnd *ends;      // MAX_ENDS of each rank of this device; null: none has any
	char *memories[MAX_DEVICES]; // as this device reaches them, or its proxy, or that of another process
};

// The first lines of the memory that a device has for its ranks. Lines of 128 bytes keep counts apart that are polled
// by different ranks.
enum Line {
	DEVICE_ARRIVALS,
	WORLD_ARRIVALS,
	OTHER_DEVICES, // two words, see wait_for_devices
	LOG_LINES_CLAIMED,
	COMMANDS_CLAIMED,
	SERVED_DEVICES, // as OTHER_DEVICES, by proxies
	RUN_ENDED,      // by the host: a rank has failed, or the run is to end
	COMMANDS_DONE,  // two words: a copy of Control::done, and 1 while a rank reads that: see try_claim
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

// What a rank has read of its queues and keeps, see rank_queue.cuh. Its users hold State::queue_lock. It lies in device
// memory because racecheck, which looks at shared memory, does not see that the lock orders them.
struct Kept {
	u64 count, envelopes[KEPT];
	u64 read[MAX_DEVICES]; // of the queue of each device
	u64 told[MAX_DEVICES]; // as many as those devices were told of
};

// The memory that a device has for its ranks.
struct DeviceMemory {
	char *at;
	i64 ranks, devices, edges;

	__device__ u64 *line(Line n) const { return (u64 *)(at + n * LINE_BYTES); }
	__device__ Timings *timings() const { return (Timings *)(at + LINES * LINE_BYTES); }
	// How many notifications a rank of the device has had, from ranks of its device and from others. They
	// are raised at different scopes, and so lie in words of their own.
	__device__ u64 *near_count(i64 rank, int tag) const {
		return (u64 *)(at + LINES * LINE_BYTES + sizeof(Timings)) + rank * RANK_TAGS + tag;
	}
	__device__ u64 *far_count(i64 rank, int tag) const { return near_count(ranks, 0) + rank * RANK_TAGS + tag; }
	// The same by proxies, which store whole counts.
	__device__ u64 *served_count(i64 rank, int tag) const { return far_count(ranks, 0) + rank * RANK_TAGS + tag; }
	// How many parts the peer of a rank of the device at an edge has read, of those that this rank sent it.
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
	// Where the parts arrive that a rank of the device gets at an edge.
	__device__ u64 *box(i64 rank, i64 edge) const {
		const u64 before = (u64)((char *)window(2 * MAX_WINDOWS, 0) - at);
		return (u64 *)(at + (before + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES) +
		       (rank * edges + edge) * (BOX_SLOTS * BOX_VALUES * 2);
	}
	// How many places of the queue that a rank of the world has for this device were claimed, and how many it has
	// read; the queue that a rank of this device has for a device; and what a rank of this device keeps.
	__device__ u64 *claimed(i64 rank) const { return box(ranks, 0) + 2 * rank; }
	__device__ u64 *read(i64 rank) const { return claimed(rank) + 1; }
	__device__ u64 *queue(i64 rank, i64 device) const {
		return claimed(ranks * devices) + (rank * devices + device) * QUEUED;
	}
	__device__ Kept *kept(i64 rank) const { return (Kept *)queue(ranks, 0) + rank; }
};

// A window: memory of each rank of a communicator, which the others may write to and read.
struct Window {
	int slot; // below 0: none
	Comm comm;

	__device__ bool exists() const { return slot >= 0; }
};

// A channel that the host made, by its number.
struct Channel {
	int number;

	__device__ int key(bool sends) const { return (int)(2 * (unsigned)number + sends); }
};

} // namespace ranks
