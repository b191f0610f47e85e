package scheme

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
)

// doubled is a point function whose Go counterpart is so many units in the last place above its source.
func doubled(element halo.Element, up int) *sweep.Point {
	return &sweep.Point{
		Name: "doubled", Dims: 2, CUDA: "template <typename P> __device__ __forceinline__ void doubled(P &p) { p.set(u, 2 * p.at(u)); }",
		Go: func(r *sweep.Row) {
			if element == halo.Float32 {
				u := sweep.At[float32](r, "u", 0, 0, 0)
				for i := range u {
					u[i] = math.Float32frombits(math.Float32bits(2*u[i]) + uint32(up))
				}
				return
			}
			u := sweep.At[float64](r, "u", 0, 0, 0)
			for i := range u {
				u[i] = math.Float64frombits(math.Float64bits(2*u[i]) + uint64(up))
			}
		},
	}
}

// The sources of all stages are compared with their Go counterparts, and reals may differ by as many units in the last
// place as is said.
func TestCheckPoints(t *testing.T) {
	testdevices.Once(t)
	set := testdevices.Host(t, 1)
	place := placed(t, set.Devices, []int{8, 8}, [3]bool{}, domain.Vec{1, 1, 1})
	for _, c := range []struct {
		element halo.Element
		ulps    uint64
		says    string
	}{
		{halo.Float64, 2, `stage 2 "far"`}, {halo.Float64, 3, ""}, {halo.Float32, 2, ": 3 ulps apart"},
	} {
		u := newVariable(t, place, halo.Spec{Name: "u", Element: c.element}, 1)
		stage := func(name string, up int) Stage {
			return Stage{Name: name, Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(1, nil)}, Point: doubled(c.element, up)}
		}
		kernels := Stage{Writes: []Access{u.At(1, nil)}, Kernels: func(Region) (Launch, error) { return nil, nil }}
		step := &Step{Stages: []Stage{stage("near", 2), kernels, stage("far", 3)}, Measured: []*Variable{u}}
		err := step.CheckPoints(set.Compiler, set.Devices[0], c.ulps)
		if errors.Is(err, sweep.ErrNoCompiler) {
			t.Skip("SKIPPED: ", err)
		}
		if errors.Is(err, sweep.ErrDiffer) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s within %d: %v", c.element, c.ulps, err)
		}
	}
	step := &Step{Stages: reducedAlone(newStep(t, set, 1, 16).Measured[0])}
	succeeds(t, step.CheckPoints(set.Compiler, set.Devices[0], 0))
	step.Stages[0].Point.CUDA = strings.Replace(step.Stages[0].Point.CUDA, "p.at(u)", "p.at(next)", 1)
	wants(t, "a read of what is only written", step.CheckPoints(set.Compiler, set.Devices[0], 0), nil,
		`stage 0 "count": sweep: count.cu:1: at(next, ...) of an access that is only written`)
	if err := newStep(t, set, 1, 16).CheckPoints(set.Compiler, nil, 0); err == nil {
		t.Error("a check without a device")
	}
}
