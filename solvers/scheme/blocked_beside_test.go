package scheme

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// An exchange that overlaps the interior of a pass gives the bits and the norms of one behind the pass, over any path,
// whichever steps are looked at.
func TestExchangesOverlapTheInterior(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	found := AddUntuned(t)
	testdevices.EachKernel(t, 3, func(t *testing.T, set *testdevices.Set) {
		r := rand.New(rand.NewPCG(3, 19))
		cases := len(testdevices.Again(3, testdevices.Numbers(12)))
		if testdevices.OnCPU(set.Devices[0]) {
			cases = 3 // each compiles several programs
		}
		*found = Overlaps{}
		ranks := 0
		for i := range cases {
			c := newOverlapCase(t, r, min(3, len(set.Devices)), false)
			c.path = []p2p.Path{p2p.Peer, p2p.Staged}[i%2]
			plain, ok := c.ready(t, set, TwoStream)
			if !ok {
				t.Fatal("the case cannot be made ready")
			}
			ranks += int(c.parts.Product())
			t.Run(c.String()+"/"+string(c.path), func(t *testing.T) {
				made, _ := c.ready(t, set, Untuned)
				made.begin(t)
				plain.begin(t)
				for _, o := range []Options{{Steps: 1}, {Steps: int64(4*c.group + 1)}, {Steps: 13, CheckEvery: 5, History: true}, {Steps: int64(c.group)}} {
					sameRuns(t, &made, &plain, o)
				}
			})
		}
		if !t.Failed() && found.Overlapped != 4*ranks { // in each run
			t.Errorf("exchanges overlapped the interior in %d runs of %d subdomains", found.Overlapped, ranks)
		}
	})
}

// newOverlapCase is cut across an axis but the first, or across the last, between walls that keep their values, or
// across a periodic axis. Subdomains are so thick that their boundary regions leave an interior, and passes over
// these stay within the grid.
func newOverlapCase(t *testing.T, r *rand.Rand, devices int, last bool) checkedCase {
	t.Helper()
	c := newCheckedCase(t, r, devices, 0.05)
	across := 1 + r.IntN(c.grid.Dims-1)
	if last {
		across = c.grid.Dims - 1
	}
	parts := 2 + r.IntN(devices-1)
	c.group, c.parts = 2+r.IntN(3), domain.Vec{1, 1, 1}
	c.parts[across] = parts
	for i := range c.faces {
		c.faces[i] = boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{r.Float64()}}
	}
	var periodic [3]bool
	periodic[across] = r.IntN(2) == 0
	var size []int
	for a := range c.grid.Dims {
		n := 5 + r.IntN(30)
		if a == across {
			n = parts*4*c.group*c.stencil.AxisRadius(a) + r.IntN(9)
		}
		size = append(size, n)
	}
	var err error
	if c.grid, err = domain.NewGrid(size, periodic); err != nil {
		t.Fatal(err)
	}
	return c
}
