package links

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// labour is what the messages of a group do in a test, and when they did it.
type labour struct {
	mu          sync.Mutex
	begun, done time.Time // the first and the last
	alone       sync.Mutex
}

// work is a message that takes some time.
func (l *labour) work(took time.Duration) {
	begin := time.Now()
	time.Sleep(took)
	end := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun.IsZero() || begin.Before(l.begun) {
		l.begun = begin
	}
	if end.After(l.done) {
		l.done = end
	}
}

// newTestGroup makes a group of a sender on each of the devices, whose messages are what does
// is given.
func newTestGroup(t *testing.T, devices int, does func(sender int) func()) *senderGroup {
	t.Helper()
	set := testdevices.Host(t, devices)
	f := newFabric(set.Links, set.Compiler, 8)
	var open streams.Resources
	t.Cleanup(func() { test.Report(t, open.Close()) })
	made := &senderGroup{}
	for i, d := range set.Devices {
		c := test.Must(f.newSender(hop{string(p2p.Peer), end{d, false}, end{d, false}}, &open))(t)
		k := test.Must(d.NewKernel(streams.KernelSpec{Name: "message", Run: does(i)}))(t)
		open.Add(k)
		c.operations, c.send = 1, func() error { return c.home.Launch(k) }
		made.senders = append(made.senders, c)
	}
	var err error
	if made.gate, err = flags.NewGate(f.compiler, set.Devices[0], timing.GateLimit); err != nil {
		t.Fatal(err)
	}
	open.Add(made.gate)
	return made
}

// took has a group make a batch, and returns its time.
func took(t *testing.T, made *senderGroup, n int) time.Duration {
	t.Helper()
	us := test.Must(made.batch(n))(t)
	return time.Duration(us * float64(n) * float64(time.Microsecond))
}

// rounding is what a time may lose on its way through a float64 of microseconds.
const rounding = time.Microsecond

// What counts is all from the first message to begin to the last to end, whoever sends them;
// what is not at once counts as what it takes.
func TestSenderGroupCountsFromFirstToLast(t *testing.T) {
	const n, each = 5, 2 * time.Millisecond
	for _, tc := range []struct {
		name  string
		does  func(l *labour, sender int)
		least time.Duration // that it takes
	}{
		{"all alike", func(l *labour, _ int) { l.work(each) }, n * each},
		{"the first is the slowest", func(l *labour, i int) { l.work(each / time.Duration(1+i)) }, n * each},
		{"the last is the slowest", func(l *labour, i int) { l.work(each / time.Duration(3-i)) }, n * each},
		{"one at a time", func(l *labour, _ int) { l.alone.Lock(); defer l.alone.Unlock(); l.work(each) }, 3 * n * each},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &labour{}
			made := newTestGroup(t, 3, func(i int) func() { return func() { tc.does(l, i) } })
			send := made.senders[0].send
			leads := 0
			made.senders[0].send = func() error { // what is sent before the clock starts is no message of the batch
				if leads++; leads == 1 {
					return nil
				}
				return send()
			}
			got := took(t, made, n)
			if span := l.done.Sub(l.begun); got < span-rounding || got < tc.least-rounding {
				t.Errorf("took %v; from the first to the last it was %v, and they need %v", got, span, tc.least)
			}
		})
	}
}

// Who begins late makes all of it late: that the times of each by itself are short does not
// count.
func TestSenderGroupCountsWhoIsLate(t *testing.T) {
	const late = 30 * time.Millisecond
	made := newTestGroup(t, 2, func(int) func() { return func() {} })
	laggard := made.senders[1]
	wait := test.Must(laggard.from.device.NewKernel(streams.KernelSpec{Name: "late", Run: func() { time.Sleep(late) }}))(t)
	defer wait.Close()
	send, sent := laggard.send, 0
	laggard.send = func() error {
		if sent++; sent == 1 {
			return errors.Join(laggard.home.Launch(wait), send())
		}
		return send()
	}
	if got := took(t, made, 3); got < late-rounding {
		t.Errorf("took %v", got)
	}
}

// How long the host takes to queue messages does not count, of one sender and of several.
func TestSenderGroupIsHeldUntilAllIsQueued(t *testing.T) {
	const n, slow = 20, 2 * time.Millisecond
	for _, devices := range []int{1, 2} {
		made := newTestGroup(t, devices, func(int) func() { return func() {} })
		for _, c := range made.senders {
			send := c.send
			c.send = func() error { time.Sleep(slow); return send() }
		}
		testdevices.Patiently(t, func(time.Duration) error {
			if got := took(t, made, n); got > n*slow/2 {
				return fmt.Errorf("%d senders: took %v; to queue it took %v or more", devices, got, n*slow)
			}
			return nil
		})
	}
}

