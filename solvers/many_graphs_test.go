package solvers

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
)

// Graphs of many steps, after graphs of one and between norms, give what single steps
// give: also where several subdomains share a device.
func TestGraphsOfManySteps(t *testing.T) {
	const steps = 203
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{6, 7, 9}, kernels.Float64, "dnddpp")
		want, norms := expected(p, steps)
		for i, every := range []int64{1 << 30, 37, 36, 17, 5} {
			for j, path := range []p2p.Path{p2p.Staged, p2p.Peer, p2p.Direct} {
				if !testdevices.Turn(i+j, 1, 3) {
					continue
				}
				h := how{scheme: Graph, path: path, parts: domain.Vec{1, 2, 2}}
				t.Run(fmt.Sprintf("every=%d/%v", every, h), func(t *testing.T) {
					s := prepare(t, crowded(set, 4), p, h)
					res, err := s.Run(t.Context(), h.options(Options{Steps: steps, CheckEvery: every, History: true}))
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
