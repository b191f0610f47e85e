package halo_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

const testLimit = 5 * time.Minute

// place decomposes a grid and assigns subdomain i to device i of the set, cyclically.
func place(t tb, set *testdevices.Set, size []int, periodic [3]bool, parts domain.Vec) *halo.Placement {
	return placeOn(t, set, cut(t, size, periodic, parts))
}

func placeOn(t tb, set *testdevices.Set, d *domain.Decomposition) *halo.Placement {
	var devices []*streams.Device
	for i := range d.Subdomains {
		devices = append(devices, set.Devices[i%len(set.Devices)])
	}
	return must(halo.Place(d, devices))(t)
}

func cut(t tb, size []int, periodic [3]bool, parts domain.Vec) *domain.Decomposition {
	return must(domain.Decompose(must(domain.NewGrid(size, periodic[:len(size)]))(t), parts))(t)
}

// drawSpec draws a field that fits the placement.
func drawSpec(t *rapid.T, i int, p *halo.Placement) halo.Spec {
	s := halo.Spec{
		Name: fmt.Sprintf("f%d", i),
		Element: rapid.SampledFrom([]domain.Element{halo.Float32, halo.Float64, halo.Int32, halo.Int64,
			domain.Complex64, domain.Complex128, domain.Bytes(1), domain.Bytes(3), domain.Bytes(24), domain.Uint8, domain.Int16}).Draw(t, "element"),
		Components:   rapid.IntRange(0, 3).Draw(t, "components"),
		SoA:          rapid.Bool().Draw(t, "struct of arrays"),
		Connectivity: rapid.SampledFrom([]halo.Connectivity{halo.Faces, halo.Edges, halo.Corners}).Draw(t, "reach"),
	}
	s.Width = drawWidth(t, p)
	for range p.Grid.Dims {
		s.Stagger = append(s.Stagger, rapid.Bool().Draw(t, "stagger"))
	}
	if s.SoA && rapid.Bool().Draw(t, "a width per component") {
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

// way executes an exchange.
type way = func(x *halo.Exchanger, at []*streams.Stream) error

// byStart exchanges by Start and Wait.
func byStart(x *halo.Exchanger, at []*streams.Stream) error {
	if err := x.Start(at); err != nil {
		return err
	}
	return x.Wait(at)
}

// byTransfers returns a way that exchanges message by message, like schemes with several threads. Within a
// process a sender waits for its receiver on the device.
func byTransfers(t tb, plan *halo.Plan) way {
	ready := make([]*streams.Event, len(plan.Placement.Devices))
	for rank, d := range plan.Placement.Devices {
		if d != nil {
			ready[rank] = must(d.NewEvent())(t)
		}
	}
	return func(x *halo.Exchanger, at []*streams.Stream) (err error) {
		for rank, s := range at {
			if s != nil {
				err = errors.Join(err, s.Record(ready[rank]))
			}
		}
		for _, m := range plan.Messages {
			if at[m.From] != nil && at[m.To] != nil {
				err = errors.Join(err, at[m.From].Wait(ready[m.To]))
			}
		}
		return errors.Join(err, transfers(plan)(x, at))
	}
}

// transfers returns a way that sends and receives all messages without waiting for receivers.
func transfers(plan *halo.Plan) way {
	group := streams.NewWorkerGroup(1, testLimit)
	return func(x *halo.Exchanger, at []*streams.Stream) error {
		for i, m := range plan.Messages {
			if at[m.From] == nil {
				continue
			}
			if err := x.Transfer(i).Send(at[m.From]); err != nil {
				return err
			}
		}
		for i, m := range plan.Messages {
			if at[m.To] == nil {
				continue
			}
			if err := x.Transfer(i).Receive(group, at[m.To]); err != nil {
				return err
			}
		}
		return nil
	}
}

// inTurn delays each of n subdomains in one round after another, starting with first.
func inTurn(first, n int) func(round, rank int) bool {
	return func(round, rank int) bool { return rank == (first+round)%n }
}

// Over random grids, decompositions, fields, widths and paths, also with several subdomains per device, every
// ghost gets the value that geometry requires and no other point changes, in exchanges without pauses, for
// any late subdomain.
func TestExchangeAgreesWithGeometry(t *testing.T) {
	testdevices.Each(t, 5, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			c := halotest.Case{
				Placement: drawPlace(t, set, 12), Links: set.Links, Compiler: set.Compiler,
				Path: rapid.SampledFrom(paths).Draw(t, "path"),
			}
			for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
				c.Specs = append(c.Specs, drawSpec(t, i, c.Placement))
			}
			plan := must(halo.NewPlan(c.Placement, c.Links, c.Path, c.Specs...))(t)
			c.Exchange = rapid.SampledFrom([]way{nil, byStart, byTransfers(t, plan)}).Draw(t, "way")
			if n := len(c.Placement.Subdomains); rapid.Bool().Draw(t, "one is late") {
				c.Late = inTurn(rapid.IntRange(0, n-1).Draw(t, "late"), n)
			}
			done(t, nil, c.Run())
		})
	})
}