// Where a message cannot be queued, in the middle of a batch or before it, the gate is opened:
// what was queued is done soon, and the next batch is as good as any.
func TestSenderGroupThatFailsOpensTheGate(t *testing.T) {
	for _, at := range []int{1, 2, 7} {
		made := newTestGroup(t, 2, func(int) func() { return func() {} })
		first := made.senders[0]
		send, sent := first.send, 0
		first.send = func() error {
			if sent++; sent == at {
				return io.EOF
			}
			return send()
		}
		if _, err := made.batch(10); !errors.Is(err, io.EOF) || strings.Contains(err.Error(), "not opened") {
			t.Errorf("at %d: %v", at, err)
		}
		for _, c := range made.senders {
			test.Report(t, c.settle())
		}
		took(t, made, 10)
	}
}

// Behind a gate no device has more than its streams hold, whatever is sent at once: with more
// the host would wait for the gate that it is to open.
func TestSenderGroupQueuesNoMoreThanStreamsHold(t *testing.T) {
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		n := len(set.Devices)
		if n < 2 {
			t.Skip("SKIPPED: it takes two devices")
		}
		f := newFabric(set.Links, set.Compiler, 64)
		link := func(path p2p.Path, from, to int) hop {
			return hop{string(path), end{set.Devices[from], false}, end{set.Devices[to%n], false}}
		}
		ring := func(path p2p.Path) (hops []hop) {
			for i := range n {
				hops = append(hops, link(path, i, i+1), link(path, i, i+n-1))
			}
			return hops
		}
		for _, tc := range []struct {
			name string
			hops []hop
			each int // operations of the busiest device for a message of each sender
		}{
			{"peer one way", []hop{link(p2p.Peer, 0, 1)}, 1},
			{"direct both ways", []hop{link(p2p.Direct, 0, 1), link(p2p.Direct, 1, 0)}, 1},
			{"staged one way", []hop{link(p2p.Staged, 0, 1)}, 3},
			{"staged both ways", []hop{link(p2p.Staged, 0, 1), link(p2p.Staged, 1, 0)}, 6},
			{"peer ring both ways", ring(p2p.Peer), 2},
			{"staged ring both ways", ring(p2p.Staged), 12},
		} {
			t.Run(tc.name, func(t *testing.T) {
				var open streams.Resources
				defer func() { test.Report(t, open.Close()) }()
				made, err := f.newSenderGroup(tc.hops, &open)
				if errors.Is(err, bench.ErrLeftOut) {
					t.Skip("SKIPPED: ", err)
				}
				if err != nil {
					t.Fatal(err)
				}
				us, err := made.time(t.Context(), 64, measure.Pace{First: 2, Max: 1 << 20, Batch: 100 * time.Millisecond})
				if err != nil || us.Median <= 0 {
					t.Errorf("%+v, %v", us, err)
				}
				if got, want := made.most(), timing.MaxGated/tc.each-1; got != want {
					t.Errorf("%d messages, want %d and one before", got, want)
				}
			})
		}
	})
}

// Interrupted behind a shut gate, the bench opens it, ends with the messages of that size,
// and keeps what it had.
func TestInterruptedBehindAGate(t *testing.T) {
	set := testdevices.Host(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	record := &results.Record{}
	r := &run{
		fabric: newFabric(set.Links, set.Compiler, 128), devices: set.Devices, sizes: []int64{64, 128},
		pace: measure.Pace{First: 2, Max: 10, Batch: 100 * time.Microsecond}, record: record,
	}
	there := hop{string(p2p.Peer), end{set.Devices[0], false}, end{set.Devices[1], false}}
	back := hop{there.path, there.to, there.from}
	part := r.task(bothWaysMode, there, back)
	again := part.Measure
	part.Measure = func(ctx context.Context, open *streams.Resources) (rows []results.Row, err error) {
		go cancel() // some time in the middle of what follows
		for err == nil {
			rows, err = again(ctx, open)
		}
		return rows, err
	}
	err := (&bench.Recorder{Record: record}).Measure(ctx, []bench.Task{r.task(oneWayMode, there), part})
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "not opened") || !record.Interrupted || len(record.Rows) != 2 {
		t.Errorf("%v: %+v", err, record)
	}
}
