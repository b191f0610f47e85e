package scheme

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// An exchange that overlaps the interior of a pass gives the bits and the norms of one after the pass, over any path,
// whichever steps are checked.
func TestExchangesOverlapTheInterior(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	found := addUntuned(t)
	testdevices.EachKernel(t, 3, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: one device exchanges nothing with others")
		}
		cases := len(testdevices.Again(3, testdevices.Numbers(12)))
		if testdevices.OnCPU(set.Devices[0]) {
			cases = 3 // each compiles several programs
		}
		*found = overlaps{}
		r, ranks, runs := rand.New(rand.NewPCG(3, 19)), 0, 0
		for i := range cases {
			c := newOverlapCase(t, r, min(3, len(set.Devices)), false)
			c.path = []p2p.Path{p2p.Peer, p2p.Staged}[i%2]
			ranks += int(c.parts.Product())
			runs = sameInGroups(t, set, set, c)
		}
		if !t.Failed() && found.overlapped != runs*ranks {
			t.Errorf("exchanges overlapped the interior in %d runs of %d subdomains", found.overlapped, ranks)
		}
	})
}

// Passes that store into the ghosts of neighbours give the bits and the norms of exchanges after passes, whichever
// steps are checked, while the first GPU pauses at random.
func TestPassesThatStoreGhosts(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	found := addUntuned(t)
	testdevices.EachKernel(t, 3, func(t *testing.T, set *testdevices.Set) {
		if set.Devices[0].GoKernels || len(set.Devices) < 2 {
			t.Skip("SKIPPED: needs two GPUs")
		}
		cases := 8
		if testdevices.OnCPU(set.Devices[0]) {
			cases = len(testdevices.Again(2, testdevices.Numbers(4))) // each compiles several programs
		}
		late := must(set.Disturbed(func(d *streams.Device) []string {
			if d == set.Devices[0] {
				return []string{"PAUSES"}
			}
			return nil
		}))(t)
		*found = overlaps{}
		r := rand.New(rand.NewPCG(4, 20))
		for range cases {
			c := newOverlapCase(t, r, min(4, len(set.Devices)), true)
			c.path = p2p.Direct
			sameInGroups(t, set, late, c, Options{Steps: int64(100 * c.group)})
		}
		if !t.Failed() && (found.Stores == 0 || found.Stores != found.Kernels) {
			t.Errorf("passes have stored ghosts in %d runs of subdomains, where %d have kernels for it", found.Stores, found.Kernels)
		}
	})
}

// sameInGroups compares runs of blocked without tuning on some devices with those of TwoStream on others, and returns how
// many there are.
func sameInGroups(t *testing.T, set, devices *testdevices.Set, c checkedCase, more ...Options) (runs int) {
	t.Helper()
	plain, ok := c.ready(t, set, TwoStream)
	if !ok {
		t.Fatal("the case cannot be made ready")
	}
	group := int64(c.group)
	all := append([]Options{
		{Steps: 1}, {Steps: 4*group + 1}, {Steps: 13, CheckEvery: 5, History: true}, {Steps: group},
	}, more...)
	t.Run(c.String()+"/"+string(c.path), func(t *testing.T) {
		made, _ := c.ready(t, devices, untuned)
		made.begin(t)
		plain.begin(t)
		for _, o := range all {
			sameRuns(t, &made, &plain, o)
		}
	})
	return len(all)
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
	c.grid = must(domain.NewGrid(size, periodic))(t)
	return c
}
