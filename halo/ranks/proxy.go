package ranks

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/streams"
)

// proxy serves GPUs that do not reach each other while their kernels run: it does what their ranks write into rings of
// commands in pinned host memory, each ring in its order.
//
// Commands come in batches: all that the rings hold. Their copies are queued on a stream of the device whose memory it is,
// which keeps the order of any two devices, and the batch is done once these streams are. Small stores of a ring between
// two of its other commands may change places, and those whose addresses follow each other are one copy. Counts are stored whole, by
// one thread, from the payloads of their commands.
//
// Commands for devices of other processes leave as letters, in the order of the ring, and the proxies there do what they say: only
// the process that a device is of copies to it. A barrier's command waits until all that its ring has stored at other processes
// before has been done.
type proxy struct {
	w         *World
	next      []uint64          // commands of each device of this process so far
	before    []uint64          // the same when the batch began
	stored    [][]uint64        // by device of this process and by process: letters that store there when the ring's last one left
	busy      []bool            // whether its stream has copies
	totals    map[uint64]uint64 // of counts, by device address
	arrivals  *streams.Memory   // pinned: what came in letters of this batch; nil: there are no other processes
	used      int64             // of arrivals
	fetched   []fetched         // what other processes get of this batch
	stop      atomic.Bool
	failed    atomic.Bool
	elsewhere atomic.Bool // another process has ended the run
	done      chan error
	copy      func(device, at uint64, from streams.Span) error // of a ring: deliver
	ring      int                                              // whose stores copy copies
}

// fetched is what a letter answers that asked for bytes.
type fetched struct {
	process int
	letter
	bytes streams.Span
}

// errProxy goes with the error that finish returns.
var errProxy = errors.New("ranks: the proxy has failed")

// gaveUp reports whether the proxy has failed.
func (p *proxy) gaveUp() bool { return p != nil && p.failed.Load() }

// endedElsewhere reports whether another process has ended the run.
func (p *proxy) endedElsewhere() bool { return p != nil && p.elsewhere.Load() }

// finish has the proxy end once it has done all that kernels which have ended left, and returns its error.
func (p *proxy) finish() error {
	if p == nil {
		return nil
	}
	p.stop.Store(true)
	return <-p.done
}

// order returns the n-th command of a device.
func (m *member) order(n uint64) *command {
	return &unsafe.Slice((*command)(unsafe.Pointer(&m.orders.Bytes()[0])), commands)[n%commands]
}

// payloadOf is that of the n-th command of a device.
func (m *member) payloadOf(n uint64, bytes uint64) streams.Span {
	offset := int64(n%commands)*int64(unsafe.Sizeof(command{})) + int64(unsafe.Offsetof(command{}.payload))
	return m.orders.Span(offset, int64(bytes))
}

// memory returns bytes at an address of a device of this process.
func (p *proxy) memory(device, at uint64, bytes int64) (*member, streams.Span, error) {
	m := p.w.member(int(min(device, MaxDevices)))
	if m == nil || at < spaceBegin || at >= math.MaxInt64-uint64(bytes) {
		return nil, streams.Span{}, fmt.Errorf("%d bytes at %#x of device %d", bytes, at, device)
	}
	return m, m.space.Span(int64(at)-spaceBegin, bytes), nil
}

// copyTo queues a copy to memory of a device of this process.
func (p *proxy) copyTo(device, at uint64, from streams.Span) error {
	to, there, err := p.memory(device, at, from.Length)
	if err != nil {
		return err
	}
	p.busy[to.index-p.w.before] = true
	return to.proxied.Copy(there, from)
}

// copyFrom queues a copy of memory of a device of this process.
func (p *proxy) copyFrom(to streams.Span, device, at uint64) error {
	from, there, err := p.memory(device, at, to.Length)
	if err != nil {
		return err
	}
	p.busy[from.index-p.w.before] = true
	return from.proxied.Copy(to, there)
}

// raise queues a store of a count of a device of this process that is one higher, by way of some pinned memory.
func (p *proxy) raise(ofBarrier bool, device, at uint64, by streams.Span) error {
	total, known := p.totals[at]
	if !known && !ofBarrier {
		total = p.w.first
	}
	if ofBarrier {
		if err := p.sync(); err != nil { // other devices may ask a third for what this one stored there
			return err
		}
	}
	p.totals[at] = total + 1
	*(*uint64)(unsafe.Pointer(&by.Memory.Bytes()[by.Offset])) = total + 1
	return p.copyTo(device, at, by)
}

// sync waits until all copies are done.
func (p *proxy) sync() error {
	for i, m := range p.w.members {
		if !p.busy[i] {
			continue
		}
		if err := m.proxied.Sync(p.w.grace); err != nil {
			return err
		}
		p.busy[i] = false
	}
	return nil
}
