package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepRow is some devices that share a box along its slowest axis, periodically. Along x
// it is periodic too; in three dimensions along y it is a Neumann wall at the low side, and
// its ghosts stay as they are at the high one.
type stepRow struct {
	set     *testdevices.Set
	real    kernels.Real
	ranks   []kernels.StepRank
	streams []*streams.Stream
}

func newStepRow(t *testing.T, set *testdevices.Set, devices int, size domain.Vec, dims int, real kernels.Real) *stepRow {
	t.Helper()
	r := &stepRow{set: set, real: real}
	width, slow := domain.UniformRadius(dims, 1), dims-1
	boxes := make([]domain.Box, devices)
	for i := range boxes {
		b := domain.Box{Hi: size}
		b.Lo[slow], b.Hi[slow] = size[slow]*i/devices, size[slow]*(i+1)/devices
		boxes[i] = b
	}
	for i, d := range set.Devices[:devices] {
		rank := kernels.StepRank{Device: d}
		l := must(domain.NewLayout(boxes[i], width, real.Size()))(t)
		for f := range rank.Fields {
			m := must(d.Alloc(l.Bytes()))(t)
			rank.Fields[f] = kernels.Array{Data: m.All(), Layout: l}
		}
		rank.Interior, rank.Boundary = domain.Split(boxes[i], width)
		store := func(to int, send, ghost domain.Direction) {
			rank.Stores = append(rank.Stores, kernels.GhostStore{
				Send: domain.SendBox(boxes[i], send, width), Ghost: domain.GhostBox(boxes[to], ghost, width), To: to,
			})
		}
		for _, sign := range []int{-1, 1} {
			along := domain.Direction{sign, 0, 0}
			store(i, along, along.Opposite())
			along = domain.Direction{}
			along[slow] = sign
			store((i+sign+devices)%devices, along, along.Opposite())
		}
		if dims == 3 {
			store(i, domain.Direction{0, -1, 0}, domain.Direction{0, -1, 0})
		}
		r.ranks = append(r.ranks, rank)
		r.streams = append(r.streams, must(d.NewStream(streams.Normal))(t))
	}
	for i, a := range set.Devices[:devices] {
		for k, b := range set.Devices[:devices] {
			if i != k {
				check(t, a.EnablePeer(b))
			}
		}
	}
	return r
}

// fill gives both fields of all ranks the same random numbers, ghosts included.
func (r *stepRow) fill(t *testing.T) {
	t.Helper()
	for i, rank := range r.ranks {
		bytes := rank.Fields[0].Data.Length
		host := must(rank.Device.AllocPinned(bytes))(t)
		random := rand.New(rand.NewPCG(uint64(i), 7))
		for n := range bytes / int64(r.real.Size()) {
			if r.real == kernels.Float32 {
				streams.View[float32](host.Bytes())[n] = random.Float32()
			} else {
				streams.View[float64](host.Bytes())[n] = random.Float64()
			}
		}
		for _, f := range rank.Fields {
			check(t, r.streams[i].Copy(f.Data, host.All()))
		}
		check(t, r.streams[i].Sync(limit))
		check(t, host.Close())
	}
}

// run makes steps, in launches of so many each, and returns the rows that the ranks own
// after the last, as they lie in memory. Where steps take norms on their way, the last launch
// does, and they are compared with those of the fields.
func (r *stepRow) run(t *testing.T, kind kernels.StepKind, s stencil.Stencil, launches ...int64) (rows []string) {
	t.Helper()
	r.fill(t)
	all := must(r.set.Compiler.Steppers(kind, s, r.real, r.ranks, limit))(t)
	if kind == kernels.FusedStep {
		launches = slices.Repeat([]int64{1}, int(launches[0]))
	}
	done := int64(0)
	for n, steps := range launches {
		done += steps
		for i, st := range all {
			if n == len(launches)-1 && st.Norms(0) != nil {
				check(t, st.QueueMeasured(r.streams[i], steps))
				check(t, st.Norms(int(done%2)).Queue(r.streams[i]))
			} else {
				check(t, st.Queue(r.streams[i], steps))
			}
		}
	}
	for i, st := range all {
		check(t, r.streams[i].Sync(limit))
		check(t, st.Err())
	}
	for i, st := range all {
		if norms := st.Norms(int(done % 2)); norms != nil {
			r.compareNorms(t, i, norms.Result(), done)
		}
		check(t, st.Close())
		rows = append(rows, r.rows(t, i, r.ranks[i].Fields[done%2])...)
	}
	return rows
}

