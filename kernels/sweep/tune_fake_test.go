//go:build linux && cgo

package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// fakeCube returns a GPU of a fake driver with a cube in two arrays, and the plan of a 7-point star from one to
// the other.
func fakeCube(t *testing.T) (*streams.Device, domain.Box, Arrays, *plan) {
	t.Helper()
	platform := test.Must(streams.CUDAPlatform(cudafake.Build(t, cudafake.Devices(1))))(t)
	devices := test.Must(platform.Open())(t)
	t.Cleanup(func() { streams.CloseAll(devices) })
	point, accesses, err := Linear(stencil.StarWeights{Dims: 3, Equal: true}.Stencil(), domain.Float64)
	test.Check(t, err)
	accesses[1].Before = accesses[0].Name
	box := domain.Box{Hi: domain.Vec{64, 64, 64}}
	var arrays Arrays
	for range 2 {
		l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), 8))(t)
		arrays = append(arrays, []kernels.Array{{Data: test.Must(devices[0].Alloc(l.Bytes()))(t).All(), Layout: l}})
	}
	return devices[0], box, arrays, test.Must(newPlan(point, accesses))(t)
}

// Tune tries shapes within its budget and remembers the result, in the compiler and on disk; a damaged file is
// measured again.
func TestTune(t *testing.T) {
	device, box, arrays, n := fakeCube(t)
	classes, strides := classesOf(slices.Concat(arrays...))
	sizes := map[string]int{}
	for _, name := range (&Sweeper{plan: n, form: n.form()}).kernelNames() {
		sizes[name] = n.sweepBytes(len(strides))
	}
	module := test.Must(device.LoadModule(cudafake.Image(sizes)))(t)
	functions := map[string]function{}
	for name := range sizes {
		functions[name] = test.Must(module.Function(name))(t)
	}
	dir := filepath.Join(t.TempDir(), "cache")
	compiler := func() *kernels.Compiler { return kernels.NewCompiler(kernels.Options{Cache: dir}) }
	shapes := n.form().shapes
	tune := func(c *kernels.Compiler, budget time.Duration) Tuning {
		t.Helper()
		s := &Sweeper{compiler: c, device: device, plan: n, form: n.form(), shape: shapes[0], programs: map[string]map[string]function{}}
		s.programs[fmt.Sprint(classes)] = functions
		got := test.Must(s.Tune(arrays, box, budget))(t)
		if got.Shape != s.shape || !slices.Contains(shapes, got.Shape) {
			t.Errorf("got %v, but uses %v", got, s.shape)
		}
		return got
	}
	first := compiler()
	if got := tune(first, time.Minute); got.Tried != len(shapes) || got.Took <= 0 {
		t.Errorf("got %d shapes of %d: %+v", got.Tried, len(shapes), got)
	}
	if got := tune(first, time.Minute); got.Tried != 0 {
		t.Errorf("second call: must not measure, got %+v", got)
	}
	if got := tune(compiler(), time.Minute); got.Tried != 0 || got.Sweep == 0 {
		t.Errorf("new compiler: must read the cache, got %+v", got)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "kernels", "shape-*.json"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	kept := test.Must(os.ReadFile(files[0]))(t)
	damaged := func(from, to string) string { return regexp.MustCompile(from).ReplaceAllString(string(kept), to) }
	for _, text := range []string{
		"", damaged(`"sweep_ns":`, `"sweep_ns":-`), damaged(`"default_ns":\d+`, `"default_ns":0`),
		damaged(`"shape":[^}]*}`, `"shape":{}`),
	} {
		if text == string(kept) {
			t.Fatal("the file must change")
		}
		test.Check(t, os.WriteFile(files[0], []byte(text), 0o644))
		if got := tune(compiler(), 0); got.Tried != 1 || got.Shape != shapes[0] {
			t.Errorf("after %q, without time: got %+v", text, got)
		}
	}
	box.Hi[2] = 56 // rounds to the same power of two
	if got := tune(first, time.Minute); got.Tried != len(shapes) {
		t.Errorf("must not use the result of another size, got %+v", got)
	}
}

// The memory of totals does not depend on the shape of sweeps, so it is known before tuning.
func TestTotalsTakeTheSameInAllShapes(t *testing.T) {
	device, box, arrays, n := fakeCube(t)
	interior, boundary := domain.Split(box, domain.UniformRadius(3, 1))
	portions := []Portion{{"boundary", boundary}, {"interior", []domain.Box{interior}}}
	taken, blocks := map[int64]bool{}, map[int64]bool{}
	for _, shape := range n.form().shapes {
		s := &Sweeper{device: device, plan: n, form: n.form(), shape: shape}
		r := StageRank{Sweeper: s, Arrays: arrays, Boundary: boundary, Interior: interior}
		var slabs []slab
		for _, b := range boundary {
			slabs = append(slabs, slab{box: b})
		}
		test.Check(t, r.share(slabs))
		k := test.Must(planStage(r, slabs, 6, true))(t)
		slots, most := s.maxSlots(arrays, portions), maxStageBlocks(r, slabs, 6)
		taken[slots], taken[-most], blocks[k.blocks()] = true, true, true
		if most < k.blocks() {
			t.Errorf("shape %+v: got %d blocks, must be at most %d", shape, k.blocks(), most)
		}
		for _, p := range portions {
			k := n.newLaunchPlan(s.form, slices.Concat(arrays...), p.Boxes, s.form.measuredShape(shape))
			slots -= k.blocks()
		}
		if slots < 0 {
			t.Errorf("shape %+v: got %d slots too few", shape, -slots)
		}
	}
	if len(taken) != 2 || len(blocks) < 2 {
		t.Errorf("memory for %v, blocks %v", taken, blocks)
	}
}
