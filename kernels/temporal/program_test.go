package temporal

import (
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

var generations = []string{"sm_80", "sm_90", "sm_100"}

// mostShared is the shared memory that a block may have.
var mostShared = map[string]int{"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10}

// programs are all kernels of a target for stars that reach one point, and those for other stencils that hold the most.
func programs(t *testing.T, target string) (all []kernels.Program) {
	seen := map[string]bool{}
	for _, s := range stencils(t) {
		for _, real := range []kernels.Real{kernels.Float32, kernels.Float64} {
			l := test.Must(domain.NewLayout(domain.Box{Hi: domain.Vec{1, 1, 1}}, s.Radius(), real.Size()))(t)
			for _, one := range shapesWith(s, real, l, target, mostShared[target], Options{}) {
				if kind := kindOf(s, one); !seen[kind+string(real)] {
					seen[kind+string(real)] = true
					all = append(all, one.program)
					if one.storesGhosts() {
						all = append(all, withGhostStores(one.program))
					}
				}
			}
			most := Options{Norms: 1, Moving: true} // what takes the most registers
			for _, one := range shapesWith(s, real, l, target, mostShared[target], most) {
				if kind := one.String(); one.name != "pass" && !seen[kind] {
					seen[kind] = true
					all = append(all, one.program)
				}
			}
			for norms := 2; norms <= MaxNorms; norms++ { // of every step
				for _, one := range shapesWith(s, real, l, target, mostShared[target], Options{Norms: norms, Deepest: norms}) {
					if kind := one.String(); one.name != "pass" && one.depth == norms && !seen[kind] {
						seen[kind] = true
						all = append(all, one.program)
					}
				}
			}
			for _, o := range []Options{{Norms: 1}, {Norms: 3}, {Norms: 1, Sums: sums.Fast}, {Moving: true}, {Norms: 1, Moving: true}} {
				of := shapesWith(s, real, l, target, 160<<10, o)
				if kind := fmt.Sprint(s.Footprint(), real, o); len(of) > 0 && !seen[kind] {
					seen[kind] = true
					all = append(all, of[len(of)-1].program)
				}
			}
		}
	}
	return all
}

// kindOf names what programs are alike in: of pass.cu the stencil, of others all.
func kindOf(s stencil.Stencil, one shape) string {
	if one.name == "pass" {
		return fmt.Sprint(s.Footprint())
	}
	return one.String()
}

func TestEveryArgumentIsMirrored(t *testing.T) {
	kerneltest.MirrorArguments(t, programs(t, "sm_90")...)
}

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs(t, "sm_90")...) }

// No level leaves the registers that it was given. A target whose compiler has no room for a kernel has others of
// that depth.
func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	testdevices.Once(t)
	c := test.Must(nvrtc.Open(testdevices.NVRTC(t)))(t)
	for k, target := range generations {
		for i, p := range programs(t, target) {
			if testdevices.Turn(i+120*k, 360, 360) { // some for each generation
				kerneltest.WithoutSpills(t, c, p.String(), p, target)
			}
		}
	}
}

func TestEveryTargetHasAllDepths(t *testing.T) {
	want := map[string][]int{}
	for _, target := range generations {
		for _, s := range stencils(t) {
			for _, real := range []kernels.Real{kernels.Float32, kernels.Float64} {
				l := test.Must(domain.NewLayout(domain.Box{Hi: domain.Vec{1, 1, 1}}, s.Radius(), real.Size()))(t)
				var depths []int
				for _, one := range shapesWith(s, real, l, target, 160<<10, Options{}) {
					depths = append(depths, one.depth)
				}
				slices.Sort(depths)
				key := fmt.Sprint(s, real)
				if depths = slices.Compact(depths); want[key] == nil {
					want[key] = depths
				} else if !slices.Equal(depths, want[key]) {
					t.Errorf("%s on %s has passes of %v steps, others of %v", key, target, depths, want[key])
				}
			}
		}
	}
}
