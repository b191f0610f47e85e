package ranks_test

import (
	"context"
	"testing"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// A run on host devices allocates nothing: all that its ranks need was made with the world.
func TestRunAllocatesNothing(t *testing.T) {
	s := testdevices.Host(t, 2)
	const n = 3
	var channel ranks.Channel
	var m []*streams.Memory
	p := ranks.Program{Name: "runs", Source: source(), Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
		me, all := r.Index(ranks.All), r.Size(ranks.All)
		mine := m[r.Device()].Bytes()[32*r.Index(ranks.Device):][:32]
		w := r.CreateWindow(ranks.All, mine[:8])
		r.StartTimer()
		for range *ranks.Data[int64](r) {
			r.PutNotify(w, (me+1)%all, 0, mine[8:16], 1)
			r.WaitNotifications(1, 1)
			if me == 0 {
				r.Send(channel, mine[8:16])
			} else if me == all-1 {
				r.Receive(channel, mine[16:])
			}
		}
		r.StopTimer()
		r.FreeWindow(w)
	}}
	w := opened(t, s, p, ranks.Options{Ranks: n})
	m = memory(t, w, 32*n)
	var err error
	if channel, err = w.NewChannel(0, 2*n-1, 2, 16); err != nil {
		t.Fatal(err)
	}
	for _, rounds := range []int64{1, 100} {
		data := []int64{rounds, rounds}
		each := testing.AllocsPerRun(20, func() {
			test.Check(t, ranks.Run(context.Background(), w, data))
		})
		if each > 1 { // goroutines that the scheduler has none of left
			t.Errorf("a run of %d rounds allocates %v times", rounds, each)
		}
		if took := w.Timings(1); len(took) != 1 || took[0] <= 0 {
			t.Errorf("it took %v", took)
		}
	}
}
