package scheme

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
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

// The same holds for steps that end in a stage that alone writes what is sent, where one device or the other is late in
// every stage: a store of the fast one must not come before the slow one has swept the ghosts.
func TestGroupsOfLateDevices(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: needs two devices")
		}
		seeds := []int{1} // three stages in groups of three: stores came too early there
		for _, seed := range append(seeds, testdevices.Some(2, []int{0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})...) {
			s := newRelayStep(t, rand.New(rand.NewPCG(uint64(seed), 5)))
			late, err := set.Disturbed(func(d *streams.Device) []string {
				if d == set.Devices[seed%2] {
					return []string{"LATE=20000"} // ns
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			const steps = 9
			ref := newReference(s)
			for n := range int64(steps) {
				ref.step(n + 1)
			}
			for _, name := range []Scheme{TwoStream, Fused, Resident} {
				t.Run(fmt.Sprintf("seed=%d/group=%d/stages=%d/scheme=%s", seed, s.group, len(s.stages), name), func(t *testing.T) {
					s.check(t, late, ref, domain.Vec{2, 1, 1}, p2p.Direct, Options{Scheme: name}, steps, true)
				})
			}
		}
	})
}

// newRelayStep returns a step of which some stages read around points, and each hands its variable to the next one; the
// last writes the first variable, which alone is exchanged.
func newRelayStep(t *testing.T, r *rand.Rand) *randomStep {
	s := newRandomStep(t, r)
	s.group, s.variables, s.stages = 2+r.IntN(2), nil, nil
	s.grid.Size[0] += 8
	stages := 1 + r.IntN(4)
	for i := range stages {
		v := s.newVariable(r)
		v.levels, v.width = 1, domain.UniformRadius(s.grid.Dims, 1)
		if i == 0 {
			v.levels = 1 + r.IntN(2)
		}
		s.variables = append(s.variables, v)
	}
	around := r.IntN(stages)
	for i := range stages {
		read := randomAccess{variable: i, level: 1}
		if i == 0 {
			read.level = 0
		}
		if i == around || r.IntN(4) == 0 {
			for range 1 + r.IntN(3) {
				read.around = append(read.around, s.offset(r, s.variables[i].width))
			}
			read.around = append(read.around, domain.Vec{-1}, domain.Vec{1})
		}
		if stages == 1 && s.variables[0].levels == 1 {
			s.variables[0].levels = 2 // it reads around points what it writes
		}
		s.stages = append(s.stages, randomStage{
			reads: []randomAccess{read}, writes: []randomAccess{{variable: (i + 1) % stages, level: 1}},
		})
	}
	return s
}

func eachRandomGroup(t *testing.T, set *testdevices.Set, points bool) {
	const steps = 7
	made := map[Scheme]int{}
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
			for _, name := range []Scheme{Baseline, TwoStream, Assisted, Fused, Resident} {
				for _, path := range []p2p.Path{p2p.Staged, p2p.Direct, p2p.Peer} {
					if name.Needs().CheckPath(name, path) != nil || stores(name) && !points {
						continue
					}
					if turn++; !stores(name) && !testdevices.Turn(turn, 1, 3) { // few steps suit those that store
						continue
					}
					t.Run(fmt.Sprintf("seed=%d/group=%d/scheme=%s/path=%s/parts=%dx%dx%d", seed, s.group, name, path, parts[0], parts[1], parts[2]), func(t *testing.T) {
						s.check(t, set, ref, parts, path, Options{Scheme: name}, steps, points)
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
func stores(name Scheme) bool { return name == Fused || name == Resident }
