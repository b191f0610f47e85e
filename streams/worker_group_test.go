package streams

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
)

// A group returns the first error, whatever the other workers do. It names the counter that a worker waited for,
// and where a panic occurred. A stuck worker does not delay the error of another.
func TestWorkerGroupErrors(t *testing.T) {
	cause := errors.New("cause")
	fails := func(*WorkerGroup) error { return cause }
	release := make(chan struct{})
	defer close(release)
	for _, tc := range []struct {
		name    string
		limit   time.Duration
		workers []func(g *WorkerGroup) error
		want    error
		words   []string
	}{
		{"a wait that ends", testLimit, []func(g *WorkerGroup) error{func(g *WorkerGroup) error { return g.Await(&Counter{}, 1) }, fails}, cause, nil},
		{"a wait that is too long", 30 * time.Millisecond, []func(g *WorkerGroup) error{func(g *WorkerGroup) error {
			lazy := Counter{Name: "device 3"}
			lazy.Set(4)
			return g.Await(&lazy, 5)
		}}, nil, []string{"device 3 to reach 5, got 4"}},
		{"a stuck worker", 50 * time.Millisecond, []func(g *WorkerGroup) error{func(*WorkerGroup) error { <-release; return nil }, fails}, cause, []string{"worker 0"}},
		{"a panic", testLimit, []func(g *WorkerGroup) error{func(*WorkerGroup) error { panickingWorker(); return nil }}, nil, []string{"worker 0", "no such thing", "panickingWorker", "worker_group_test.go"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWorkerGroup(len(tc.workers), tc.limit)
			for i, work := range tc.workers {
				g.Go(fmt.Sprint("worker ", i), func() error { return work(g) })
			}
			err := g.Wait()
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Fatalf("got %v", err)
			}
			for _, word := range tc.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v: must contain %q", err, word)
				}
			}
		})
	}
}

func panickingWorker() { panic("no such thing") }

// Threads spin only if there is a core for each, regardless of GOMAXPROCS.
func TestThreadsSpinByCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1000))
	if paceOf(runtime.NumCPU()) == &spinning {
		t.Errorf("%d threads must not spin on %[1]d cores", runtime.NumCPU())
	}
}

// Two workers that each feed a stream pass a token back and forth.
func TestSignalsOrderStreamsOfTwoWorkers(t *testing.T) {
	const turns = 200
	d := hostDevices(t, 2)
	c := NewWorkerGroup(2, testLimit)
	var signals [2]*Signal
	for i := range signals {
		signals[i] = test.Must(d[i].NewSignal("device %d", i))(t)
	}
	token := 0
	for me := range 2 {
		s := test.Must(d[me].NewStream(Normal))(t)
		k := test.Must(d[me].NewKernel(KernelSpec{Name: "turn", Run: func() {
			if token%2 != me {
				panic("out of turn")
			}
			token++
		}}))(t)
		c.Go("player", func() error {
			for n := int64(1); n <= turns; n++ {
				if err := signals[1-me].Wait(c, s, n-int64(1-me)); err != nil {
					return err
				}
				if err := s.Launch(k); err != nil {
					return err
				}
				if err := signals[me].Record(s); err != nil {
					return err
				}
			}
			return s.Sync(testLimit)
		})
	}
	test.Check(t, c.Wait())
	if token != 2*turns {
		t.Errorf("got %d turns", token)
	}
}
