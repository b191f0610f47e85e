package sweep

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// A launch uses the moment and the parameters as they were when it was queued.
func TestLaunchesUseTheLastSettings(t *testing.T) {
	type parameters struct{ Add float64 }
	s := sample{
		Point{Name: "add", Dims: 2, CUDA: sourceOf("add"), Parameters: parameters{1}, Go: func(r *Row) {
			for i := range r.N {
				At[float64](r, "sum", 0, 0, 0)[i] += Parameters[parameters](r).Add + float64(1000*r.Time())
			}
		}},
		[]Access{{Name: "sum", Element: "float64", Footprint: stencil.Point(), Write: true}},
	}
	b := newBed(t, s, domain.Box{Hi: domain.Vec{3, 2, 1}})
	sweeper := test.Must(New(b.set.Compiler, b.set.Devices[0], s.point, s.accesses))(t)
	launch := test.Must(sweeper.Sweep("add", b.arrays, b.owned))(t)
	want := 0.0
	queue := func(step int64, add float64) {
		test.Check(t, launch.Set(Moment{Step: step, Start: 1, Length: 0.5}, func(_ Moment, p any) error {
			p.(*parameters).Add += add
			return nil
		}))
		test.Check(t, b.stream.Launch(launch.Kernel))
		want += 1 + add + 1000*(1+0.5*float64(step-1))
	}
	for step := range int64(2000) {
		queue(step, float64(step%7))
	}
	give := func(m Moment, p any) error { p.(*parameters).Add = m.Time(0.5); return nil }
	if n := testing.AllocsPerRun(100, func() { launch.Set(Moment{Step: 1}, give) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	frames := test.Must(NewFrames(b.set.Devices[0], 8, []*Sweeper{sweeper}, []Give{give}))(t)
	defer frames.Close()
	if n := testing.AllocsPerRun(100, func() { frames.Queue(b.stream, Moment{Step: 6}, 4) }); n > 0 {
		t.Errorf("%v allocations by frames", n)
	}
	test.Check(t, b.stream.Sync(checkLimit))
	if got := values[float64](&b.arrays[0][0])[b.arrays[0][0].Layout.Offset(domain.Vec{2, 1, 0})]; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, p := range []any{&waveParameters{}, nil, (*parameters)(nil)} {
		if sweeper.SetParameters(p) == nil {
			t.Errorf("%T was taken", p)
		}
	}
}

// Norms and reductions are those over all portions, on every device, for any portions.
func TestMeasureOverPortions(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		s, device := waveSample(), set.Devices[0]
		owned := domain.Box{Hi: domain.Vec{150, 41, 60}}
		k := &checker{compiler: set.Compiler, device: device, plan: test.Must(newPlan(s.point, s.accesses))(t), host: device}
		k.form = k.plan.form()
		arrays := test.Must(k.arrays(owned, layoutCase{grow: func(int) int { return 0 }}))(t)
		stream := test.Must(device.NewStream(streams.Normal))(t)
		for _, a := range arrays {
			host := test.Must(device.AllocPinned(a.Data.Length))(t)
			v := streams.View[float64](host.Bytes())
			for i := range v {
				v[i] = math.Sin(float64(i))
			}
			test.Check(t, errors.Join(stream.Copy(a.Data, host.All()), stream.Sync(checkLimit)))
		}
		sweeper := test.Must(New(set.Compiler, device, s.point, s.accesses))(t)
		inner, slabs := domain.Split(owned, domain.UniformRadius(3, 1))
		var found []float64
		for _, portions := range [][]Portion{{{"all", []domain.Box{owned}}}, {{"slabs", slabs}, {"inner", []domain.Box{inner}}}} {
			launches, totals, err := sweeper.Measure(k.plan.split(arrays), portions...)
			test.Check(t, err)
			for _, l := range launches {
				test.Check(t, l.Set(Moment{Step: 1}, nil))
				test.Check(t, stream.Launch(l.Kernel))
			}
			test.Check(t, errors.Join(totals.Queue(stream), stream.Sync(checkLimit)))
			norms, ok1 := totals.Norms("next")
			motion, ok2 := totals.Reduced("motion")
			highest, ok3 := totals.Reduced("highest")
			if !ok1 || !ok2 || !ok3 {
				t.Fatal(ok1, ok2, ok3)
			}
			found = append(found, norms.MaxChange, norms.Max, highest.Value(), norms.SumChange2.Value(), norms.Sum2.Value(), motion.Value())
			test.Report(t, errors.Join(totals.Close(), totals.Close()))
		}
		for i := range 6 {
			if a, b := found[i], found[6+i]; a != b || a == 0 {
				t.Errorf("number %d: got %v for the whole, %v for its parts", i, a, b)
			}
		}
	})
}

