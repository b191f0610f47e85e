package halo_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

const testLimit = 30 * time.Second

// place cuts a grid and gives subdomain i to device i of the set, around.
func place(t rapid.TB, set *testdevices.Set, size []int, periodic [3]bool, parts domain.Vec) *halo.Placement {
	g, err := domain.NewGrid(size, periodic)
	if err != nil {
		t.Fatal(err)
	}
	d, err := domain.Decompose(g, parts)
	if err != nil {
		t.Fatal(err)
	}
	var devices []*streams.Device
	for i := range d.Subdomains {
		devices = append(devices, set.Devices[i%len(set.Devices)])
	}
	p, err := halo.Place(d, devices)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// drawSpec draws a field that fits the placement.
func drawSpec(t *rapid.T, i int, p *halo.Placement) halo.Spec {
	s := halo.Spec{
		Name: fmt.Sprintf("f%d", i),
		Element: rapid.SampledFrom([]halo.Element{halo.Float32, halo.Float64, halo.Int32, halo.Int64,
			halo.Complex64, halo.Complex128, halo.Bytes(1), halo.Bytes(3), halo.Bytes(24)}).Draw(t, "element"),
		Components:   rapid.IntRange(0, 3).Draw(t, "components"),
		SoA:          rapid.Bool().Draw(t, "struct of arrays"),
		Connectivity: rapid.SampledFrom([]halo.Connectivity{halo.Faces, halo.Edges, halo.Corners}).Draw(t, "reach"),
	}
	s.Width = drawWidth(t, p)
	for a := range p.Grid.Dims {
		s.Stagger[a] = rapid.Bool().Draw(t, "stagger")
	}
	if s.SoA && rapid.Bool().Draw(t, "a width a component") {
		for range max(1, s.Components) {
			s.Widths = append(s.Widths, drawWidth(t, p))
		}
	}
	return s
}

// drawWidth draws a width of ghosts that fits the placement.
func drawWidth(t *rapid.T, p *halo.Placement) (w domain.Radius) {
	for a := range p.Grid.Dims {
		most := min(3, p.Grid.Size[a]/p.Parts[a])
		w.Minus[a] = rapid.IntRange(0, most).Draw(t, "minus")
		w.Plus[a] = rapid.IntRange(0, most).Draw(t, "plus")
	}
	return w
}

// way carries out an exchange.
type way = func(x *halo.Exchanger, at []*streams.Stream) error

// byStart is an exchange in two calls.
func byStart(x *halo.Exchanger, at []*streams.Stream) error {
	if err := x.Start(at); err != nil {
		return err
	}
	return x.Wait(at)
}

// byTransfers returns what carries out an exchange message by message, as schemes of
// several threads do. A sender waits for its receiver on the device.
func byTransfers(t rapid.TB, plan *halo.Plan) way {
	group := streams.NewWorkerGroup(1, testLimit)
	var ready []*streams.Event
	for _, d := range plan.Placement.Devices {
		e, err := d.NewEvent()
		if err != nil {
			t.Fatal(err)
		}
		ready = append(ready, e)
	}
	return func(x *halo.Exchanger, at []*streams.Stream) error {
		for rank, s := range at {
			if err := s.Record(ready[rank]); err != nil {
				return err
			}
		}
		for i, m := range plan.Messages {
			if err := at[m.From].Wait(ready[m.To]); err != nil {
				return err
			}
			if err := x.Transfer(i).Send(at[m.From]); err != nil {
				return err
			}
		}
		for i, m := range plan.Messages {
			if err := x.Transfer(i).Receive(group, at[m.To]); err != nil {
				return err
			}
		}
		return nil
	}
}

// inTurn makes each of n subdomains late in one round after another, from the given
// one on.
func inTurn(first, n int) func(round, rank int) bool {
	return func(round, rank int) bool { return rank == (first+round)%n }
}

// Over random grids, cuts, fields, widths and paths, several subdomains a device
// included, every ghost gets the value that geometry says and no other point
// changes, in exchanges that follow each other closely, whoever is late.
func TestExchangeAgreesWithGeometry(t *testing.T) {
	testdevices.Each(t, 5, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			dims := rapid.IntRange(2, 3).Draw(t, "dims")
			var periodic [3]bool
			size, parts := make([]int, dims), domain.Vec{1, 1, 1}
			for a := range dims {
				size[a] = rapid.IntRange(1, 12).Draw(t, "size")
				periodic[a] = rapid.Bool().Draw(t, "periodic")
				parts[a] = rapid.IntRange(1, min(3, size[a])).Draw(t, "parts")
			}
			c := halotest.Case{
				Placement: place(t, set, size, periodic, parts), Links: set.Links, Compiler: set.Compiler,
				Path: rapid.SampledFrom([]p2p.Path{p2p.Peer, p2p.Staged, p2p.Direct}).Draw(t, "path"),
			}
			for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
				c.Specs = append(c.Specs, drawSpec(t, i, c.Placement))
			}
			plan, err := halo.NewPlan(c.Placement, c.Links, c.Path, c.Specs...)
			if err != nil {
				t.Fatal(err)
			}
			c.Exchange = rapid.SampledFrom([]way{nil, byStart, byTransfers(t, plan)}).Draw(t, "way")
			if n := len(c.Placement.Subdomains); rapid.Bool().Draw(t, "somebody late") {
				c.Late = inTurn(rapid.IntRange(0, n-1).Draw(t, "late"), n)
			}
			if err := c.Run(); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// star is a field of doubles with one layer of ghosts.
func star(dims int) halo.Spec {
	return halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(dims, 1)}
}

// The cases that a draw may miss: every direction, messages one way only, where
// nothing but the exchange itself holds sender and receiver together, and faces that
// look contiguous. Each subdomain is late once.
func TestExchangeCases(t *testing.T) {
	all := halo.Spec{Name: "all", Element: halo.Float32, Connectivity: halo.Corners,
		Width: domain.Radius{Minus: domain.Vec{1, 2, 1}, Plus: domain.Vec{2, 1, 1}}}
	up, down, soa, staggered := star(3), star(3), star(3), star(3)
	up.Width.Plus, down.Width.Minus = domain.Vec{}, domain.Vec{}
	soa.SoA, soa.Components = true, 3
	staggered.Stagger = [3]bool{true, false, true}
	thin := star(3)
	thin.Connectivity = halo.Corners
	around := [3]bool{true, true, true}
	testdevices.Each(t, 5, func(t *testing.T, set *testdevices.Set) {
		for _, c := range []struct {
			name     string
			size     []int
			periodic [3]bool
			parts    domain.Vec
			specs    []halo.Spec
		}{
			{"every direction", []int{7, 5, 4}, around, domain.Vec{3, 2, 2}, []halo.Spec{all}},
			{"its own neighbour", []int{3, 4, 5}, around, domain.Vec{1, 1, 1}, []halo.Spec{all}},
			{"a ring of two", []int{5, 6, 4}, around, domain.Vec{1, 2, 1}, []halo.Spec{all}},
			{"a ring of two stacks", []int{4, 3, 6}, [3]bool{false, false, true}, domain.Vec{1, 1, 2}, []halo.Spec{star(3)}},
			{"rings of two that own one layer", []int{4, 2, 2}, around, domain.Vec{1, 2, 2}, []halo.Spec{thin}},
			{"planes and edges of pairs", []int{4, 5, 8}, [3]bool{true, true, false}, domain.Vec{1, 1, 4}, []halo.Spec{star(3), all}},
			{"contiguous upwards", []int{4, 5, 6}, [3]bool{}, domain.Vec{1, 1, 2}, []halo.Spec{up}},
			{"contiguous downwards", []int{4, 5, 6}, [3]bool{}, domain.Vec{1, 1, 2}, []halo.Spec{down}},
			{"packed upwards", []int{4, 5, 6}, [3]bool{}, domain.Vec{2, 1, 1}, []halo.Spec{up}},
			{"packed downwards", []int{4, 5, 6}, [3]bool{}, domain.Vec{2, 1, 1}, []halo.Spec{down}},
			{"rows that end in ghosts", []int{4, 5, 6}, [3]bool{true, false, false}, domain.Vec{1, 1, 2}, []halo.Spec{star(3)}},
			{"many arrays", []int{4, 5, 6}, [3]bool{}, domain.Vec{2, 1, 2}, []halo.Spec{soa, staggered}},
		} {
			for _, path := range []p2p.Path{p2p.Peer, p2p.Direct, p2p.Staged} {
				trial := halotest.Case{
					Placement: place(t, set, c.size, c.periodic, c.parts), Links: set.Links, Compiler: set.Compiler,
					Path: path, Specs: c.specs,
				}
				n := len(trial.Placement.Subdomains)
				trial.Rounds, trial.Late = n+1, inTurn(0, n)
				plan := must(halo.NewPlan(trial.Placement, set.Links, path, c.specs...))(t)
				for by, exchange := range map[string]way{"exchange": nil, "start": byStart, "transfers": byTransfers(t, plan)} {
					trial.Exchange = exchange
					t.Run(fmt.Sprintf("%s/path=%s/by=%s", c.name, path, by), func(t *testing.T) {
						if err := trial.Run(); err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	})
}

func TestPlan(t *testing.T) {
	set := testdevices.Host(t, 4)
	size := []int{8, 6, 12}
	box, edges, around := star(3), star(3), [3]bool{true, true, true}
	box.Connectivity, edges.Connectivity = halo.Corners, halo.Edges
	for _, c := range []struct {
		name       string
		place      *halo.Placement
		specs      []halo.Spec
		messages   int
		bytes      int64
		path       string
		contiguous int
	}{
		{"alone", place(t, set, size, [3]bool{}, domain.Vec{1, 1, 1}), []halo.Spec{star(3)}, 0, 0, "", 0},
		{"its own neighbour", place(t, set, size, [3]bool{false, true, false}, domain.Vec{1, 1, 1}), []halo.Spec{star(3)}, 1, 0, "", 0},
		{"its own neighbour on every side", place(t, set, size, around, domain.Vec{1, 1, 1}), []halo.Spec{box}, 1, 0, "", 0},
		{"a ring of two", place(t, set, size, [3]bool{false, true, false}, domain.Vec{1, 2, 1}), []halo.Spec{star(3)}, 2, 4 * 8 * 12 * 8, "peer", 0},
		{"a ring of two stacks", place(t, set, size, [3]bool{false, false, true}, domain.Vec{1, 1, 2}), []halo.Spec{star(3)}, 4, 4 * 8 * 6 * 8, "peer", 4},
		{"planes and edges of pairs", place(t, set, size, [3]bool{true, true, false}, domain.Vec{1, 1, 4}), []halo.Spec{edges}, 10, 6 * (8*6 + 2*8 + 2*6) * 8, "peer", 0},
		{"a stack", place(t, set, size, [3]bool{}, domain.Vec{1, 1, 4}), []halo.Spec{star(3)}, 6, 6 * 8 * 6 * 8, "peer", 6},
		{"a ring", place(t, set, size, [3]bool{false, false, true}, domain.Vec{1, 1, 4}), []halo.Spec{star(3)}, 8, 8 * 8 * 6 * 8, "peer", 8},
		{"columns", place(t, set, size, [3]bool{}, domain.Vec{2, 1, 2}), []halo.Spec{star(3)}, 8, 4*6*6*8 + 4*4*6*8, "peer", 0},
		{"columns with edges", place(t, set, size, [3]bool{}, domain.Vec{2, 1, 2}), []halo.Spec{box}, 12, 4*6*6*8 + 4*4*6*8 + 4*6*8, "peer", 0},
		{"two fields, one message", place(t, set, size, [3]bool{}, domain.Vec{1, 1, 4}), []halo.Spec{star(3), star(3)}, 6, 2 * 6 * 8 * 6 * 8, "peer", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := must(halo.NewPlan(c.place, set.Links, p2p.Auto, c.specs...))(t)
			contiguous := 0
			for _, m := range plan.Messages {
				if m.Contiguous {
					contiguous++
				}
			}
			if len(plan.Messages) != c.messages || plan.Bytes() != c.bytes || plan.Path() != c.path || contiguous != c.contiguous {
				t.Errorf("%d messages, %d contiguous, %d bytes over %q", len(plan.Messages), contiguous, plan.Bytes(), plan.Path())
			}
		})
	}
}

// All that one subdomain sends to another, or to itself, is one message: of 62 directions between subdomains of 4 slabs whose grid is periodic along x and
// y, 10 pairs.
func TestOneMessageToEachNeighbour(t *testing.T) {
	set := testdevices.Host(t, 4)
	p := place(t, set, []int{8, 6, 16}, [3]bool{true, true, false}, domain.Vec{1, 1, 4})
	s := star(3)
	s.Connectivity = halo.Edges
	for _, path := range []p2p.Path{p2p.Direct, p2p.Peer, p2p.Staged} {
		plan := must(halo.NewPlan(p, set.Links, path, s))(t)
		pairs := map[[2]int]bool{}
		for _, m := range plan.Messages {
			pairs[[2]int{m.From, m.To}] = true
		}
		if len(plan.Messages) != 10 || len(pairs) != 10 {
			t.Errorf("path %s: %d messages between %d pairs", path, len(plan.Messages), len(pairs))
		}
	}
}

// Messages of a pair are one, but for rows that are long enough to travel as they lie; what is
// sent in return has the opposite direction.
func TestWhatIsJoined(t *testing.T) {
	set := testdevices.Host(t, 2)
	box := star(2)
	box.Connectivity = halo.Corners
	for _, c := range []struct {
		name     string
		row      int // float64 in a row of a face
		path     p2p.Path
		messages []string // of the lower rank to the other: directions, and a star where it travels as it lies
	}{
		{"short rows join the corners", 8191, p2p.Peer, []string{"y+: y- y+ x-y- x+y- x-y+ x+y+"}},
		{"long rows do not", 8192, p2p.Peer, []string{"y-: y-*", "y+: y+*", "x+y+: x-y- x+y- x-y+ x+y+"}},
		{"but where nothing is packed", 8192, p2p.Direct, []string{"y+: y- y+ x-y- x+y- x-y+ x+y+"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := place(t, set, []int{c.row, 8}, [3]bool{true, true, false}, domain.Vec{1, 2, 1})
			plan := must(halo.NewPlan(p, set.Links, c.path, box))(t)
			var there, back []string
			for _, m := range plan.Messages {
				if m.From == m.To {
					continue
				}
				text := m.Dir.String() + ":"
				end := int64(0)
				for _, part := range m.Parts {
					text += " " + part.Dir.String()
					if part.Offset < end || part.Offset+part.Bytes > m.Bytes {
						t.Errorf("part %+v of %d bytes, after one that ends at %d", part, m.Bytes, end)
					}
					end = part.Offset + part.Bytes
				}
				if m.Contiguous {
					text += "*"
				}
				if m.From == 0 {
					there = append(there, text)
				} else {
					back = append(back, m.Dir.Opposite().String())
				}
			}
			if !slices.Equal(there, c.messages) {
				t.Errorf("%q, want %q", there, c.messages)
			}
			for _, m := range there {
				if dir, _, _ := strings.Cut(m, ":"); !slices.Contains(back, dir) {
					t.Errorf("no message in return for %q: %q", m, back)
				}
			}
		})
	}
}

// Bad use gets an error that says what to change.
func TestRefusals(t *testing.T) {
	set := testdevices.Host(t, 2)
	var open streams.Resources
	defer open.Close()
	size, parts := []int{8, 8, 2}, domain.Vec{1, 1, 2}
	p, good := place(t, set, size, [3]bool{}, parts), star(3)
	plan := must(halo.NewPlan(p, set.Links, p2p.Auto, good))(t)
	f := openField(t, &open, p, good)
	x := must(halo.NewExchanger(plan, set.Compiler, f))(t)
	at := openStreams(t, &open, p)
	spec := func(change func(s *halo.Spec)) error {
		s := good
		change(&s)
		return errorOf(halo.NewField(p, s))
	}
	narrow := good
	narrow.Element = halo.Float32
	g, other := openField(t, &open, p, narrow), openField(t, &open, place(t, set, size, [3]bool{}, parts), good)
	for name, c := range map[string]struct {
		says string
		err  error
	}{
		"a width beyond the subdomain": {"needs 2", spec(func(s *halo.Spec) { s.Width = domain.UniformRadius(3, 2) })},
		"a negative width":             {"width", spec(func(s *halo.Spec) { s.Width.Minus[0] = -1 })},
		"no such element":              {"float64", spec(func(s *halo.Spec) { s.Element = "float16" })},
		"negative components":          {"components", spec(func(s *halo.Spec) { s.Components = -1 })},
		"no such connectivity":         {"connectivity 3", spec(func(s *halo.Spec) { s.Connectivity = 3 })},
		"no such path":                 {"tunnel", errorOf(halo.NewPlan(p, set.Links, "tunnel", good))},
		"no field":                     {"no field", errorOf(halo.NewPlan(p, set.Links, p2p.Auto))},
		"a field of another element":   {"float32", errorOf(halo.NewExchanger(plan, set.Compiler, g))},
		"a field of another placement": {"another placement", errorOf(halo.NewExchanger(plan, set.Compiler, other))},
		"too few fields":               {"0 fields", errorOf(halo.NewExchanger(plan, set.Compiler))},
		"Wait before Start":            {"call Start", x.Wait(at)},
		"too few streams":              {"1 streams for 2", x.Start(at[:1])},
		"a stream of another device": {"stream for subdomain 0 is one of device host 1",
			x.Start([]*streams.Stream{at[1], at[0]})},
		"Start":                  {"", x.Start(at)},
		"Start twice":            {"call Wait", x.Start(at)},
		"Wait":                   {"", x.Wait(at)},
		"Close":                  {"", x.Close()},
		"a closed exchanger":     {"closed", x.Start(at)},
		"too few values":         {"3 elements", halo.Read(make([]int64, 3), f, p.Grid.Box())},
		"values of another size": {"4 bytes", halo.Read(make([]float32, p.Grid.Points()), f, p.Grid.Box())},
		"no such component":      {"component 1", errorOf(f.Component(1))},
	} {
		if c.says != "" {
			refuses(t, name, c.err, c.says)
		} else if c.err != nil {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// An exchange allocates nothing and starts no goroutine.
func TestAnExchangeMakesNothing(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{8, 8, 8}, [3]bool{true, true, true}, domain.Vec{1, 2, 1})
	a, b := star(3), star(3)
	a.Connectivity, b.Name, b.Components = halo.Corners, "v", 3
	t.Setenv("HALOX_CACHE", t.TempDir())
	c := typed(particle(t), halo.Edges)
	for _, path := range []p2p.Path{p2p.Peer, p2p.Direct, p2p.Staged} {
		t.Run("path="+string(path), func(t *testing.T) {
			plan := must(halo.NewPlan(p, set.Links, path, a, b, c))(t)
			var open streams.Resources
			defer open.Close()
			var fields []*halo.Field
			for _, s := range plan.Specs {
				fields = append(fields, openField(t, &open, p, s))
			}
			x := must(halo.NewExchanger(plan, set.Compiler, fields...))(t)
			open.Add(x)
			at := openStreams(t, &open, p)
			before := runtime.NumGoroutine()
			n := testing.AllocsPerRun(20, func() {
				if err := x.Exchange(at); err != nil {
					t.Fatal(err)
				}
				for _, s := range at { // or the queues fill up
					if err := s.Sync(testLimit); err != nil {
						t.Fatal(err)
					}
				}
			})
			if n > 0 {
				t.Errorf("%v allocations an exchange", n)
			}
			// At its first Start an exchanger makes two streams a subdomain.
			if after := runtime.NumGoroutine(); after > before+2*len(at) {
				t.Errorf("%d goroutines before, %d after", before, after)
			}
		})
	}
}
