package scheme

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Passes that store into the ghosts of neighbours give the bits and the norms of exchanges behind passes, whichever
// steps are looked at, while the first GPU pauses at random.
func TestPassesThatStoreGhosts(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	found := AddUntuned(t)
	testdevices.EachKernel(t, 3, func(t *testing.T, set *testdevices.Set) {
		if set.Devices[0].GoKernels || len(set.Devices) < 2 {
			t.Skip("SKIPPED: needs two GPUs")
		}
		r := rand.New(rand.NewPCG(4, 20))
		cases := 8
		if testdevices.OnCPU(set.Devices[0]) {
			cases = len(testdevices.Again(2, testdevices.Numbers(4))) // each compiles several programs
		}
		late, err := set.Disturbed(func(d *streams.Device) []string {
			if d == set.Devices[0] {
				return []string{"PAUSES"}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		*found = Overlaps{}
		for range cases {
			c := newOverlapCase(t, r, min(4, len(set.Devices)), true)
			c.path = p2p.Direct
			plain, ok := c.ready(t, set, TwoStream)
			if !ok {
				t.Fatal("the case cannot be made ready")
			}
			t.Run(c.String(), func(t *testing.T) {
				made, _ := c.ready(t, late, Untuned)
				made.begin(t)
				plain.begin(t)
				for _, o := range []Options{{Steps: 1}, {Steps: int64(4*c.group + 1)}, {Steps: 13, CheckEvery: 5, History: true}, {Steps: int64(c.group)}, {Steps: int64(100 * c.group)}} {
					sameRuns(t, &made, &plain, o)
				}
			})
		}
		if !t.Failed() && (found.Stores == 0 || found.Stores != found.Kernels) {
			t.Errorf("passes have stored ghosts in %d runs of subdomains, where %d have kernels for it", found.Stores, found.Kernels)
		}
	})
}