// sourceOf is a function with a name that does nothing.
func sourceOf(name string) string {
	return "template <typename P> __device__ __forceinline__ void " + name + "(P &p) {}"
}

// Invalid point functions are rejected with the reason.
func TestInvalidPointFunctions(t *testing.T) {
	read := Access{Name: "u", Element: "float64", Footprint: stencil.Star(2, 1)}
	write := Access{Name: "next", Element: "float64", Write: true}
	change := func(a Access, f func(a *Access)) Access { f(&a); return a }
	along := func(a Access, axis int) Access { a.Constant[axis] = true; return a }
	weights := test.Must(stencil.Laplace([]float64{1, 1}))(t)
	linear, stencilAccesses, err := Linear(weights.Stencil(), "float64")
	test.Check(t, err)
	counterpart, cuda := func(*Row) {}, sourceOf("f")
	named := func(name string) Access { return change(write, func(a *Access) { a.Name = name }) }
	for name, c := range map[string]struct {
		point    Point
		accesses []Access
		want     string
	}{
		"no name":             {Point{Dims: 2, Go: counterpart}, []Access{read, write}, "must be a C identifier"},
		"four dimensions":     {Point{Name: "f", Dims: 4, Go: counterpart}, []Access{read, write}, "must be 2 or 3, got 4"},
		"no source":           {Point{Name: "f", Dims: 2, CUDA: " \n"}, []Access{read, write}, "neither a CUDA source"},
		"no counterpart":      {Point{Name: "f", Dims: 2, CUDA: cuda}, []Access{read, write}, "must have a Go counterpart"},
		"nothing written":     {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{read}, "must write or reduce something"},
		"a name twice":        {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{read, read, write}, `must be distinct, got "u"`},
		"no type":             {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{change(read, func(a *Access) { a.Element = "real" }), write}, `got "real"`},
		"in place, around":    {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{change(read, func(a *Access) { a.Write = true })}, "may only be read at the point itself"},
		"out of dimensions":   {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{change(read, func(a *Access) { a.Footprint = stencil.Star(3, 1) }), write}, "in 2 dimensions"},
		"norms of nothing":    {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{read, change(write, func(a *Access) { a.Before = "v" })}, `must name an access, got "v"`},
		"norms without point": {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{change(read, func(a *Access) { a.Footprint = stencil.Offsets(domain.Vec{1}) }), change(write, func(a *Access) { a.Before = "u" })}, "at the point itself"},
		"norms of rows":       {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{along(read, 0), change(write, func(a *Access) { a.Before = "u" })}, "constant along x"},
		"linear in rows":      {linear, []Access{along(stencilAccesses[0], 0), write}, "a value at each point of a row"},
		"a table is written":  {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{read, along(write, 1)}, "must not be written"},
		"a pointer":           {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart, Parameters: struct{ P *int }{}}, []Access{read, write}, "numbers of fixed size"},
		"another function":    {Point{Name: "f", Dims: 2, CUDA: sourceOf("g"), Go: counterpart}, []Access{read, write}, "must have a function of its name"},
		"a word of C++":       {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{read, named("register")}, "a keyword of C++"},
		"a word of CUDA":      {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{read, named("blockIdx")}, "a keyword of C++ or CUDA"},
		"a macro":             {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart}, []Access{read, named("TOTALS")}, "a name used by the kernels"},
		"named by a word":     {Point{Name: "double", Dims: 2, CUDA: sourceOf("double"), Go: counterpart}, []Access{read, write}, "a keyword of C++"},
		"reduced by a word":   {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart, Reductions: []Reduction{{"float", Sum}}}, []Access{read, write}, "a keyword of C++"},
		"a word elsewhere":    {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart, Elsewhere: []string{"int"}}, []Access{read, write}, "Point.Elsewhere"},
		"a field of a word":   {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart, Parameters: struct{ register float64 }{}}, []Access{read, write}, "a keyword of C++"},
		"a field in Greek":    {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart, Parameters: struct{ Δ float64 }{}}, []Access{read, write}, "must be a C identifier"},
		"two blanks":          {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart, Parameters: struct{ _, _ float64 }{}}, []Access{read, write}, "two fields _"},
		"a nil pointer":       {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart, Parameters: (*waveParameters)(nil)}, []Access{read, write}, "must not be nil"},
		"a reduction twice":   {Point{Name: "f", Dims: 2, CUDA: cuda, Go: counterpart, Reductions: []Reduction{{"u", Sum}}}, []Access{read, write}, `reduction "u"`},
	} {
		t.Run(name, func(t *testing.T) {
			set := testdevices.Host(t, 1)
			_, err := New(set.Compiler, set.Devices[0], c.point, c.accesses)
			test.Says(t, err, c.want)
			if name == "no counterpart" && !errors.Is(err, ErrNoCounterpart) {
				t.Errorf("got %v, want ErrNoCounterpart", err)
			}
		})
	}
}

