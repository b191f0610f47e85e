package packing

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// autoBench is a host device, a stream, and a folder for what is measured.
type autoBench struct {
	*testdevices.Set
	device *streams.Device
	stream *streams.Stream
	cache  string
}

func newAutoBench(t *testing.T) *autoBench {
	t.Helper()
	b := &autoBench{Set: testdevices.Host(t, 1), cache: filepath.Join(t.TempDir(), "cache")}
	if err := os.Mkdir(b.cache, 0o755); err != nil {
		t.Fatal(err)
	}
	b.device = b.Devices[0]
	s, err := b.device.NewStream(streams.Normal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b.stream = s
	return b
}

func (b *autoBench) packer(t *testing.T, o Options) *Packer {
	t.Helper()
	return b.packerOf(t, o, engines())
}

func (b *autoBench) packerOf(t *testing.T, o Options, engines []engine) *Packer {
	t.Helper()
	o.Cache = b.cache
	p, err := newPacker(b.Compiler, b.device, o, engines)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// column returns a task that packs every third number of some, which all engines suit.
func (b *autoBench) column(t *testing.T, n int) *task {
	t.Helper()
	typ, err := datatype.Vector(n, 1, 3, datatype.Float64)
	if err != nil {
		t.Fatal(err)
	}
	return b.task(t, typ)
}

func (b *autoBench) task(t *testing.T, typ *datatype.Type) *task {
	t.Helper()
	c, err := NewMessageLayout(typ, 1)
	if err != nil {
		t.Fatal(err)
	}
	from, err := b.device.Alloc(max(1, c.Layout.TrueUB()))
	if err != nil {
		t.Fatal(err)
	}
	to, err := b.device.Alloc(max(1, c.Layout.Size()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close(); to.Close() })
	return &task{message: c, packed: to.All(), place: Place{Data: from.All()}}
}

// auto is by of Auto.
func (b *autoBench) auto(t *testing.T, p *Packer, a *task) (Engine, string) {
	t.Helper()
	return b.by(t, p, Auto, a)
}

// by makes a job, checks that it packs what it should, and returns its engine and why.
func (b *autoBench) by(t *testing.T, p *Packer, e Engine, a *task) (Engine, string) {
	t.Helper()
	j, err := p.Pack(e, a.packed, a.place, a.message)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	size := a.message.Layout.Size()
	source, got := a.place.Data.Memory, make([]byte, size)
	host, err := b.device.AllocPinned(source.Size())
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	for i := range host.Bytes() {
		host.Bytes()[i] = byte(i * 7)
	}
	want := make([]byte, len(got))
	if err := a.message.Layout.Pack(want, host.Bytes(), 0); err != nil {
		t.Fatal(err)
	}
	packed := a.packed
	packed.Length = size
	err = errors.Join(b.stream.Copy(source.All(), host.All()), j.Queue(b.stream))
	if size > 0 {
		err = errors.Join(err, b.stream.Copy(host.Span(0, size), packed))
	}
	err = errors.Join(err, b.stream.Sync(time.Minute))
	if copy(got, host.Bytes()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("engine %s packs wrong bytes: %v", j.Engine, err)
	}
	return j.Engine, j.Why
}

// teach has a packer remember columns of so many numbers and more, for which engines take
// so many nanoseconds a number.
func (b *autoBench) teach(t *testing.T, p *Packer, n int, prices map[Engine]time.Duration) {
	t.Helper()
	for i := range 2 * enough {
		a := b.column(t, n+i)
		c := tuning{Kind: p.kind(a), Layout: a.layoutName(), Features: a.features()}
		for e, price := range prices {
			c.Times = append(c.Times, timed{e, price * time.Duration(n+i)})
		}
		slices.SortFunc(c.Times, func(a, b timed) int { return int(a.Time - b.Time) })
		p.tunings.put(c)
	}
}

// lesson is what engines take for a number, in nanoseconds: that of copies is hopeless.
var lesson = map[Engine]time.Duration{Copies: 100, Targeted: 5, Transform: 6, Bypass: 7, Units: 4, Tree: 5}

// Auto measures, remembers, and does not measure again, whichever packer it is.
func TestAutoRemembers(t *testing.T) {
	b := newAutoBench(t)
	a := b.column(t, 100)
	p := b.packer(t, Options{})
	engine, why := b.auto(t, p, a)
	for _, e := range Engines() {
		if !strings.Contains(why, string(e)+" ") {
			t.Errorf("nothing is said of %s: %s", e, why)
		}
	}
	if !strings.HasPrefix(why, "measured: "+string(engine)+" ") || strings.Contains(why, "skipped") {
		t.Errorf("engine %s: %s", engine, why)
	}
	for name, again := range map[string]*Packer{"the same packer": p, "another": b.packer(t, Options{})} {
		if e, w := b.auto(t, again, a); e != engine || w != why {
			t.Errorf("%s: %s, %s", name, e, w)
		}
	}
	other := b.packer(t, Options{Blocks: 1})
	if b.auto(t, other, a); len(other.tunings.all) != 2 {
		t.Errorf("with other options: %d tunings", len(other.tunings.all))
	}
}

// What the model says is hopeless is not measured, and Why says so.
func TestAutoSkipsTheHopeless(t *testing.T) {
	b := newAutoBench(t)
	p := b.packer(t, Options{})
	b.teach(t, p, 300, lesson)
	a := b.column(t, 290)
	_, why := b.auto(t, p, a)
	measured, skipped, ok := strings.Cut(why, "; skipped, predicted hopeless: ")
	if !ok || strings.Contains(measured, "copies") || skipped != "copies 29.0 us" || !strings.Contains(measured, "tree") {
		t.Error(why)
	}
	if _, again := b.auto(t, b.packer(t, Options{}), a); again != why {
		t.Errorf("remembered: %s", again)
	}
	if c, ok := p.tunings.get(p.kind(a), a.layoutName()); !ok || len(c.Times) != 5 || !slices.Equal(c.Skipped, []timed{{Copies, 29000}}) {
		t.Errorf("%+v", c)
	}
	if _, why := b.auto(t, p, b.column(t, 2000)); strings.Contains(why, "skipped") {
		t.Errorf("the model was asked about what is far from all that it knows: %s", why)
	}
}

// An engine that is predicted fastest but does not suit is none that others are far from.
func TestAutoSkipsByWhatSuits(t *testing.T) {
	b := newAutoBench(t)
	p := b.packer(t, Options{Predict: true})
	typ, err := datatype.Indexed([]int{1, 2, 1, 3}, []int{0, 4, 8, 20}, datatype.Float64)
	if err != nil {
		t.Fatal(err)
	}
	a := b.task(t, typ) // not for targeted
	for i := range enough {
		p.tunings.put(tuning{Kind: p.kind(a), Layout: fmt.Sprint(i), Features: a.features(), Times: []timed{
			{Targeted, 1}, {Units, 1000}, {Bypass, 1100}, {Transform, 2000}, {Tree, 9000}, {Copies, 9000},
		}})
	}
	if e, why := b.auto(t, p, a); e != Units || !strings.HasPrefix(why, "predicted: ") {
		t.Errorf("%s: %s", e, why)
	}
	p.options.Predict = false
	_, why := b.auto(t, p, a)
	measured, skipped, _ := strings.Cut(why, "; skipped, predicted hopeless: ")
	if skipped != "copies 9.0 us, tree 9.0 us" || !strings.Contains(measured, "transform") {
		t.Error(why)
	}
}

// With Predict nothing is measured where the model can tell.
func TestPredictByWhatWasTaught(t *testing.T) {
	b := newAutoBench(t)
	p := b.packer(t, Options{Predict: true})
	b.teach(t, p, 300, lesson)
	known := len(p.tunings.all)
	e, why := b.auto(t, p, b.column(t, 290))
	if e != Units || !strings.HasPrefix(why, "predicted: units 1.2 us, ") || len(p.tunings.all) != known {
		t.Errorf("%s, %s, %d more", e, why, len(p.tunings.all)-known)
	}
	if _, why := b.auto(t, p, b.column(t, 300)); !strings.HasPrefix(why, "measured: units 1.2 us, ") {
		t.Errorf("what was measured is predicted: %s", why)
	}
	if _, why := b.auto(t, p, b.column(t, 5000)); !strings.HasPrefix(why, "measured: ") {
		t.Errorf("far from what was taught: %s", why)
	}
	if e, why := b.auto(t, p, b.column(t, 0)); e != Targeted || why != "there is nothing to do" {
		t.Errorf("nothing at all: %s, %s", e, why)
	}
}

// An engine of which nothing is known may be the fastest, unless it does not suit.
func TestPredictWhereAnEngineIsUnknown(t *testing.T) {
	b := newAutoBench(t)
	p := b.packer(t, Options{Predict: true})
	b.teach(t, p, 300, map[Engine]time.Duration{Copies: 100, Targeted: 5, Transform: 6, Bypass: 7, Units: 4})
	a := b.column(t, 290)
	if _, why := b.auto(t, p, a); !strings.HasPrefix(why, "measured: ") || !strings.Contains(why, "tree") {
		t.Error(why)
	}
	fragment, err := (&MessageLayout{Type: a.message.Type, Count: 1, Layout: a.message.Layout}).slice(8, 290*8)
	if err != nil {
		t.Fatal(err)
	}
	a.message = fragment // which tree does not do
	if e, why := b.auto(t, p, a); e != Units || !strings.HasPrefix(why, "predicted: ") {
		t.Errorf("%s: %s", e, why)
	}
}

// From an empty cache, a program that makes many layouts soon measures no more.
func TestPredictLearns(t *testing.T) {
	b := newAutoBench(t)
	p := b.packer(t, Options{Predict: true})
	measured := 0
	for i := range 3 * enough {
		_, why := b.auto(t, p, b.column(t, 200+i*37%100))
		if strings.HasPrefix(why, "measured: ") {
			measured++
		}
	}
	if measured < enough || measured > enough+3 {
		t.Errorf("of %d layouts, %d were measured", 3*enough, measured)
	}
	again := b.packer(t, Options{Predict: true})
	if _, why := b.auto(t, again, b.column(t, 333)); !strings.HasPrefix(why, "predicted: ") {
		t.Errorf("another packer with the same cache: %s", why)
	}
}

// Two types with one layout: what suits one need not suit the other.
func TestAutoOfAnotherTypeWithTheLayout(t *testing.T) {
	b := newAutoBench(t)
	p := b.packer(t, Options{})
	made := func(typ *datatype.Type, err error) *task {
		if err != nil {
			t.Fatal(err)
		}
		return b.task(t, typ)
	}
	equal := made(datatype.IndexedBlock(3, []int{0, 3, 10, 25}, datatype.Int32))
	unequal := made(datatype.Indexed([]int{6, 3, 3}, []int{0, 10, 25}, datatype.Int32))
	if equal.layoutName() != unequal.layoutName() {
		t.Fatal("the layouts differ")
	}
	p.tunings.put(tuning{Kind: p.kind(equal), Layout: equal.layoutName(), Features: equal.features(), Times: []timed{{Targeted, 1}, {Units, 2}}})
	if e, _ := b.auto(t, p, equal); e != Targeted {
		t.Errorf("blocks of one length: %s", e)
	}
	if e, _ := b.auto(t, p, unequal); e != Units {
		t.Errorf("blocks that have become one: %s", e)
	}
}

// Tunings that cannot have been measured are not used, and are measured again.
func TestAutoIgnoresABrokenCache(t *testing.T) {
	for name, spoil := range map[string]func(x *tuning){
		"no times":          func(x *tuning) { x.Times = nil },
		"no such engine":    func(x *tuning) { x.Times[0].Engine = "steam" },
		"a negative time":   func(x *tuning) { x.Times[0].Time = -5 },
		"skipped, no time":  func(x *tuning) { x.Skipped = []timed{{Tree, 0}} },
		"no features":       func(x *tuning) { x.Features = features{} },
		"negative features": func(x *tuning) { x.Features[perBlock] = -1 },
	} {
		x := tuningOf("a", 5)
		if !x.valid(Engines()) {
			t.Fatalf("%+v is not valid", x)
		}
		if spoil(&x); x.valid(Engines()) {
			t.Errorf("%s: %+v is valid", name, x)
		}
	}
	b := newAutoBench(t)
	a := b.column(t, 50)
	first := b.packer(t, Options{})
	for _, took := range []time.Duration{5, -5} {
		x := tuning{first.kind(a), a.layoutName(), a.features(), []timed{{Units, took}}, nil}
		if err := first.tunings.store.Put([]tuning{x}); err != nil {
			t.Fatal(err)
		}
		p := b.packer(t, Options{})
		_, why := b.auto(t, p, a)
		if known := why == "measured: units 0.0 us"; known != (took > 0) || len(p.tunings.all) != 1 {
			t.Errorf("with %d ns in the cache: %s, %d tunings", took, why, len(p.tunings.all))
		}
	}
}

// A model is of one kind of task, and of all that was measured until now.
func TestModelsAreFittedAnew(t *testing.T) {
	b := newAutoBench(t)
	p := b.packer(t, Options{})
	b.teach(t, p, 300, lesson)
	a := b.column(t, 290)
	x := a.features()
	before := p.tunings.model(p.kind(a)).forecasts(x, Engines())[0]
	if before.Engine != Units || p.tunings.model("another kind").forecasts(x, Engines())[0].known() {
		t.Errorf("%v", before)
	}
	b.teach(t, p, 300, map[Engine]time.Duration{Bypass: 2, Units: 4})
	if after := p.tunings.model(p.kind(a)).forecasts(x, Engines())[0]; after.Engine != Bypass {
		t.Errorf("%v", after)
	}
}