// compareNorms compares norms with those of the fields after so many steps.
func (r *stepRow) compareNorms(t *testing.T, i int, got kernels.Norms, done int64) {
	t.Helper()
	rank := r.ranks[i]
	dst, src := rank.Fields[done%2], rank.Fields[1-done%2]
	fields := must(must(r.set.Compiler.NewNormReducer(rank.Device, r.real))(t).Norms(dst, src, dst.Layout.Owned))(t)
	check(t, fields.Queue(r.streams[i]))
	check(t, r.streams[i].Sync(limit))
	want := fields.Result()
	if got.MaxChange != want.MaxChange || got.Max != want.Max || !near(got.SumChange2, want.SumChange2) || !near(got.Sum2, want.Sum2) {
		t.Errorf("norms on the way of device %v: %+v, those of the fields %+v", rank.Device, got, want)
	}
	check(t, fields.Close())
}

// rows returns the bytes of the rows that a rank owns.
func (r *stepRow) rows(t *testing.T, i int, a kernels.Array) (rows []string) {
	t.Helper()
	host := must(r.ranks[i].Device.AllocPinned(a.Data.Length))(t)
	check(t, r.streams[i].Copy(host.All(), a.Data))
	check(t, r.streams[i].Sync(limit))
	owned, size := a.Layout.Owned, int64(r.real.Size())
	for z := owned.Lo[2]; z < owned.Hi[2]; z++ {
		for y := owned.Lo[1]; y < owned.Hi[1]; y++ {
			o := a.Layout.Offset(domain.Vec{owned.Lo[0], y, z}) * size
			rows = append(rows, string(host.Bytes()[o:o+int64(owned.Size()[0])*size]))
		}
	}
	check(t, host.Close())
	return rows
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// All kinds of steps give the same bits, in boxes that take one tile of shared memory or
// many, none of equal sizes, in launches of any number of steps.
func TestStepKindsAgree(t *testing.T) {
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, size := range []domain.Vec{{5, 7, 1}, {301, 97, 1}, {1030, 203, 1}, {6, 5, 7}, {33, 20, 2}, {33, 47, 29}, {70, 101, 64}, {100, 90, 131}, {40, 3000, 1}} {
			slow := size[2]
			if slow == 1 {
				slow = size[1]
			}
			for devices := 1; devices <= min(slow, len(set.Devices)); devices++ {
				for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
					if testdevices.OnCPU(set.Devices[0]) && (size.Product() > 1<<16 || devices%2 == 0 || (devices > 1) != (real == kernels.Float64)) {
						continue // a few cases, which compile tiles of all kinds
					}
					if set.Devices[0].Backend == streams.Host && size.Product() > 1<<18 && (devices < 4 || real == kernels.Float32) {
						continue // of large boxes one case, which takes seconds under the race detector
					}
					stepKindsAgree(t, set, devices, size, real)
				}
			}
		}
	})
}

// So they do in boxes of which the shared memory of a GPU holds a part (see TestTilings).
func TestStepKindsAgreeOnParts(t *testing.T) {
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		if set.Devices[0].Backend == streams.Host {
			t.Skip("SKIPPED: host devices have no shared memory")
		}
		if testdevices.OnCPU(set.Devices[0]) { // which have less of it
			stepKindsAgree(t, set, 2, domain.Vec{65, 67, 31}, kernels.Float64)
			stepKindsAgree(t, set, 2, domain.Vec{515, 90, 1}, kernels.Float32)
			return
		}
		for devices := 1; devices <= len(set.Devices); devices++ {
			for _, size := range []domain.Vec{{127, 253, 123 * devices}, {1030, 4099 * devices, 1}} {
				stepKindsAgree(t, set, devices, size, kernels.Float64)
			}
			for _, size := range []domain.Vec{{253, 255, 121 * devices}, {2050, 4101 * devices, 1}} {
				stepKindsAgree(t, set, devices, size, kernels.Float32)
			}
		}
	})
}

func stepKindsAgree(t *testing.T, set *testdevices.Set, devices int, size domain.Vec, real kernels.Real) {
	t.Helper()
	dims, star := 3, stencil.StarWeights{Dims: 3, Centre: 0.4, Axis: [3]float64{0.11, 0.09, 0.1}}
	if size[2] == 1 {
		dims, star = 2, stencil.StarWeights{Dims: 2, Equal: true, Centre: 0.2, Axis: [3]float64{0.2, 0.2}}
	}
	t.Run(fmt.Sprintf("size=%v/devices=%d/type=%s", size, devices, real), func(t *testing.T) {
		r := newStepRow(t, set, devices, size, dims, real)
		want := r.run(t, kernels.FusedStep, star.Stencil(), 11)
		for _, kind := range []kernels.StepKind{kernels.ResidentSteps, kernels.StreamedSteps} {
			for _, launches := range [][]int64{{1, 2, 1, 1, 6}, {9, 1, 1}} {
				got := r.run(t, kind, star.Stencil(), launches...)
				for row := range want {
					if got[row] != want[row] {
						t.Fatalf("%s, launches of %d: row %d has other bits than by fused steps", kind, launches, row)
					}
				}
			}
		}
	})
}
