package scheme

import (
	"math"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// A scheme file. In this scheme, one host thread queues the work of all devices, each on one stream, and does
// not wait.

const queued Scheme = "queued"

func queuedScheme() *definition {
	return &definition{name: queued, needs: Needs{Steady: true}, make: newQueued}
}

type queuedRun struct {
	*run
	streams []*streams.Stream
}

func newQueued(r *run, _ Options) ([]worker, error) {
	q := &queuedRun{run: r}
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	for _, d := range r.subdomains {
		s, err := r.newStream(d.device, streams.Normal, "all")
		if err != nil {
			return nil, err
		}
		d.totals = d.whole
		q.streams = append(q.streams, s)
	}
	return []worker{q}, nil
}

func (q *queuedRun) queues() (all []queue) {
	for rank, s := range q.streams {
		all = append(all, queue{rank, s, s})
	}
	return all
}

func (q *queuedRun) steps(first, last int64, norms bool) error {
	for n := first; n <= last; n++ {
		for stage := range q.step.Stages {
			for _, d := range q.subdomains {
				if err := q.sweep(d, stage, n, norms && n == last); err != nil {
					return err
				}
			}
			x := q.exchange(stage, n)
			for _, d := range q.subdomains {
				if err := q.sendAll(x, q.streams[d.rank], stage, n, d.out[stage]); err != nil {
					return err
				}
			}
			for _, d := range q.subdomains {
				if err := q.receiveAll(x, q.streams[d.rank], d.in[stage]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (q *queuedRun) sweep(d *subdomain, stage int, n int64, norms bool) error {
	s := q.streams[d.rank]
	s.BeginStep(n)
	if err := q.complete(d, s, stage, n); err != nil {
		return err
	}
	if err := q.launch(s, d.sweeps(q.run, stage, n, norms).whole, n); err != nil {
		return err
	}
	if err := q.refresh(d, s, stage, n); err != nil {
		return err
	}
	if norms && stage == len(q.step.Stages)-1 {
		if err := q.queueTotals(d, s, n); err != nil {
			return err
		}
	}
	return q.giveCredit(d.in[stage], s, stage, n)
}

func (q *queuedRun) sync() error { return q.syncAll(q.streams...) }

// An additional scheme, which no other file mentions, can be chosen and tried, and is bitwise identical to
// the baseline in fields and norms, over every path.
func TestNewScheme(t *testing.T) {
	before := schemes
	schemes = append(slices.Clone(schemes), queuedScheme)
	t.Cleanup(func() { schemes = before })
	if !queued.Needs().Steady || !slices.Contains(All(), queued) || candidates()[0] != queued {
		t.Errorf("%v of %v, tried as %v", queued.Needs(), All(), candidates())
	}
	set := testdevices.Host(t, 2)
	want, norms := stepped(t, set, Baseline, p2p.Staged)
	for _, path := range p2p.Paths() {
		got, gotNorms := stepped(t, set, queued, path)
		if !slices.Equal(got, want) || gotNorms != norms {
			t.Errorf("path %s: different values than baseline, norms %v, want %v", path, gotNorms, norms)
		}
	}
}

// stepped returns a field after some steps on two devices, and its norms.
func stepped(t *testing.T, set *testdevices.Set, name Scheme, path p2p.Path) ([]float64, Norms) {
	t.Helper()
	step := newStep(t, set, 2, 16)
	u := step.Measured[0]
	succeeds(t, halo.FillPoints(u.Level(0), func(p domain.Vec) float64 { return math.Sin(float64(p[0] + 3*p[1] + 17*p[2])) }))
	x := runnerBy(t, set, step, path)
	const steps = 40
	result, err := x.Run(t.Context(), Options{Scheme: name, Steps: steps, History: true, CheckEvery: 7, Limit: testLimit})
	if err != nil || result.Scheme != name {
		t.Fatalf("%+v, %v", result, err)
	}
	values := must(halo.ReadAll[float64](u.Level(steps)))(t)
	return values, result.Norms[0]
}
