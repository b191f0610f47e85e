package solvers

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Graphs of many steps, after graphs of one and between norms, give what single steps
// give: also where several subdomains share a device.
func TestGraphsOfManySteps(t *testing.T) {
	const steps = 203
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{6, 7, 9}, kernels.Float64, "dnddpp")
		want, norms := expected(p, steps)
		for _, every := range []int64{1 << 30, 37, 36, 17, 5} {
			for _, path := range []p2p.Path{p2p.Staged, p2p.Peer, p2p.Direct} {
				h := how{scheme: Graph, path: path, parts: domain.Vec{1, 2, 2}}
				t.Run(fmt.Sprintf("every=%d/%v", every, h), func(t *testing.T) {
					s := prepare(t, crowded(set, 4), p, h)
					res, err := s.Run(t.Context(), h.options(Options{Iterations: steps, CheckEvery: every, History: true}))
					if err != nil {
						t.Fatal(err)
					}
					compare(t, p.Grid, read(t, s), want)
					checkNorms(t, res, norms, p.Grid.Points(), steps)
				})
			}
		}
	})
}

// crowded returns the set with at least so many devices, the last of which are again the
// first.
func crowded(set *testdevices.Set, n int) *testdevices.Set {
	all := *set
	for i := 0; len(all.Devices) < n; i++ {
		all.Devices = append(all.Devices[:len(all.Devices):len(all.Devices)], set.Devices[i%len(set.Devices)])
	}
	return &all
}

// Steps go in as few graphs as there can be, but one by one where they are traced.
func TestChoiceOfGraphs(t *testing.T) {
	set := testdevices.Host(t, 2)
	tracer, err := streams.NewTracer(set.Devices, streams.Window{First: 100, Last: 102})
	if err != nil {
		t.Fatal(err)
	}
	s := prepare(t, set, problem(t, []int{5, 6, 7}, kernels.Float64, "dddddd"), how{path: p2p.Peer, parts: domain.Vec{1, 1, 2}})
	r := &run{Solver: s, group: streams.NewWorkerGroup(1, testLimit)}
	made, err := newGraph(r)
	if err != nil {
		t.Fatal(err)
	}
	g := made.(*graph)
	for _, tc := range []struct {
		n, last int64
		want    *streams.Graph
		steps   int64
	}{
		{1, 1, g.one[1], 1}, {2, 2, g.one[0], 1}, {1, graphSteps - 1, g.one[1], 1},
		{1, graphSteps, g.many[1], graphSteps}, {2, 50, g.many[0], graphSteps},
		{90, 150, g.one[0], 1}, {101, 150, g.one[1], 1}, {103, 150, g.many[1], graphSteps},
	} {
		if got, steps := g.next(tc.n, tc.last); got != tc.want || steps != tc.steps {
			t.Errorf("steps %d to %d: a graph of %d", tc.n, tc.last, steps)
		}
	}
	for _, err := range []error{r.Close(), s.Close(), tracer.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
}
