package streams_test

import (
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// A third backend, unknown to all other files, runs a sweep, an exchange and every scheme that accepts user
// kernels. Unlike CPU devices, its devices have separate memories, so its links are probed with data, and kernels
// only access peers over usable links.
func TestThirdBackend(t *testing.T) {
	const name streams.Backend = "third"
	t.Cleanup(streams.Register(name, streams.Traits{Noun: "accelerator", Label: "acc", GoKernels: true, HostCores: true}))
	t.Setenv("HALOX_CACHE", t.TempDir())
	t.Setenv("HALOX_NVRTC", "/nowhere") // nothing is compiled
	session := test.Must(halo.Open(t.Context(), halo.Devices{Backend: name, Count: 3}))(t)
	t.Cleanup(func() { test.Check(t, session.Close()) })
	if got := session.String(); got != "3 accelerators (accelerator)" {
		t.Error(got)
	}
	if d := session.Devices; d[0].String() != "third 0" || !session.Links.Between(d[0], d[1]).Usable || session.Links.Between(d[0], d[1]).Kind == "memory" {
		t.Errorf("%v, linked %+v", d, session.Links.Between(d[0], d[1]))
	}
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}
	place := test.Must(session.Cut(t.Context(), halo.Cutting{Size: []int{9, 8, 13}, Periodic: []bool{true, false, true}, Fields: []halo.Spec{spec}}))(t)
	for _, path := range p2p.Paths() {
		t.Run("exchange by "+string(path), func(t *testing.T) {
			c := halotest.Case{Placement: place, Links: session.Links, Compiler: session.Compiler, Path: path, Specs: []halo.Spec{spec}}
			test.Check(t, c.Run())
		})
	}
	alone := test.Must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host, Count: 1}))(t)
	t.Cleanup(func() { test.Check(t, alone.Close()) })
	want := spread(t, alone, spec, scheme.Baseline)
	for _, s := range []scheme.Scheme{scheme.Auto, scheme.Baseline, scheme.TwoStream, scheme.Assisted, scheme.Graph} {
		t.Run("scheme "+string(s), func(t *testing.T) {
			if got := spread(t, session, spec, s); !slices.Equal(got, want) {
				t.Error("values differ from those on one CPU device")
			}
		})
	}
}

// spread returns a field after some steps that each sum up the points around each point.
func spread(t *testing.T, session *halo.Session, spec halo.Spec, s scheme.Scheme) []float64 {
	t.Helper()
	place := test.Must(session.Cut(t.Context(), halo.Cutting{Size: []int{9, 8, 13}, Periodic: []bool{true, false, true}, Fields: []halo.Spec{spec}}))(t)
	u := test.Must(scheme.NewVariable(place, spec, 2))(t)
	defer u.Close()
	for _, level := range []int64{0, 1} {
		test.Check(t, halo.FillPoints(u.Level(level), func(p domain.Vec) float64 { return float64((1 - int(level)) * (p[0] + 5*p[1] + 31*p[2])) }))
	}
	sum := func(r scheme.Region) (scheme.Launch, error) {
		to, from := kernels.ValuesOf[float64](r.Writes[0].Parts[r.Rank]), kernels.ValuesOf[float64](r.Reads[0].Parts[r.Rank])
		k, err := kernels.Points(r.Device, kernels.PointSpec[int64]{
			Name: r.Name, Arrays: []kernels.Array{r.Writes[0].Parts[r.Rank], r.Reads[0].Parts[r.Rank]}, Boxes: r.Boxes,
			Row: func(x0, x1, y, z int) {
				for x := x0; x < x1; x++ {
					i, o := from.Index(x, y, z), to.Index(x, y, z)
					to.Data[o] = from.Data[i-1] + from.Data[i+1] + from.Data[i-from.Pitch] + from.Data[i+from.Plane]
				}
			},
		})
		return scheme.Kernel(k), err
	}
	around := stencil.Footprint{{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 0, 1}}
	step := &scheme.Step{Stages: []scheme.Stage{{
		Name: "sum", Reads: []scheme.Access{u.At(0, around)}, Writes: []scheme.Access{u.At(1, nil)}, Kernels: sum,
	}}}
	o := scheme.Options{Scheme: s, Path: p2p.Auto}
	if s == scheme.Baseline {
		o.Path = p2p.Staged
	}
	x := test.Must(scheme.New(t.Context(), session, step, o))(t)
	defer x.Close()
	const steps = 7
	test.Must(x.Steps(t.Context(), steps))(t)
	return test.Must(halo.ReadAll[float64](u.Level(steps)))(t)
}
