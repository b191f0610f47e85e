package ranks

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
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
	memories               [MaxDevices]uint64
}

// reciprocal returns 2^32 over the ranks of a device, rounded up: a rank of the world times this, over 2^32, is its
// device.
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

// Bytes of a logged line that announce 8 bytes of a number: enum LogItem of ranks.cuh.
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
	Base  uint64
	Bytes int64
}

// command is struct Command of ranks.cuh.
type command struct {
	number, reply, taken            uint64
	what, device, at, bytes, unused uint64
	payload                         [payload]byte
}

// Kinds of commands: enum CommandKind of ranks.cuh.
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

// mirrors are compared with ranks.cuh by the compiler.
func mirrors() []kernels.Mirror {
	return []kernels.Mirror{
		{Name: "ranks::World", Value: argument{}}, {Name: "ranks::Control", Value: control{}},
		{Name: "ranks::LogLine", Value: logLine{}}, {Name: "ranks::LOG_LINES", Value: logLines},
		{Name: "ranks::LOG_FULL", Value: logFull}, {Name: "ranks::QUEUED", Value: queued},
		{Name: "ranks::KEPT", Value: keptMost}, {Name: "ranks::NO_MATCH", Value: noMatch},
		{Name: "ranks::QUEUE_FULL", Value: queueFull}, {Name: "ranks::LOG_SIGNED", Value: logSigned},
		{Name: "ranks::LOG_UNSIGNED", Value: logUnsigned}, {Name: "ranks::LOG_DOUBLE", Value: logDouble},
		{Name: "ranks::Timings", Value: timings{}}, {Name: "ranks::WindowEntry", Value: windowEntry{}},
		{Name: "ranks::MAX_DEVICES", Value: MaxDevices}, {Name: "ranks::MAX_WINDOWS", Value: MaxWindows},
		{Name: "ranks::LINES", Value: memoryLines}, {Name: "ranks::RUN_ENDED", Value: runEnded},
		{Name: "ranks::LINE_BYTES", Value: lineBytes}, {Name: "RANK_TAGS", Value: Tags},
		{Name: "ranks::NO_NOTIFICATIONS", Value: noNotifications}, {Name: "ranks::NO_BARRIER", Value: noBarrier},
		{Name: "ranks::BAD_RANK", Value: badRank}, {Name: "ranks::BAD_TAG", Value: badTag},
		{Name: "ranks::BAD_WINDOW", Value: badWindow}, {Name: "ranks::BAD_BOX", Value: badBox},
		{Name: "ranks::BAD_RANGE", Value: badRange}, {Name: "ranks::BAD_SOURCE", Value: badSource},
		{Name: "ranks::NO_PACKET", Value: noPacket}, {Name: "ranks::ENDED", Value: ended},
		{Name: "ranks::BY_PROGRAM", Value: byProgram}, {Name: "ranks::MAX_LEVELS", Value: maxLevels},
		{Name: "ranks::BOX_SLOTS", Value: boxSlots}, {Name: "ranks::BOX_VALUES", Value: boxValues},
		{Name: "ranks::NO_COLLECTIVE", Value: noCollective}, {Name: "ranks::BAD_COLLECTIVE", Value: badCollective},
		{Name: "ranks::Command", Value: command{}}, {Name: "ranks::COMMANDS", Value: commands},
		{Name: "ranks::PAYLOAD", Value: payload}, {Name: "ranks::STORE", Value: store},
		{Name: "ranks::RAISE_BARRIER", Value: raiseBarrier}, {Name: "ranks::NO_PROXY", Value: noProxy},
		{Name: "ranks::ChannelEnd", Value: channelEnd{}}, {Name: "ranks::MAX_ENDS", Value: maxEnds},
		{Name: "ranks::NO_ROOM", Value: noRoom}, {Name: "ranks::NO_MESSAGE", Value: noMessage},
		{Name: "ranks::BAD_CHANNEL", Value: badChannel}, {Name: "ranks::BAD_MESSAGE", Value: badMessage},
		{Name: "ranks::ALLREDUCE", Value: allreduce}, {Name: "ranks::MAX", Value: Max},
	}
}

// bytesOf returns a copy of a struct of numbers.
func bytesOf[T any](v *T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(v)), int(reflect.TypeFor[T]().Size()))...)
}

// memoryLayout is struct DeviceMemory of rank_world.cuh: offsets in a device's memory for its ranks.
type memoryLayout struct {
	ranks, devices int64
	withQueues     bool
	withProxy      bool
}

func (l memoryLayout) timings() int64 { return memoryLines * lineBytes }

// counts is the offset of the counts of notifications: near counts of all ranks, then far ones.
func (l memoryLayout) counts() int64 { return l.timings() + int64(unsafe.Sizeof(timings{})) }

// countBytes is the size of the counts of notifications, and of the credits of edges after them.
func (l memoryLayout) countBytes() int64 {
	kinds := int64(2)
	if l.withProxy {
		kinds = 3
	}
	return l.ranks * 8 * (kinds*Tags + l.edges())
}

