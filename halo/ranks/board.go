package ranks

import (
	"unsafe"

	"github.com/halox/halox/kernels"
)

// argument is struct World of ranks.cuh.
type argument struct {
	limit                  int64
	ranks, devices, device int64
	edges                  int64
	reciprocal             uint64
	served                 uint64
	windows                [2]uint64
	data, control, ended   uint64
	log, commands, ends    uint64
	boards                 [MaxDevices]uint64
}

// reciprocal returns 2^32 over the ranks of a device, rounded up: a rank of the world times this, over 2^32, is its device.
func reciprocal(ranks int) uint64 { return (1<<32 + uint64(ranks) - 1) / uint64(ranks) }

// control is struct Control of ranks.cuh.
type control struct {
	ended                  uint64
	claimed, written       uint64
	failure, rank          uint64
	expected, came, detail uint64
	where                  uint64
	logged, done           uint64
}

// What a byte of a logged line that is no text says of the 8 bytes behind it: enum LogItem of ranks.cuh.
const (
	logSigned = 1 + iota
	logUnsigned
	logDouble
)

// logLine is struct LogLine of ranks.cuh.
type logLine struct {
	number, rank, length uint64
	text                 [232]byte
}

// timings is struct Timings of ranks.cuh.
type timings struct {
	count       uint64
	nanoseconds [maxTimings]int64
}

// windowEntry is struct WindowEntry of ranks.cuh.
type windowEntry struct {
	base  uint64
	bytes int64
}

// command is struct Command of ranks.cuh.
type command struct {
	number, reply, taken            uint64
	what, device, at, bytes, unused uint64
	payload                         [payload]byte
}

// What a command is: enum CommandKind of ranks.cuh.
const (
	store = 1 + iota
	fetch
	raise
	raiseBarrier
)

// channelEnd is struct ChannelEnd of ranks.cuh.
type channelEnd struct {
	ring, credit, first uint64
	key, peer           int32
	slots, words        uint32
}

// mirrors hold ranks.cuh to the above.
func mirrors() []kernels.Mirror {
	return []kernels.Mirror{
		{Name: "ranks::World", Value: argument{}}, {Name: "ranks::Control", Value: control{}},
		{Name: "ranks::LogLine", Value: logLine{}}, {Name: "ranks::LOG_LINES", Value: logLines}, {Name: "ranks::LOG_FULL", Value: logFull},
		{Name: "ranks::QUEUED", Value: queued}, {Name: "ranks::KEPT", Value: keptMost},
		{Name: "ranks::NO_MATCH", Value: noMatch}, {Name: "ranks::QUEUE_FULL", Value: queueFull}, {Name: "ranks::LOG_SIGNED", Value: logSigned}, {Name: "ranks::LOG_UNSIGNED", Value: logUnsigned}, {Name: "ranks::LOG_DOUBLE", Value: logDouble},
		{Name: "ranks::Timings", Value: timings{}}, {Name: "ranks::WindowEntry", Value: windowEntry{}},
		{Name: "ranks::MAX_DEVICES", Value: MaxDevices}, {Name: "ranks::MAX_WINDOWS", Value: MaxWindows},
		{Name: "ranks::LINES", Value: boardLines}, {Name: "ranks::RUN_ENDED", Value: runEnded}, {Name: "ranks::LINE_BYTES", Value: lineBytes}, {Name: "RANK_TAGS", Value: Tags},
		{Name: "ranks::NO_NOTIFICATIONS", Value: noNotifications}, {Name: "ranks::NO_BARRIER", Value: noBarrier},
		{Name: "ranks::BAD_RANK", Value: badRank}, {Name: "ranks::BAD_TAG", Value: badTag}, {Name: "ranks::BAD_WINDOW", Value: badWindow},
		{Name: "ranks::BAD_BOX", Value: badBox}, {Name: "ranks::BAD_RANGE", Value: badRange}, {Name: "ranks::BAD_SOURCE", Value: badSource}, {Name: "ranks::NO_PACKET", Value: noPacket}, {Name: "ranks::ENDED", Value: ended}, {Name: "ranks::BY_PROGRAM", Value: byProgram},
		{Name: "ranks::MAX_LEVELS", Value: maxLevels}, {Name: "ranks::BOX_SLOTS", Value: boxSlots}, {Name: "ranks::BOX_VALUES", Value: boxValues},
		{Name: "ranks::NO_COLLECTIVE", Value: noCollective}, {Name: "ranks::BAD_COLLECTIVE", Value: badCollective},
		{Name: "ranks::Command", Value: command{}}, {Name: "ranks::COMMANDS", Value: commands}, {Name: "ranks::PAYLOAD", Value: payload},
		{Name: "ranks::STORE", Value: store}, {Name: "ranks::RAISE_BARRIER", Value: raiseBarrier}, {Name: "ranks::NO_PROXY", Value: noProxy},
		{Name: "ranks::ChannelEnd", Value: channelEnd{}}, {Name: "ranks::MAX_ENDS", Value: maxEnds},
		{Name: "ranks::NO_ROOM", Value: noRoom}, {Name: "ranks::NO_MESSAGE", Value: noMessage},
		{Name: "ranks::BAD_CHANNEL", Value: badChannel}, {Name: "ranks::BAD_MESSAGE", Value: badMessage},
		{Name: "ranks::ALLREDUCE", Value: allreduce}, {Name: "ranks::MAX", Value: Max},
	}
}

// board is struct Board of ranks.cuh: where things are on the memory that a device has for its ranks.
type board struct {
	ranks, devices int64
	withQueues     bool
	withProxy      bool
}

func (b board) timings() int64 { return boardLines * lineBytes }

// counts is where the counts of notifications begin, which are near ones of all ranks and then far ones.
func (b board) counts() int64 { return b.timings() + int64(unsafe.Sizeof(timings{})) }

// countBytes are those of the counts of notifications, and of the credits of edges behind them.
func (b board) countBytes() int64 {
	kinds := int64(2)
	if b.withProxy {
		kinds = 3
	}
	return b.ranks * 8 * (kinds*Tags + b.edges())
}

// edges is how many edges a rank has in the trees of its communicators.
func (b board) edges() int64 {
	all := levels(b.ranks * b.devices)
	if b.devices > 1 {
		all += levels(b.ranks)
	}
	return all
}

// window is where the entry of a rank of the world is.
func (b board) window(slot, rank int64) int64 {
	return b.counts() + b.countBytes() + (slot*b.ranks*b.devices+rank)*int64(unsafe.Sizeof(windowEntry{}))
}

// boxes is where the parts of collectives arrive.
func (b board) boxes() int64 {
	return (b.window(2*MaxWindows, 0) + lineBytes - 1) / lineBytes * lineBytes
}

// queues is where the counts of queues begin, after which come the queues and what ranks keep of them.
func (b board) queues() int64 { return b.boxes() + b.ranks*b.edges()*boxSlots*boxValues*16 }

func (b board) queueBytes() int64 {
	if !b.withQueues {
		return 0
	}
	all := b.ranks * b.devices
	return 8 * (2*all + all*queued + b.ranks*(1+keptMost+2*MaxDevices))
}

func (b board) bytes() int64 { return b.queues() + b.queueBytes() }