// star is a float64 field with one layer of ghosts.
func star(dims int) halo.Spec {
	return halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(dims, 1)}
}

// exchangeCase is a grid, its decomposition and its fields.
type exchangeCase struct {
	name     string
	size     []int
	periodic [3]bool
	parts    domain.Vec
	specs    []halo.Spec
}

// exchangeCases checks exchanges along all paths and in the named ways, with each subdomain late once.
func exchangeCases(t *testing.T, set *testdevices.Set, cases []exchangeCase, by ...string) {
	for _, c := range cases {
		for _, path := range paths {
			trial := halotest.Case{
				Placement: place(t, set, c.size, c.periodic, c.parts), Links: set.Links, Compiler: set.Compiler,
				Path: path, Specs: c.specs,
			}
			n := len(trial.Placement.Subdomains)
			trial.Rounds, trial.Late = n+1, inTurn(0, n)
			plan := must(halo.NewPlan(trial.Placement, set.Links, path, c.specs...))(t)
			ways := map[string]way{"exchange": nil, "start": byStart, "transfers": byTransfers(t, plan)}
			for _, by := range by {
				trial.Exchange = ways[by]
				t.Run(fmt.Sprintf("%s/path=%s/by=%s", c.name, path, by), func(t *testing.T) {
					done(t, nil, trial.Run())
				})
			}
		}
	}
}

