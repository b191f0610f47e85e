package scheme_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// Steps of any stages, with several of them between two exchanges, give the bits of plain loops on one array, by every
// scheme that makes groups, path and cut.
func TestGroupsGiveOneAnswer(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	t.Run("stages=kernels", func(t *testing.T) { eachRandomGroup(t, testdevices.Host(t, 4), false) })
	t.Run("stages=points", func(t *testing.T) {
		testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) { eachRandomGroup(t, set, true) })
	})
}

func eachRandomGroup(t *testing.T, set *testdevices.Set, points bool) {
	const steps = 7
	made := map[scheme.Scheme]int{}
	seeds := testdevices.Again(5, testdevices.Some(14, testdevices.Numbers(40)))
	for _, seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		s := newRandomStep(t, r)
		s.group = 2 + r.IntN(3)
		for a := range s.grid.Dims {
			s.grid.Size[a] += r.IntN(10)
		}
		ref := newReference(s)
		for n := range int64(steps) {
			ref.step(n + 1)
		}
		turn := seed
		for _, parts := range []domain.Vec{{1, 1, 1}, {2, 1, 1}, {1, 3, 1}, {2, 2, 1}, {1, 1, 2}} {
			if parts[2] > s.grid.Size[2] || int(parts.Product()) > len(set.Devices) {
				continue
			}
			for _, name := range []scheme.Scheme{scheme.Baseline, scheme.TwoStream, scheme.Assisted, scheme.Fused, scheme.Resident} {
				for _, path := range []p2p.Path{p2p.Staged, p2p.Direct, p2p.Peer} {
					if needs, _ := scheme.NeedsOf(name); needs.CheckPath(name, path) != nil || stores(name) && !points {
						continue
					}
					if turn++; !stores(name) && !testdevices.Turn(turn, 1, 3) { // few steps suit those that store
						continue
					}
					t.Run(fmt.Sprintf("seed=%d/group=%d/scheme=%s/path=%s/parts=%dx%dx%d", seed, s.group, name, path, parts[0], parts[1], parts[2]), func(t *testing.T) {
						s.check(t, set, ref, parts, path, scheme.Options{Scheme: name}, steps, points)
						made[name]++
					})
				}
			}
		}
	}
	least := len(seeds) / 4 // of one device there is one cut, and schemes that store have one path
	for name, n := range made {
		if n < least {
			t.Errorf("%d cases were made by %s", n, name)
		}
	}
}

// stores reports whether the kernels of a scheme store what others need.
func stores(name scheme.Scheme) bool { return name == scheme.Fused || name == scheme.Resident }