// Invalid arrays are rejected with the reason.
func TestInvalidArrays(t *testing.T) {
	s := waveSample()
	b := newBed(t, s, domain.Box{Hi: domain.Vec{8, 8, 8}})
	sweeper := test.Must(New(b.set.Compiler, b.set.Devices[0], s.point, s.accesses))(t)
	same := Arrays{b.arrays[0], b.arrays[1], b.arrays[1]}
	two := Arrays{b.arrays[0], append(b.arrays[1], b.arrays[2]...), b.arrays[2]}
	outside := domain.Box{Hi: domain.Vec{9, 8, 8}}
	for _, c := range []struct {
		arrays Arrays
		box    domain.Box
		want   string
	}{
		{same, b.owned, "must not overlap another access"},
		{two, b.owned, "must have 1 components, got 2"},
		{b.arrays[:2], b.owned, "must have arrays of 3 accesses, got 2"},
		{b.arrays, outside, "must be within"},
	} {
		test.Says(t, test.ErrorOf(sweeper.Sweep("wave", c.arrays, c.box)), c.want)
	}
}

// Compiler messages contain the file and the line of the source, and undeclared offsets are distinguished from
// other errors.
func TestSourceErrors(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	c := testdevices.Compiler(t)
	for name, one := range map[string]struct {
		old, new string
		want     []string
		is       error
	}{
		"unknown access":     {"p.at(u, 1, 0, 0)", "p.at(v, 1, 0, 0)", []string{"wave.cu(2)", `identifier "v" is undefined`, `access "v" must exist`}, nil},
		"syntax":             {"p.set(next, v);", "p.set(next, v;", []string{"wave.cu(5)"}, nil},
		"at of written":      {"p.at(u, 1, 0, 0)", "p.at(next, 1, 0, 0)", []string{"wave.cu:2: at(next, ...)", "only written"}, nil},
		"set of read":        {"p.set(next, v);", "p.set(u, v);", []string{"wave.cu:5: set(u, ...)", "only read"}, nil},
		"of another":         {"p.at(u, 1, 0, 0)", "p.at(other, 1, 0, 0)", []string{`"wave": names must be`, "Point.Elsewhere"}, nil},
		"offset":             {"p.at(u, 1, 0, 0)", "p.at(u, 2, 0, 0)", []string{"wave.cu", "at(u, ...)"}, ErrFootprint},
		"components must be": {"p.at(u, 1, 0, 0)", "p.at(u[1], 1, 0, 0)", []string{"wave.cu", "components must be"}, ErrFootprint},
	} {
		t.Run(name, func(t *testing.T) {
			s := waveSample()
			s.point.CUDA, s.point.Elsewhere = strings.Replace(s.point.CUDA, one.old, one.new, 1), []string{"other"}
			n := test.Must(newPlan(s.point, s.accesses))(t)
			_, err := c.Image(n.programOf("point.cu", n.source(n.usualClasses(), n.form())), "sm_90")
			if err == nil {
				t.Fatal("got no error")
			}
			err = n.explain(err)
			for _, want := range one.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			if one.is != nil && !errors.Is(err, one.is) {
				t.Errorf("got %v, want %v", err, one.is)
			}
		})
	}
}

