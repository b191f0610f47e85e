package packing

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// autoBench is a CPU device, a stream, and a folder for measurements.
type autoBench struct {
	device *streams.Device
	stream *streams.Stream
	cache  string
}

func newAutoBench(t *testing.T) *autoBench {
	t.Helper()
	b := &autoBench{device: testdevices.Host(t, 1).Devices[0], cache: filepath.Join(t.TempDir(), "cache")}
	b.stream = test.Must(b.device.NewStream(streams.Normal))(t)
	return b
}

func (b *autoBench) packer(t *testing.T, o Options) *Packer {
	t.Helper()
	return b.packerOf(t, o, engines())
}

// packerOf returns a packer that shares only the folder with other packers.
func (b *autoBench) packerOf(t *testing.T, o Options, engines []engine) *Packer {
	t.Helper()
	p := test.Must(newPacker(kernels.NewCompiler(kernels.Options{Cache: b.cache}), b.device, o, engines))(t)
	t.Cleanup(func() { test.Report(t, p.Close()) })
	return p
}

// teach makes the packer save times of engines for a task.
func (b *autoBench) teach(t *testing.T, p *Packer, a *task, times ...timed) {
	t.Helper()
	got, known, err := kernels.Remember(p.compiler, "packing", p.tuningKey(a), p.isTuned,
		func() ([]timed, error) { return times, nil })
	if err != nil || known {
		t.Fatalf("%v was cached: %v", got, err)
	}
}

// column returns a task that packs every third number, which all engines support.
func (b *autoBench) column(t *testing.T, n int) *task {
	t.Helper()
	return b.task(t, test.Must(datatype.Vector(n, 1, 3, datatype.Float64))(t))
}

func (b *autoBench) task(t *testing.T, typ *datatype.Type) *task {
	t.Helper()
	c := test.Must(NewMessageLayout(typ, 1))(t)
	from := test.Must(b.device.Alloc(max(1, c.Layout.TrueUB())))(t)
	to := test.Must(b.device.Alloc(max(1, c.Layout.Size())))(t)
	t.Cleanup(func() { from.Close(); to.Close() })
	return &task{message: c, packed: to.All(), place: Place{Data: from.All()}}
}

// by makes a job, checks the bytes that it packs, and returns its engine and why it was chosen.
func (b *autoBench) by(t *testing.T, p *Packer, e Engine, a *task) (Engine, string) {
	t.Helper()
	j := test.Must(p.Pack(e, a.packed, a.place, a.message))(t)
	defer j.Close()
	size := a.message.Layout.Size()
	source, want := a.place.Data.Memory, make([]byte, size)
	host := test.Must(b.device.AllocPinned(source.Size()))(t)
	defer host.Close()
	for i := range host.Bytes() {
		host.Bytes()[i] = byte(i * 7)
	}
	packed := a.packed
	packed.Length = size
	err := errors.Join(a.message.Layout.Pack(want, host.Bytes(), 0), b.stream.Copy(source.All(), host.All()), j.Queue(b.stream),
		b.stream.Copy(host.Span(0, size), packed), b.stream.Sync(time.Minute))
	if err != nil || !bytes.Equal(host.Bytes()[:size], want) {
		t.Errorf("engine %s packs wrong bytes: %v", j.Engine, err)
	}
	return j.Engine, j.Why
}

// Auto measures once and saves the result for all packers.
func TestAutoMeasuresOnce(t *testing.T) {
	b := newAutoBench(t)
	a := b.column(t, 100)
	p := b.packer(t, Options{})
	engine, why := b.by(t, p, Auto, a)
	for _, e := range Engines() {
		if !strings.Contains(why, string(e)+" ") {
			t.Errorf("%s is missing: %s", e, why)
		}
	}
	if !strings.HasPrefix(why, "measured: "+string(engine)+" ") {
		t.Errorf("engine %s: %s", engine, why)
	}
	for name, again := range map[string]*Packer{"the same packer": p, "another": b.packer(t, Options{})} {
		if e, w := b.by(t, again, Auto, a); e != engine || w != why {
			t.Errorf("%s: %s, %s", name, e, w)
		}
	}
	if other := b.packer(t, Options{Blocks: 1}); other.tuningKey(a) == p.tuningKey(a) {
		t.Errorf("with other options too: %s", p.tuningKey(a))
	}
}

// Times that cannot be measurements of the engines are ignored.
func TestAutoIgnoresABrokenCache(t *testing.T) {
	p := newAutoBench(t).packer(t, Options{})
	for name, c := range map[string]struct {
		times []timed
		valid bool
	}{
		"valid":           {[]timed{{Units, 5}, {Tree, 6}}, true},
		"no times":        {nil, false},
		"no such engine":  {[]timed{{Units, 5}, {"steam", 6}}, false},
		"a negative time": {[]timed{{Units, -5}}, false},
	} {
		if p.isTuned(c.times) != c.valid {
			t.Errorf("%s: valid %v", name, !c.valid)
		}
	}
}

// Two types with one layout: an engine may support only one of them.
func TestAutoOfTypesWithOneLayout(t *testing.T) {
	b := newAutoBench(t)
	p := b.packer(t, Options{})
	equal := b.task(t, test.Must(datatype.IndexedBlock(3, []int{0, 3, 10, 25}, datatype.Int32))(t))
	unequal := b.task(t, test.Must(datatype.Indexed([]int{6, 3, 3}, []int{0, 10, 25}, datatype.Int32))(t))
	if p.tuningKey(equal) != p.tuningKey(unequal) {
		t.Fatal("the layouts differ")
	}
	b.teach(t, p, equal, timed{Targeted, 1}, timed{Units, 2})
	if e, _ := b.by(t, p, Auto, equal); e != Targeted {
		t.Errorf("blocks of one length: %s", e)
	}
	if e, _ := b.by(t, p, Auto, unequal); e != Units {
		t.Errorf("joined blocks: %s", e)
	}
}