// edges is the number of edges of a rank in the trees of its communicators.
func (l memoryLayout) edges() int64 {
	all := levels(l.ranks * l.devices)
	if l.devices > 1 {
		all += levels(l.ranks)
	}
	return all
}

// window is the offset of the entry of a rank of the world.
func (l memoryLayout) window(slot, rank int64) int64 {
	return l.counts() + l.countBytes() + (slot*l.ranks*l.devices+rank)*int64(unsafe.Sizeof(windowEntry{}))
}

// boxes is the offset of the parts of collectives.
func (l memoryLayout) boxes() int64 {
	return (l.window(2*MaxWindows, 0) + lineBytes - 1) / lineBytes * lineBytes
}

// queues is the offset of the counts of queues, followed by the queues and the notifications that ranks keep.
func (l memoryLayout) queues() int64 { return l.boxes() + l.ranks*l.edges()*boxSlots*boxValues*16 }

func (l memoryLayout) queueBytes() int64 {
	if !l.withQueues {
		return 0
	}
	all := l.ranks * l.devices
	return 8 * (2*all + all*queued + l.ranks*(1+keptMost+2*MaxDevices))
}

func (l memoryLayout) bytes() int64 { return l.queues() + l.queueBytes() }

// logger writes lines of ranks, one at a time.
type logger struct {
	mu sync.Mutex
	to io.Writer // nil: lines are discarded
}

// write writes a line of a rank. Errors of the writer are ignored.
func (l *logger) write(rank int, device fmt.Stringer, line string) {
	if l.to == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, "rank %d (%v): %s\n", rank, device, line)
}

// read writes the lines that a GPU has logged since the last call.
func (l *logger) read(d *streams.Device, lines *streams.Memory, c *control) {
	all := unsafe.Slice((*logLine)(unsafe.Pointer(&lines.Bytes()[0])), logLines)
	for n := c.logged; ; n++ {
		line := &all[n%logLines]
		if atomic.LoadUint64(&line.number) != n+1 {
			return
		}
		l.write(int(line.rank), d, format(line.text[:min(line.length, uint64(len(line.text)))]))
		atomic.StoreUint64(&c.logged, n+1)
	}
}

// format returns a line with its numbers as text.
func format(items []byte) string {
	var text []byte
	for i := 0; i < len(items); i++ {
		if items[i] < logSigned || items[i] > logDouble || i+8 >= len(items) {
			text = append(text, items[i])
			continue
		}
		bits := binary.LittleEndian.Uint64(items[i+1:])
		switch items[i] {
		case logSigned:
			text = strconv.AppendInt(text, int64(bits), 10)
		case logUnsigned:
			text = strconv.AppendUint(text, bits, 10)
		case logDouble:
			text = strconv.AppendFloat(text, math.Float64frombits(bits), 'g', -1, 64)
		}
		i += 8
	}
	return string(text)
}

// batchedMost is the largest store that is joined with others, in bytes.
const batchedMost = 256

// batch collects small stores of a ring that may be reordered, and joins stores to consecutive addresses into
// one copy: a packet is a store for each 16 bytes.
type batch struct {
	room    *streams.Memory // pinned, batchedMost bytes per command; nil: stores are not joined
	used    int64
	pending []*batchedStore
	all     [commands]batchedStore
}

// batchedStore is a store of a batch: its command, and its payload.
type batchedStore struct {
	*command
	from streams.Span
}

// takes reports whether a command is a store that the batch collects.
func (b *batch) takes(c *command) bool {
	return b.room != nil && c.what == store && c.bytes <= batchedMost && len(b.pending) < len(b.all)
}

// overlaps reports whether a command accesses bytes of a store in the batch.
func (b *batch) overlaps(c *command) bool {
	return slices.ContainsFunc(b.pending, func(g *batchedStore) bool {
		return g.device == c.device && g.at < c.at+c.bytes && c.at < g.at+g.bytes
	})
}

// add adds a store, which must not overlap others.
func (b *batch) add(c *command, from streams.Span) {
	g := &b.all[len(b.pending)]
	*g = batchedStore{c, from}
	b.pending = append(b.pending, g)
}

// flush copies all stores of the batch.
func (b *batch) flush(copyTo func(device, at uint64, from streams.Span) error) error {
	slices.SortFunc(b.pending, func(x, y *batchedStore) int {
		return cmp.Or(cmp.Compare(x.device, y.device), cmp.Compare(x.at, y.at))
	})
	for rest := b.pending; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].device == rest[0].device && rest[n].at == rest[n-1].at+rest[n-1].bytes {
			n++
		}
		if err := copyTo(rest[0].device, rest[0].at, b.joined(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
	}
	b.pending = b.pending[:0]
	return nil
}

// joined returns the payloads one after another. The payload of a single store is not moved.
func (b *batch) joined(all []*batchedStore) streams.Span {
	if len(all) == 1 {
		return all[0].from
	}
	begin := b.used
	for _, g := range all {
		b.used += int64(copy(b.room.Bytes()[b.used:], g.payload[:g.bytes]))
	}
	return b.room.Span(begin, b.used-begin)
}