// Cases that random draws may miss: every direction, messages in one direction only (where only the exchange
// itself synchronizes sender and receiver), and faces that look contiguous. Each subdomain is late once.
func TestExchangeCases(t *testing.T) {
	all := halo.Spec{Name: "all", Element: halo.Float32, Connectivity: halo.Corners,
		Width: domain.Radius{Minus: domain.Vec{1, 2, 1}, Plus: domain.Vec{2, 1, 1}}}
	up, down, soa, staggered := star(3), star(3), star(3), star(3)
	up.Width.Plus, down.Width.Minus = domain.Vec{}, domain.Vec{}
	soa.SoA, soa.Components = true, 3
	staggered.Stagger = []bool{true, false, true}
	thin := star(3)
	thin.Connectivity = halo.Corners
	around := [3]bool{true, true, true}
	testdevices.Each(t, 5, func(t *testing.T, set *testdevices.Set) {
		exchangeCases(t, set, []exchangeCase{
			{"every direction", []int{7, 5, 4}, around, domain.Vec{3, 2, 2}, []halo.Spec{all}},
			{"its own neighbor", []int{3, 4, 5}, around, domain.Vec{1, 1, 1}, []halo.Spec{all}},
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
		}, "exchange", "start", "transfers")
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
		{"its own neighbor", place(t, set, size, [3]bool{false, true, false}, domain.Vec{1, 1, 1}), []halo.Spec{star(3)}, 1, 0, "", 0},
		{"its own neighbor on every side", place(t, set, size, around, domain.Vec{1, 1, 1}), []halo.Spec{box}, 1, 0, "", 0},
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

// The messages of a pair are joined, except for rows that are long enough to be sent without packing; the
// return message has the opposite direction.
func TestWhatIsJoined(t *testing.T) {
	set := testdevices.Host(t, 2)
	box := star(2)
	box.Connectivity = halo.Corners
	for _, c := range []struct {
		name     string
		row      int // float64 values in a row of a face
		path     p2p.Path
		messages []string // from the lower rank: directions, and a star if it is not packed
	}{
		{"short rows join the corners", 8191, p2p.Peer, []string{"y+: y- y+ x-y- x+y- x-y+ x+y+"}},
		{"long rows do not", 8192, p2p.Peer, []string{"y-: y-*", "y+: y+*", "x+y+: x-y- x+y- x-y+ x+y+"}},
		{"except on paths without packing", 8192, p2p.Direct, []string{"y+: y- y+ x-y- x+y- x-y+ x+y+"}},
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

// Misuse returns an error that says what to change.
func TestRefusals(t *testing.T) {
	set := testdevices.Host(t, 2)
	size, parts := []int{8, 8, 2}, domain.Vec{1, 1, 2}
	p, good := place(t, set, size, [3]bool{}, parts), star(3)
	plan := must(halo.NewPlan(p, set.Links, p2p.Auto, good))(t)
	f := openField(t, p, good)
	x := must(halo.NewExchanger(plan, set.Compiler, f))(t)
	at := openStreams(t, p)
	changed := func(change func(s *halo.Spec)) halo.Spec {
		s := good
		change(&s)
		return s
	}
	spec := func(change func(s *halo.Spec)) error { return errorOf(halo.NewField(p, changed(change))) }
	g := openField(t, p, changed(func(s *halo.Spec) { s.Element = halo.Float32 }))
	opaque := openField(t, p, changed(func(s *halo.Spec) { s.Element = domain.Bytes(8) }))
	named := openField(t, p, changed(func(s *halo.Spec) { s.Name = "v" }))
	other := openField(t, place(t, set, size, [3]bool{}, parts), good)
	alone := openField(t, place(t, set, size, [3]bool{}, domain.Vec{1, 1, 1}), good)
	sum := open(halo.NewReduction(f, set.Compiler, halo.Sum))(t)
	walls := open(boundary.New(set.Compiler, f, boundary.Faces{}))(t)
	all, swapped := p.Grid.Box(), []*streams.Stream{at[1], at[0]}
	for name, c := range map[string]struct {
		says string
		err  error
	}{
		"a width beyond the subdomain": {"needs 2", spec(func(s *halo.Spec) { s.Width = domain.UniformRadius(3, 2) })},
		"a negative width":             {"width", spec(func(s *halo.Spec) { s.Width.Minus[0] = -1 })},
		"no such element":              {"float64", spec(func(s *halo.Spec) { s.Element = "float16" })},
		"negative components":          {"components", spec(func(s *halo.Spec) { s.Components = -1 })},
		"a stagger of one axis":        {"stagger: must have 3 entries, one per axis, or none, got 1", spec(func(s *halo.Spec) { s.Stagger = []bool{true} })},
		"no such connectivity":         {"connectivity must be valid (got 3)", spec(func(s *halo.Spec) { s.Connectivity = 3 })},
		"no such path":                 {"tunnel", errorOf(halo.NewPlan(p, set.Links, "tunnel", good))},
		"no field":                     {"at least one field", errorOf(halo.NewPlan(p, set.Links, p2p.Auto))},
		"a field of another element":   {"float32", errorOf(halo.NewExchanger(plan, set.Compiler, g))},
		"a field of another placement": {"must have the placement", errorOf(halo.NewExchanger(plan, set.Compiler, other))},
		"too few fields":               {"got 0", errorOf(halo.NewExchanger(plan, set.Compiler))},
		"accumulate another element":   {"float32", errorOf(halo.NewAccumulator(plan, set.Compiler, g))},
		"accumulate bytes": {`"8 bytes"`, errorOf(halo.NewAccumulator(
			must(halo.NewPlan(p, set.Links, p2p.Auto, opaque.Spec))(t), set.Compiler, opaque))},
		"no such operation":        {"sum, min, max or l2", errorOf(halo.NewReduction(f, set.Compiler, "mean"))},
		"a sum of no numbers":      {`complex128, got "8 bytes"`, errorOf(halo.NewReduction(opaque, set.Compiler, halo.Sum))},
		"a sum on too few streams": {"one stream per subdomain (2), got 1", sum.Queue(at[:1])},
		"a sum on other devices":   {"stream for subdomain 0 is on device host 1", sum.Queue(swapped)},
		"walls on no streams":      {"one stream per subdomain (2), got 0", walls.Set(nil)},
		"walls on too many":        {"one stream per subdomain (2), got 3", walls.Set([]*streams.Stream{at[0], at[1], at[0]})},
		"walls on a nil stream":    {"stream for subdomain 1 is nil", walls.Set([]*streams.Stream{at[0], nil})},
		"walls on other devices":   {"stream for subdomain 0 is on ", walls.Set(swapped)},
		"copy another element":     {"decompositions and devices must be equal", halo.CopyTo(g, f)},
		"copy fewer subdomains":    {"decompositions and devices must be equal", halo.CopyTo(alone, f)},
		"copy an equal placement":  {"", halo.CopyTo(other, f)},
		"copy another name":        {"", halo.CopyTo(named, f)},
		"write too few values":     {"got 3", halo.Write(f, all, make([]float64, 3))},
		"write another size":       {"got 4", halo.Write(f, all, make([]float32, all.Points()))},
		"write outside":            {"[1,9)", halo.Write(f, all.Shift(domain.Vec{1, 0, 0}), make([]float64, all.Points()))},
		"read too few values":      {"got 3", halo.Read(make([]int64, 3), f, all)},
		"read another size":        {"got 4", halo.Read(make([]float32, all.Points()), f, all)},
		"no such component":        {"component 1", errorOf(f.Component(1))},
		"measure no devices":       {"needs devices", errorOf(halo.Measure(t.Context(), nil, set.Links, set.Compiler, ""))},
		"a model of no devices": {"needs devices",
			errorOf(halo.LinkModel(t.Context(), nil, set.Links, set.Compiler, "", t.TempDir()))},
		"Wait before Start":          {"call Start", x.Wait(at)},
		"too few streams":            {"one stream per subdomain (2), got 1", x.Start(at[:1])},
		"a stream of another device": {"stream for subdomain 0 is on device host 1", x.Start(swapped)},
		"Start":                      {"", x.Start(at)},
		"Start twice":                {"call Wait", x.Start(at)},
		"Wait":                       {"", x.Wait(at)},
		"Close":                      {"", x.Close()},
		"a closed exchanger":         {"closed", x.Start(at)},
	} {
		if c.says != "" {
			refuses(t, name, c.err, c.says)
		} else if c.err != nil {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// An exchange allocates nothing and starts no goroutine.
func TestExchangeAllocatesNothing(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{8, 8, 8}, [3]bool{true, true, true}, domain.Vec{1, 2, 1})
	a, b := star(3), star(3)
	a.Connectivity, b.Name, b.Components = halo.Corners, "v", 3
	t.Setenv("HALOX_CACHE", t.TempDir())
	c := typed(particle(t), halo.Edges)
	for _, path := range paths {
		t.Run("path="+string(path), func(t *testing.T) {
			plan := must(halo.NewPlan(p, set.Links, path, a, b, c))(t)
			var fields []*halo.Field
			for _, s := range plan.Specs {
				fields = append(fields, openField(t, p, s))
			}
			x := open(halo.NewExchanger(plan, set.Compiler, fields...))(t)
			at := openStreams(t, p)
			before := runtime.NumGoroutine()
			n := testing.AllocsPerRun(20, func() {
				done(t, nil, x.Exchange(at))
				for _, s := range at { // so that the queues do not fill up
					done(t, nil, s.Sync(testLimit))
				}
			})
			if n > 0 {
				t.Errorf("%v allocations per exchange", n)
			}
			// The first Start makes two streams per subdomain.
			if after := runtime.NumGoroutine(); after > before+2*len(at) {
				t.Errorf("%d goroutines before, %d after", before, after)
			}
		})
	}
}