// A function without a source runs on CPU devices only. Where NVRTC is found, CPU devices reject a source with errors.
func TestSourcesOnCPUDevices(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	s := waveSample()
	b := newBed(t, s, domain.Box{Hi: domain.Vec{8, 8, 8}})
	d, source := b.set.Devices[0], s.point.CUDA
	s.point.CUDA = " "
	sweeper := test.Must(New(b.set.Compiler, d, s.point, s.accesses))(t)
	test.Must(sweeper.Sweep("wave", b.arrays, b.owned))(t)
	if _, err := New(b.set.Compiler, &streams.Device{}, s.point, s.accesses); !errors.Is(err, ErrNoSource) {
		t.Errorf("a GPU takes a function without a source: %v", err)
	}
	test.Says(t, Check(b.set.Compiler, d, s.point, s.accesses, CheckOptions{}), "no CUDA source to compare")
	t.Setenv("HALOX_NVRTC", testdevices.NVRTC(t))
	t.Setenv("HALOX_CACHE", t.TempDir())
	c := kernels.CompilerFromEnv()
	s.point.CUDA = source
	test.Must(New(c, d, s.point, s.accesses))(t)
	s.point.CUDA = strings.Replace(source, "p.set(next, v);", "p.set(next, v;", 1)
	test.Says(t, test.ErrorOf(New(c, d, s.point, s.accesses)), "wave.cu(5)")
}

// Every shape has a kernel and fits the bounds that it is compiled for, also with single points and as sweeps that
// measure take it. Blocks are whole warps.
func TestShapesFitTheirBounds(t *testing.T) {
	flat := lbmSample(t)
	flat.point.Dims = 2
	for i := range flat.accesses[0].Footprints {
		flat.accesses[0].Footprints[i] = stencil.Point()
	}
	for _, s := range append(append(compiledSamples(t), linearSamples(t)...), flat) {
		f := test.Must(newPlan(s.point, s.accesses))(t).form()
		check := func(shape Shape, most int, names []string) {
			threads := shape.Block[0] * shape.Block[1]
			if threads == 0 || threads%32 > 0 || threads > most {
				t.Errorf("%s: shape %v: got blocks of %d threads, must be at most %d", s.point.Name, shape, threads, most)
			}
			if !slices.Contains(names, f.kernel(shape)) && !(shape.Single && f.layered) {
				t.Errorf("%s: kernel %s must exist for shape %v", s.point.Name, f.kernel(shape), shape)
			}
		}
		for _, shape := range f.shapes {
			for _, shape := range []Shape{shape, f.single(shape)} {
				bounds, measured := f.boundsOf(shape.Single)
				check(shape, bounds.threads, f.kernels())
				check(f.measuredShape(shape), measured.threads, f.measuredKernels())
			}
		}
	}
}

// Sums are layered if each part is within a layer, few parts are distinct, and for stencils of many points, some
// of them off the center's column in other layers.
func TestLayered(t *testing.T) {
	for _, sample := range linearSamples(t) {
		s := *sample.point.linear
		if got, want := layered(s), s.Points() == 19 || s.Points() == 27; got != want {
			t.Errorf("%d points, %d dimensions: got %v", s.Points(), s.Dims, got)
		}
	}
	plane := stencil.Part{{1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0, -1, 0}, {1, 1, 0}, {-1, -1, 0}}
	alone := []stencil.Part{{{1, 0, 1}}, {{0, 1, 1}}, {{-1, 0, 1}}}
	for _, c := range []struct {
		name  string
		want  bool
		parts []stencil.Part
	}{
		{"in two planes", true, []stencil.Part{plane, {{1, 0, -1}}, {{1, 0, 1}, {0, 1, 1}}}},
		{"downwards", true, []stencil.Part{{{1, 0, 1}}, {{1, 0, -1}}, plane}},
		{"a part in two planes", false, []stencil.Part{plane, {{1, 0, -1}, {1, 0, 1}}}},
		{"a column", false, []stencil.Part{plane, {{0, 0, -1}}, {{0, 0, 1}}}},
		{"far", false, []stencil.Part{plane, {{1, 0, -1}}, {{1, 0, 2}}}},
		{"few points", false, []stencil.Part{plane[:4], {{1, 0, -1}}, {{1, 0, 1}}}},
		{"many parts", false, append([]stencil.Part{plane, {{0, -1, 1}}}, alone...)},
		{"the largest number", true, append([]stencil.Part{plane}, alone[:2]...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stencil.Stencil{Dims: 3, Center: 1, Groups: []stencil.Group{{Weight: 1, Parts: c.parts}}}
			test.Check(t, s.Check())
			if got := layered(s); got != c.want {
				t.Error(got)
			}
		})
	}
}

