package kernels_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepPair is two devices that share a square, the lower half and the upper.
type stepPair struct {
	ranks   []kernels.StepRank
	streams []*streams.Stream
}

func newStepPair(t *testing.T, s *testdevices.Set, size int) *stepPair {
	t.Helper()
	p := &stepPair{}
	for i := range 2 {
		d, low := s.Devices[i], size/2*i
		box := domain.Box{Lo: domain.Vec{0, low, 0}, Hi: domain.Vec{size, low + size/2, 1}}
		rank := kernels.StepRank{Device: d}
		for f := range rank.Fields {
			l := must(domain.NewLayout(box, domain.UniformRadius(2, 1), 8))(t)
			m := must(d.Alloc(l.Bytes()))(t)
			rank.Fields[f] = kernels.Array{Data: m.All(), Layout: l}
		}
		towards, width := domain.Direction{0, 1 - 2*i, 0}, domain.UniformRadius(2, 1)
		layers := domain.Radius{}
		if i == 0 {
			layers.Plus[1] = 1
		} else {
			layers.Minus[1] = 1
		}
		rank.Interior, rank.Boundary = domain.Split(box, layers)
		send := domain.SendBox(box, towards, width)
		rank.Stores = []kernels.GhostStore{{Send: send, Ghost: send, To: 1 - i}}
		p.ranks = append(p.ranks, rank)
		p.streams = append(p.streams, must(d.NewStream(streams.Normal))(t))
	}
	return p
}

// steppers makes the ranks ready; peers can reach each other.
func (p *stepPair) steppers(t *testing.T, s *testdevices.Set, kind kernels.StepKind, limit time.Duration) []*kernels.Stepper {
	t.Helper()
	for i := range 2 {
		if err := s.Devices[i].EnablePeer(s.Devices[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	all := must(s.Compiler.Steppers(kind, stencil.StarWeights{Dims: 2, Equal: true, Axis: [3]float64{0.25, 0.25}}.Stencil(), kernels.Float64, p.ranks, limit))(t)
	t.Cleanup(func() {
		for _, one := range all {
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return all
}

// A device whose neighbour makes no step gives up at its limit and says whom it waited
// for, however many steps it was to make; so does every later step.
func TestAStepThatIsWaitedForInVain(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		if len(s.Devices) < 2 {
			t.Skip("SKIPPED: needs two devices")
		}
		for kind, steps := range map[kernels.StepKind]int64{kernels.FusedStep: 1, kernels.ResidentSteps: 1000} {
			t.Run(string(kind), func(t *testing.T) {
				p := newStepPair(t, s, 64)
				all := p.steppers(t, s, kind, 200*time.Millisecond)
				start := time.Now()
				for range 2 { // the first step needs nobody, if it is alone
					if err := all[0].Queue(p.streams[0], steps); err != nil {
						t.Fatal(err)
					}
				}
				if err := p.streams[0].Sync(limit); err != nil {
					t.Fatal(err)
				}
				want := fmt.Sprintf("device %v waited in vain for its neighbour on device %v", s.Devices[0], s.Devices[1])
				if err := all[0].Err(); err == nil || !strings.Contains(err.Error(), want) || time.Since(start) > 5*time.Second {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				if all[0].Queue(p.streams[0], steps) == nil {
					t.Error("it steps on")
				}
				if err := all[1].Err(); err != nil {
					t.Errorf("the other rank: %v", err)
				}
			})
		}
	})
}

func TestStepRefusals(t *testing.T) {
	s := testdevices.Host(t, 2)
	star := stencil.StarWeights{Dims: 2, Equal: true}.Stencil()
	for name, change := range map[string]func(p *stepPair) (kernels.StepKind, kernels.Real){
		"another kind":  func(*stepPair) (kernels.StepKind, kernels.Real) { return "jump", kernels.Float64 },
		"whole numbers": func(*stepPair) (kernels.StepKind, kernels.Real) { return kernels.FusedStep, "int32" },
		"two ranks on a device": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			p.ranks[1].Device = p.ranks[0].Device
			return kernels.FusedStep, kernels.Float64
		},
		"a store to nobody": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			p.ranks[1].Stores[0].To = 2
			return kernels.FusedStep, kernels.Float64
		},
		"a store of another size": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			p.ranks[1].Stores[0].Ghost.Hi[0]--
			return kernels.FusedStep, kernels.Float64
		},
		"a store beyond the field": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			g := &p.ranks[1].Stores[0]
			g.Ghost = g.Ghost.Shift(domain.Vec{0, 3, 0})
			return kernels.FusedStep, kernels.Float64
		},
		"an interior too large": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			p.ranks[0].Interior.Hi[0] += 2
			return kernels.FusedStep, kernels.Float64
		},
		"more stores than directions": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			for range 4 {
				p.ranks[0].Stores = append(p.ranks[0].Stores, p.ranks[0].Stores[0])
			}
			return kernels.FusedStep, kernels.Float64
		},
		"a store of points that no slab sweeps": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			g := &p.ranks[0].Stores[0]
			g.Send = g.Send.Shift(domain.Vec{0, -1, 0})
			return kernels.FusedStep, kernels.Float64
		},
		"a store to ghosts that the interior reads": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			e := &p.ranks[1]
			e.Stores, e.Interior, e.Boundary = nil, e.Fields[0].Layout.Owned, nil
			return kernels.FusedStep, kernels.Float64
		},
		"a wall beyond the field": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			p.ranks[0].Stores[0].Odd = []domain.Vec{{0, 2, 0}}
			return kernels.FusedStep, kernels.Float64
		},
		"a shape of its own": func(p *stepPair) (kernels.StepKind, kernels.Real) {
			p.ranks[0].Shape = kernels.Shape{Block: [2]int{100, 1}, Layers: 4}
			return kernels.FusedStep, kernels.Float64
		},
	} {
		p := newStepPair(t, s, 8)
		kind, real := change(p)
		if _, err := s.Compiler.Steppers(kind, star, real, p.ranks, limit); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	p := newStepPair(t, s, 8)
	all := p.steppers(t, s, kernels.FusedStep, limit)
	if all[0].Queue(p.streams[0], 2) == nil || all[0].Queue(p.streams[0], 0) == nil {
		t.Error("a launch of a fused step makes another number of them")
	}
	if all[0].Norms(0) != nil || all[0].QueueMeasured(p.streams[0], 1) == nil {
		t.Error("a host device takes norms on the way")
	}
}
