package packing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// newTestClock returns a clock of a CPU device.
func newTestClock(t *testing.T) *Clock {
	t.Helper()
	c := test.Must(NewClock(kernels.NewCompiler(kernels.Options{}), testdevices.Host(t, 1).Devices[0]))(t)
	t.Cleanup(func() { test.Report(t, c.Close()) })
	return c
}

// spy makes a job for a clock that takes d, and records that it ran.
func spy(t *testing.T, c *Clock, ran *[]Engine, e Engine, d time.Duration) *Job {
	t.Helper()
	k := test.Must(c.timer.Stream.Device().NewKernel(streams.KernelSpec{Name: "spy", Run: func() {
		*ran = append(*ran, e)
		time.Sleep(d)
	}}))(t)
	j := &Job{Engine: e}
	test.Check(t, j.launch(k, nil))
	t.Cleanup(func() { j.Close() })
	return j
}

// The jobs alternate, and their times are in their order.
func TestClockAlternates(t *testing.T) {
	var ran []Engine
	c := newTestClock(t)
	long, short := spy(t, c, &ran, Tree, 3*time.Millisecond), spy(t, c, &ran, Units, 300*time.Microsecond)
	took := medians(test.Must(c.Batches(time.Millisecond, long, short, long))(t))
	if len(took) != 3 || took[0] < 3*time.Millisecond || took[1] < 300*time.Microsecond || took[2] < 3*time.Millisecond {
		t.Errorf("%v", took)
	}
	turns := slices.Compact(ran)
	want := slices.Compact(slices.Repeat([]Engine{Tree, Units, Tree}, 1+rounds))
	if !slices.Equal(turns, want) {
		t.Errorf("order %v, want %v", turns, want)
	}
}

// The budget covers a job's batches together, however short one run is.
func TestClockBudget(t *testing.T) {
	for _, budget := range []time.Duration{7 * time.Millisecond, 70 * time.Millisecond} {
		var ran []Engine
		c := newTestClock(t)
		test.Must(c.Batches(budget, spy(t, c, &ran, Units, time.Millisecond)))(t)
		most := 2 + rounds*(1+int(budget/time.Millisecond)/rounds)
		if len(ran) > most || len(ran) < 2+2*rounds {
			t.Errorf("%v: %d runs of a millisecond, at most %d", budget, len(ran), most)
		}
	}
}

// A job far slower than another is run at most twice.
func TestCompareDropsSlowJobs(t *testing.T) {
	testdevices.Patiently(t, func(slow time.Duration) error {
		var ran []Engine
		c := newTestClock(t)
		times := test.Must(c.compare([]*Job{
			spy(t, c, &ran, Copies, slow), spy(t, c, &ran, Units, 4*time.Millisecond), spy(t, c, &ran, Tree, 5*time.Millisecond),
		}))(t)
		runs := map[Engine]int{}
		for _, e := range ran {
			runs[e]++
		}
		if len(times) != 3 || times[2].Engine != Copies || times[2].Time < slow || runs[Copies] != 2 || min(runs[Units], runs[Tree]) < 2+2*rounds {
			return fmt.Errorf("%v, runs %v", times, runs)
		}
		return nil
	})
}

// The error of a failed job names it.
func TestClockNamesFailedJob(t *testing.T) {
	broken := errors.New("out of order")
	j := &Job{Engine: Bypass, queue: func(*streams.Stream) error { return broken }}
	if _, err := newTestClock(t).Batches(time.Millisecond, j); !errors.Is(err, broken) || !strings.Contains(err.Error(), "engine bypass") {
		t.Error(err)
	}
}