// Linear rejects invalid stencils and types.
func TestInvalidStencils(t *testing.T) {
	star := stencil.StarWeights{Dims: 2, Equal: true}.Stencil()
	if _, _, err := Linear(star, "float16"); err == nil || !strings.Contains(err.Error(), `got "float16"`) {
		t.Error(err)
	}
	star.Dims = 4
	if _, _, err := Linear(star, domain.Float64); err == nil {
		t.Error("four dimensions: got no error")
	}
}

// Groups need arrays with equal alignment in words of 16 bytes, also if arrays are parts of one memory.
func TestGroupsOfPartsOfAMemory(t *testing.T) {
	devices := test.Must(streams.HostPlatform(1).Open())(t)
	defer streams.CloseAll(devices)
	s := linearSamples(t)[1] // float64
	n := test.Must(newPlan(s.point, s.accesses))(t)
	owned := domain.Box{Hi: domain.Vec{16, 16, 1}}
	l := test.Must(domain.NewLayout(owned, domain.UniformRadius(2, 1), 8))(t)
	m := test.Must(devices[0].Alloc(2*l.Bytes() + 16))(t)
	defer m.Close()
	for gap, want := range map[int64]bool{0: true, 8: false, 16: true} {
		arrays := []kernels.Array{{Data: m.Span(0, l.Bytes()), Layout: l}, {Data: m.Span(l.Bytes()+gap, l.Bytes()), Layout: l}}
		if got := n.grouped(arrays, owned); got != want {
			t.Errorf("%d bytes between them: got groups %t", gap, got)
		}
	}
}

// A table along x without ghosts does not prevent groups: a group reads only its own points of it.
func TestGroupsBesideATable(t *testing.T) {
	devices := test.Must(streams.HostPlatform(1).Open())(t)
	defer streams.CloseAll(devices)
	n := test.Must(newPlan(Point{Name: "scaled", Dims: 3, CUDA: "scaled", Go: func(*Row) {}}, []Access{
		{Name: "u", Element: "float64", Footprint: stencil.Footprint{{-1, 0, 0}, {1, 0, 0}}},
		{Name: "table", Element: "float64", Footprint: stencil.Footprint{{}}},
		{Name: "next", Element: "float64", Write: true},
	}))(t)
	owned := domain.Box{Hi: domain.Vec{16, 4, 4}}
	l := test.Must(domain.NewLayout(owned, domain.UniformRadius(3, 1), 8))(t)
	table := test.Must(domain.NewLayout(owned, domain.Radius{}, 8))(t).Constant([3]bool{1: true, 2: true})
	m := test.Must(devices[0].Alloc(2*l.Bytes() + table.Bytes()))(t)
	defer m.Close()
	arrays := []kernels.Array{
		{Data: m.Span(0, l.Bytes()), Layout: l}, {Data: m.Span(2*l.Bytes(), table.Bytes()), Layout: table},
		{Data: m.Span(l.Bytes(), l.Bytes()), Layout: l},
	}
	inner := domain.Box{Lo: domain.Vec{1, 1, 1}, Hi: domain.Vec{15, 3, 3}}
	if !n.grouped(arrays, owned) || !n.grouped(arrays, inner) {
		t.Error("no groups")
	}
	arrays[0].Layout, arrays[0].Data = table, arrays[1].Data // has no points at the left of the first one
	if n.grouped(arrays, owned) {
		t.Error("groups beyond the array")
	}
}

// Threads have no more points than a RunningSum of sums.cuh supports, in boxes of any size.
func TestThreadsHaveFewTerms(t *testing.T) {
	const most = 1 << 11
	for _, s := range append(compiledSamples(t), linearSamples(t)...) {
		f := test.Must(newPlan(s.point, s.accesses))(t).form()
		for _, size := range []domain.Vec{{9, 9, 1 << 27}, {1 << 16, 1 << 16, 4}, {512, 512, 512}, {1 << 28, 1, 9}} {
			for _, shape := range f.shapes {
				if _, layers, ok := f.grid(shape, int64(size[0]), size); ok && layers*f.rows*16 > most {
					t.Errorf("%s: got columns of %d layers and %d rows", s.point.Name, layers, f.rows)
				}
			}
			b := domain.Box{Hi: size}
			k := launchPlan{arrays: []kernels.Array{{Layout: test.Must(domain.NewLayout(b, domain.Radius{}, 1))(t)}}}
			k.small([]domain.Box{b}, 1)
			if each := ceil(b.Points(), int64(k.grid[0]*blockSize)); each*16 > most {
				t.Errorf("got %d groups per thread", each)
			}
		}
	}
}
