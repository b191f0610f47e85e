package streams

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestWorkerGroupStopsAtTheFirstError(t *testing.T) {
	c := NewWorkerGroup(2, time.Minute)
	var never Counter
	cause := errors.New("cause")
	c.Go("waits", func() error { return c.Await(&never, 1) })
	c.Go("fails", func() error { return cause })
	if err := c.Wait(); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestWorkerGroupSaysWhomItWaitedFor(t *testing.T) {
	c := NewWorkerGroup(1, 30*time.Millisecond)
	lazy := Counter{Name: "device 3"}
	lazy.Set(4)
	c.Go("waits", func() error { return c.Await(&lazy, 5) })
	if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "device 3 to get to 5; it is at 4") {
		t.Errorf("got %v", err)
	}
}

// One that is stuck does not keep the others' error from being told.
func TestWorkerGroupLeavesTheStuckBehind(t *testing.T) {
	c := NewWorkerGroup(2, 50*time.Millisecond)
	release := make(chan struct{})
	defer close(release)
	cause := errors.New("cause")
	c.Go("stuck worker", func() error { <-release; return nil })
	c.Go("fails", func() error { return cause })
	if err := c.Wait(); !errors.Is(err, cause) || !strings.Contains(err.Error(), "stuck worker") {
		t.Errorf("got %v", err)
	}
}

func TestWorkerGroupReportsPanics(t *testing.T) {
	c := NewWorkerGroup(1, time.Minute)
	c.Go("nervous", func() error { panic("no") })
	if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "nervous") || !strings.Contains(err.Error(), "worker_group_test.go") {
		t.Errorf("got %v", err)
	}
}

// Two workers that feed a stream each pass a token back and forth.
func TestSignalsOrderStreamsOfTwoWorkers(t *testing.T) {
	const turns = 200
	d := hostDevices(t, 2)
	c := NewWorkerGroup(2, testLimit)
	var signals [2]*Signal
	for i := range signals {
		signals[i] = must[*Signal](t)(d[i].NewSignal("device %d", i))
	}
	token := 0
	for me := range 2 {
		s := must[*Stream](t)(d[me].NewStream(Normal))
		k := must[*Kernel](t)(d[me].NewKernel(KernelSpec{Name: "turn", Run: func() {
			if token%2 != me {
				panic("out of turn")
			}
			token++
		}}))
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
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if token != 2*turns {
		t.Errorf("%d turns", token)
	}
}
