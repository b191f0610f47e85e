package halo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// refuses checks that an error contains a text.
func refuses(t *testing.T, name string, err error, says string) {
	t.Helper()
	test.Says(t, err, says)
}

// stack returns two subdomains with a field, its exchange and streams.
func stack(t *testing.T, set *testdevices.Set) (*halo.Placement, *halo.Field, *halo.Exchanger, []*streams.Stream) {
	t.Helper()
	p := place(t, set, []int{4, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
	f := openField(t, p, star(3))
	plan := must(halo.NewPlan(p, set.Links, p2p.Auto, star(3)))(t)
	x := open(halo.NewExchanger(plan, set.Compiler, f))(t)
	return p, f, x, openStreams(t, p)
}

// After a Start that queued only a part, no caller is told that ghosts have arrived.
func TestWaitAfterFailedStart(t *testing.T) {
	set := testdevices.Host(t, 2)
	p, f, x, at := stack(t, set)
	broken := openStreams(t, p)
	done(t, at, x.Exchange(at), broken[1].Close())
	if err := x.Start(broken); err == nil {
		t.Fatal("a closed stream was accepted")
	}
	for name, err := range map[string]error{"Wait": x.Wait(at), "Start": x.Start(at), "Exchange": x.Exchange(at)} {
		refuses(t, name+" after a Start that failed", err, "has failed")
	}
	done(t, at, x.Close(), f.Close())
}

// A field in an exchange cannot be closed, and neither can the field that it is a component of.
func TestCloseFieldDuringExchange(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{4, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
	many := star(3)
	many.SoA, many.Components = true, 2
	whole := openField(t, p, many)
	one := must(whole.Component(1))(t)
	x := must(halo.NewExchanger(must(halo.NewPlan(p, set.Links, p2p.Auto, one.Spec))(t), set.Compiler, one))(t)
	at := openStreams(t, p)
	done(t, at, x.Start(at))
	for _, f := range []*halo.Field{whole, one} {
		refuses(t, "close a field in use", f.Close(), "call Wait before Close")
	}
	done(t, at, x.Wait(at), whole.Close())
	refuses(t, "a component of a closed field", errorOf(halo.ReadAll[float64](one)), "is closed")
	refuses(t, "exchange a component of a closed field", x.Start(at), "is closed")
	refuses(t, "send one", x.Transfer(0).Send(at[0]), "is closed")
	group := streams.NewWorkerGroup(1, testLimit)
	refuses(t, "receive one", x.Transfer(0).Receive(group, at[1]), "is closed")
	done(t, at, x.Close(), one.Close())
	refuses(t, "send by a closed exchanger", x.Transfer(0).Send(at[0]), "the exchanger is closed")
}

// An exchanger or accumulator and its fields cannot be closed between Start and Wait.
func TestCloseBeforeWait(t *testing.T) {
	set := testdevices.Host(t, 2)
	p, f, x, at := stack(t, set)
	back := must(halo.NewAccumulator(must(halo.NewPlan(p, set.Links, p2p.Auto, star(3)))(t), set.Compiler, f))(t)
	for name, x := range map[string]interface {
		Start(at []*streams.Stream) error
		Wait(at []*streams.Stream) error
		Close() error
	}{"exchanger": x, "accumulator": back} {
		done(t, at, x.Start(at))
		refuses(t, name, x.Close(), "call Wait before Close")
		refuses(t, "the field of an "+name, f.Close(), "call Wait before Close")
		done(t, at, x.Wait(at), x.Start(at), x.Wait(at), x.Close(), x.Close())
	}
	done(t, at, f.Close())
}

func kernelsOf(_, _ []*streams.Kernel, err error) error { return err }

// Nil arguments are rejected before any use of a device.
func TestNilArguments(t *testing.T) {
	set := testdevices.Host(t, 2)
	p, f, x, at := stack(t, set)
	d := p.Decomposition
	empty := &halo.Placement{Decomposition: d, Devices: make([]*streams.Device, 2)}
	plan := must(halo.NewPlan(p, set.Links, p2p.Auto, star(3)))(t)
	group := streams.NewWorkerGroup(1, testLimit)
	var none context.Context
	var session *halo.Session
	var noField *halo.Field
	var exchange *halo.Exchanger
	var sums *halo.Accumulator
	var sum *halo.Reduction
	var ghosts *boundary.Ghosts
	var tables *boundary.Tables
	opened := must(halo.Open(t.Context(), hostDevices(2)))(t)
	defer opened.Close()
	one := func(int) halo.Row[float64] { return func([]float64, domain.Vec) {} }
	for name, c := range map[string]struct {
		says string
		err  error
	}{
		"cut by no session":           {"session is nil", errorOf(session.Cut(t.Context(), halo.Cutting{Size: []int{4, 4}}))},
		"draft by no session":         {"session is nil", errorOf(session.Draft(halo.Cutting{Size: []int{4, 4}}))},
		"an exchange of no session":   {"session is nil", errorOf(session.NewExchanger(t.Context(), f))},
		"measure by no session":       {"session is nil", session.Measure(t.Context())},
		"exchange by no exchanger":    {"exchanger is nil", exchange.Exchange(at)},
		"start no exchanger":          {"exchanger is nil", exchange.Start(at)},
		"wait for no exchanger":       {"exchanger is nil", exchange.Wait(at)},
		"the error of no exchanger":   {"exchanger is nil", exchange.Err()},
		"a rank of no exchanger":      {"exchanger is nil", exchange.ExchangeRank(0, at[0])},
		"send by no exchanger":        {"exchanger is nil", exchange.Transfer(0).Send(at[0])},
		"receive by no exchanger":     {"exchanger is nil", exchange.Transfer(0).Receive(group, at[1])},
		"sum by no accumulator":       {"accumulator is nil", sums.Exchange(at)},
		"start no accumulator":        {"accumulator is nil", sums.Start(at)},
		"wait for no accumulator":     {"accumulator is nil", sums.Wait(at)},
		"queue no reduction":          {"reduction is nil", sum.Queue(at)},
		"join no reduction":           {"reduction is nil", errorOf(sum.Together(t.Context()))},
		"set no ghosts":               {"ghosts are nil", ghosts.Set(at)},
		"complete no ghosts":          {"ghosts are nil", ghosts.Complete(0, at[0])},
		"a component of no field":     {"field is nil", errorOf(noField.Component(0))},
		"open by no context":          {"context is nil", errorOf(halo.Open(none, hostDevices(1)))},
		"cut by no context":           {"context is nil", errorOf(opened.Cut(none, halo.Cutting{Size: []int{4, 4}}))},
		"an exchange by no context":   {"context is nil", errorOf(opened.NewExchanger(none, f))},
		"measure a session so":        {"context is nil", opened.Measure(none)},
		"measure by no context":       {"context is nil", errorOf(halo.Measure(none, set.Devices, set.Links, set.Compiler, ""))},
		"fill by no context":          {"context is nil", halo.FillContext(none, f, one)},
		"gather by no context":        {"context is nil", halo.Gather(none, []float64{}, f, domain.Box{}, 0)},
		"scatter by no context":       {"context is nil", halo.Scatter(none, f, domain.Box{}, []float64{}, 0)},
		"Place nothing":               {"decomposition is nil", errorOf(halo.Place(nil, set.Devices))},
		"Place on no devices":         {"must have a device for each", errorOf(halo.Place(d, empty.Devices))},
		"a field on no placement":     {"placement is nil", errorOf(halo.NewField(nil, star(3)))},
		"a field on no devices":       {"must have a device for each", errorOf(halo.NewField(empty, star(3)))},
		"wrap on no placement":        {"placement is nil", errorOf(halo.WrapField(nil, star(3)))},
		"a plan on no placement":      {"placement is nil", errorOf(halo.NewPlan(nil, set.Links, p2p.Auto, star(3)))},
		"exchange by no plan":         {"plan is nil", errorOf(halo.NewExchanger(nil, set.Compiler, f))},
		"exchange by no compiler":     {"compiler is nil", errorOf(halo.NewExchanger(plan, nil, f))},
		"accumulate by no plan":       {"plan is nil", errorOf(halo.NewAccumulator(nil, set.Compiler, f))},
		"reduce by no compiler":       {"compiler is nil", errorOf(halo.NewReduction(f, nil, halo.Sum))},
		"a halo of nothing":           {"decomposition is nil", errorOf(halo.NewWideHalo(nil, domain.Radius{}, 1))},
		"fill nothing":                {"field is nil", halo.FillPoints(nil, func(domain.Vec) float64 { return 0 })},
		"read nothing":                {"field is nil", errorOf(halo.ReadAll[float64](nil))},
		"read a subdomain of nothing": {"field is nil", halo.ReadSubdomain[float64](nil, nil, 0, domain.Box{})},
		"write nothing":               {"field is nil", halo.Write[float64](nil, domain.Box{}, nil)},
		"a message before the first":  {"must be less than 2, got -1", x.Transfer(-1).Send(at[0])},
		"a message after the last":    {"must be less than 2, got 2", x.Transfer(2).Receive(group, at[0])},
		"a rank alone":                {"see IsDirect", x.ExchangeRank(0, at[0])},
		"send on no stream":           {"stream is nil", x.Transfer(0).Send(nil)},
		"receive on no stream":        {"stream is nil", x.Transfer(0).Receive(group, nil)},
		"receive in no group":         {"group is nil", x.Transfer(1).Receive(nil, at[0])},
		"streams of no placement":     {"placement is nil", errorOf((*halo.Placement)(nil).NewStreams())},
		"streams of no devices":       {"must have a device for each", errorOf(empty.NewStreams())},
		"fit on no placement":         {"placement is nil", halo.Fit(nil, 1, halo.Spec{Element: halo.Float64})},
		"fit -1 fields":               {"at least 0, got -1", halo.Fit(p, -1, halo.Spec{Element: halo.Float64})},
		"kernels by no function":      {"the function is nil", kernelsOf(p.Kernels(domain.Radius{}, nil))},
		"measure no device":           {"none of them nil", errorOf(halo.Measure(t.Context(), []*streams.Device{nil}, set.Links, set.Compiler, ""))},
		"measure by no compiler":      {"compiler is nil", errorOf(halo.Measure(t.Context(), set.Devices, &p2p.Links{}, nil, ""))},
		"launch nothing":              {"kernel must not be nil", at[0].Launch(nil)},
		"record nothing":              {"event must not be nil", at[0].Record(nil)},
		"wait for nothing":            {"event must not be nil", at[0].Wait(nil)},
	} {
		refuses(t, name, c.err, c.says)
	}
	done(t, at, x.Exchange(at), halo.Streams{nil}.Close())
	done(t, at, session.Close(), noField.Close(), exchange.Close(), sums.Close(), sum.Close(), ghosts.Close(), tables.Close())
	if s := fmt.Sprint(session); s != "no session" {
		t.Errorf("a nil session is %q", s)
	}
	exchange.SetLimit(testLimit)
	if r := sum.Result(); exchange.IsDirect() || len(r.Floats)+len(r.Ints)+len(r.Complexes) > 0 {
		t.Errorf("a nil exchanger is one kernel per GPU: %v; a nil reduction returns %v", exchange.IsDirect(), r)
	}
	if session.DriverVersion()+session.CUDAVersion() != "" {
		t.Error("a nil session has a driver")
	}
}

// Ranks out of range, and methods of nil ghosts and wide halos, return errors.
func TestRanksOutOfRange(t *testing.T) {
	set := testdevices.Host(t, 2)
	p, f, x, at := stack(t, set)
	wide := must(halo.NewWideHalo(p.Decomposition, domain.Radius{}, 1))(t)
	refuses(t, "steps by no function", wide.Run(1, nil, nil), "exchange and sweep must not be nil")
	ghosts := open(boundary.New(set.Compiler, f, boundary.All(boundary.Condition{Kind: boundary.Neumann})))(t)
	for _, rank := range []int{-1, 2} {
		for name, err := range map[string]error{
			"SetFixed": ghosts.SetFixed(rank, at[0]), "Refresh": ghosts.Refresh(rank, at[0], 0, 0), "Mirror": ghosts.Mirror(rank, at[0]),
			"Move": ghosts.Move(rank, at[0], 0, 0), "Complete": ghosts.Complete(rank, at[0]), "SetOn": ghosts.SetOn(rank, at[0], 0, 0),
		} {
			refuses(t, name, err, fmt.Sprintf("must be less than 2, got %d", rank))
		}
	}
	refuses(t, "ghosts on no stream", ghosts.Mirror(0, nil), "stream is nil")
	refuses(t, "ghosts by no compiler", errorOf(boundary.New(nil, f, boundary.All(boundary.Condition{Kind: boundary.Neumann}))), "compiler is nil")
	done(t, at, x.Exchange(at))
}

// An exchange that fails on a device returns an error from its call or from a stream that took part, on every
// path and by every way.
func TestExchangeReportsFailures(t *testing.T) {
	for _, path := range paths {
		for name, parts := range map[string]domain.Vec{"planes": {1, 1, 2}, "packed": {2, 1, 1}} {
			for by, exchange := range map[string]way{"exchange": nil, "start": byStart} {
				set := testdevices.Host(t, 2)
				p := place(t, set, []int{4, 4, 6}, [3]bool{}, parts)
				f := must(halo.NewField(p, star(3)))(t)
				x := must(halo.NewExchanger(must(halo.NewPlan(p, set.Links, path, star(3)))(t), set.Compiler, f))(t)
				at := must(p.NewStreams())(t)
				err := f.Parts[1].Data.Memory.Close() // without the knowledge of the field
				if exchange == nil {
					exchange = (*halo.Exchanger).Exchange
				}
				for range 2 {
					err = errors.Join(err, exchange(x, at), at.Sync(testLimit))
				}
				if err == nil {
					t.Errorf("%s by %s along %s: stale ghosts, and no error", name, by, path)
				}
			}
		}
	}
}

// A panic in a caller's function is returned as an error, and the field can still be used.
func TestPanicInFill(t *testing.T) {
	set := testdevices.Host(t, 2)
	_, f, _, _ := stack(t, set)
	err := halo.FillPoints(f, func(p domain.Vec) float64 {
		if p[2] == 1 {
			panic("no value there")
		}
		return 0
	})
	refuses(t, "a value that panics", err, "no value there")
	for name, err := range map[string]error{
		"rows by no function":        halo.Fill[float64](f, nil),
		"rows by none and a context": halo.FillContext[float64](t.Context(), f, nil),
		"points by no function":      halo.FillPoints[float64](f, nil),
		"a row by no function":       halo.Fill(f, func(int) halo.Row[float64] { return nil }),
	} {
		refuses(t, name, err, `halo: fill field "u": the function `)
		if err != nil && strings.Contains(err.Error(), "goroutine") {
			t.Errorf("%s: stack trace in %v", name, err)
		}
	}
	refuses(t, "points by no function of no field", halo.FillPoints[float64](nil, nil), "field is nil")
	done(t, nil, halo.FillPoints(f, func(domain.Vec) float64 { return 2 }))
}

// So is a panic in a function that makes kernels.
func TestPanicInKernels(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{4, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
	layers := domain.UniformRadius(3, 1)
	for name, interior := range map[string]bool{"boundary": false, "interior": true} {
		boundary, inner, err := p.Kernels(layers, func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
			if whole, _ := p.Split(1, layers); rank == 1 && (boxes[0] == whole) == interior {
				panic("no kernel there")
			}
			return nil, nil
		})
		refuses(t, name, err, `the function of Placement.Kernels for subdomain "1" panicked: no kernel there`)
		if boundary != nil || inner != nil {
			t.Errorf("%s: kernels %v and %v with an error", name, boundary, inner)
		}
	}
}

// Values of the wrong type for a field are rejected with their type.
func TestValuesOfWrongType(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{4, 6}, [3]bool{}, domain.Vec{1, 2, 1})
	field := func(e domain.Element, components int, soa bool) *halo.Field {
		return openField(t, p, halo.Spec{Name: "u", Element: e, Components: components, SoA: soa})
	}
	real, three, arrays := field(halo.Float64, 1, false), field(halo.Float64, 3, false), field(halo.Float64, 3, true)
	refuses(t, "integers from reals", errorOf(halo.ReadAll[int64](real)), "type int64")
	refuses(t, "integers into reals", halo.FillPoints(real, func(domain.Vec) uint64 { return 1 }), "type uint64")
	refuses(t, "vectors of integers", errorOf(halo.ReadAll[[3]int64](three)), "type [3]int64")
	refuses(t, "pointers", errorOf(halo.ReadAll[*int](real)), "type *int")
	refuses(t, "arrays together", errorOf(halo.ReadAll[float64](arrays)), "Field.Component")
	refuses(t, "fill arrays together", halo.FillPoints(arrays, func(domain.Vec) float64 { return 1 }), "Field.Component")
	refuses(t, "a component of another size", errorOf(halo.ReadAll[float64](three)), "got 8")
	type named float64
	type point struct{ X, Y, Z float64 }
	for name, err := range map[string]error{
		"named":   errorOf(halo.ReadAll[named](real)),
		"bytes":   errorOf(halo.ReadAll[[8]byte](real)),
		"vectors": errorOf(halo.ReadAll[[3]float64](three)),
		"structs": errorOf(halo.ReadAll[point](three)),
		"complex": errorOf(halo.ReadAll[[2]float32](field(domain.Complex64, 1, false))),
		"opaque":  errorOf(halo.ReadAll[float64](field(domain.Bytes(8), 1, false))),
		"one":     errorOf(halo.ReadAll[float64](field(halo.Float64, 1, true))),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Functions that take an array return an error for one out of range.
func TestArraysOutOfRange(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{4, 6}, [3]bool{}, domain.Vec{1, 2, 1})
	field := func(components int, soa bool) *halo.Field {
		return openField(t, p, halo.Spec{Name: "u", Element: halo.Float64, Components: components, SoA: soa})
	}
	at := openStreams(t, p)
	for name, c := range map[string]struct {
		f               *halo.Field
		rank, component int
	}{
		"of a scalar":           {field(1, false), 0, 3},
		"of vectors":            {field(3, false), 0, 1},
		"after the last":        {field(3, true), 1, 3},
		"before the first":      {field(3, true), 1, -1},
		"of a subdomain beyond": {field(3, true), 2, 0},
		"of no field":           {nil, 0, 0},
	} {
		a := c.f.Array(c.rank, c.component)
		there := c.f
		if there == nil {
			there = field(1, false)
		}
		refuses(t, name+": copied", at[0].Copy(a.Data, there.Array(0, 0).Data), "must be within its memory")
		refuses(t, name+": wrapped", errorOf(halo.WrapField(p, halo.Spec{Name: "w", Element: halo.Float64}, a, a)), "must be in memory of device")
		refuses(t, name+": used", errorOf(p.Devices[0].NewKernel(streams.KernelSpec{Name: "k", Uses: []streams.Span{a.Data}, Run: func() {}})), "must be within its memory")
	}
}

// A field takes part in only one exchange at a time, and only once.
func TestFieldsInTwoExchanges(t *testing.T) {
	session, another := open(halo.Open(t.Context(), hostDevices(2)))(t), open(halo.Open(t.Context(), hostDevices(2)))(t)
	at := func(s *halo.Session) *halo.Placement {
		return must(s.Cut(t.Context(), halo.Cutting{Size: []int{4, 4, 6}, Parts: []int{1, 1, 2}}))(t)
	}
	p := at(session)
	many := star(3)
	many.SoA, many.Components = true, 2
	f, whole, foreign := openField(t, p, star(3)), openField(t, p, many), openField(t, at(another), star(3))
	one, first := must(whole.Component(1))(t), must(whole.Component(0))(t)
	wrapped := must(halo.WrapField(p, star(3), f.Parts...))(t)
	exchanger := func(fields ...*halo.Field) (*halo.Exchanger, error) {
		return session.NewExchanger(t.Context(), fields...)
	}
	for name, fields := range map[string][]*halo.Field{
		"a field": {f, f}, "a field and a component of it": {whole, one}, "a component": {one, first, one}, "what is wrapped": {f, wrapped},
	} {
		refuses(t, name+" twice", errorOf(exchanger(fields...)), "is given twice")
	}
	refuses(t, "a field of another session", errorOf(exchanger(foreign)), "of another")
	refuses(t, "sums of no mode", errorOf(halo.NewReduction(f, session.Compiler, halo.Sum, "fastly")), `got "fastly"`)
	x, y := open(exchanger(f, one))(t), open(exchanger(f))(t)
	parts, all := open(exchanger(first))(t), open(exchanger(whole))(t)
	on := openStreams(t, p)
	done(t, on, x.Start(on), parts.Exchange(on)) // another component
	for name, err := range map[string]error{
		"start it again": x.Start(on), "another exchange of a field": y.Start(on), "all of a component's field": all.Exchange(on),
		"step it": errorOf(f.Hold(true)), "close it": f.Close(), "close its whole": whole.Close(),
	} {
		refuses(t, name, err, "in use")
	}
	done(t, on, x.Wait(on), y.Exchange(on), all.Exchange(on), x.Start(on), x.Wait(on))
	refuses(t, "a second wait", x.Wait(on), "call Start before Wait")
}

// ReadSubdomain reads ghosts from the given subdomain.
func TestReadSubdomain(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{5, 6}, [3]bool{true, true, false}, domain.Vec{1, 2, 1})
		s := star(2)
		s.Connectivity = halo.Corners
		f := openField(t, p, s)
		number := func(q domain.Vec) float64 { return float64(q[0] + 10*q[1]) }
		x := open(halo.NewExchanger(must(halo.NewPlan(p, set.Links, p2p.Auto, s))(t), set.Compiler, f))(t)
		at := openStreams(t, p)
		done(t, nil, halo.FillPoints(f, number))
		done(t, at, x.Exchange(at))
		box := domain.Box{Lo: domain.Vec{-1, 2, 0}, Hi: domain.Vec{6, 7, 1}} // in subdomain 1, which owns [0,5)x[3,6)
		got := make([]float64, box.Points())
		done(t, nil, halo.ReadSubdomain(got, f, 1, box))
		i := 0
		eachPoint(box, func(q domain.Vec) {
			if want := number(domain.Vec{(q[0] + 5) % 5, q[1] % 6}); got[i] != want {
				t.Errorf("ghost %v is %v, want %v", q, got[i], want)
			}
			i++
		})
		refuses(t, "a box too large", halo.ReadSubdomain(got, f, 0, box), "subdomain 0")
		refuses(t, "no such subdomain", halo.ReadSubdomain(got, f, 2, box), "no subdomain 2")
		refuses(t, "too few values", halo.ReadSubdomain(got[1:], f, 1, box), "as many elements as dst")
		done(t, nil, errors.Join(halo.ReadSubdomain([]float64{}, f, 1, domain.Box{}), x.Close()))
	})
}

// Filling stops when the context ends.
func TestFillEndsWithTheContext(t *testing.T) {
	set := testdevices.Host(t, 2)
	_, f, _, _ := stack(t, set)
	ctx, cancel := context.WithCancel(t.Context())
	var rows atomic.Int64
	err := halo.FillContext(ctx, f, func(int) halo.Row[float64] {
		return func([]float64, domain.Vec) { rows.Add(1); cancel() }
	})
	if !errors.Is(err, context.Canceled) || rows.Load() > int64(runtime.GOMAXPROCS(0)) {
		t.Errorf("%v after %d rows", err, rows.Load())
	}
}
