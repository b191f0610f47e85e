package pack_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// BenchmarkCutList times the first copy of a table of units, for which the list is
// cut, from the list to the last byte.
func BenchmarkCutList(b *testing.B) {
	d := newListBed(b)
	packer := kerneltest.Must(pack.NewUnitPacker(d.compiler, d.device))(b)
	for _, layout := range listLayouts {
		for _, size := range d.sizes() {
			for _, part := range []int{1024, 4096} {
				b.Run(fmt.Sprintf("layout=%s/bytes=%d/part=%d", layout.name, size, part), func(b *testing.B) {
					list, room := layout.list(size)
					memory, buffer := kerneltest.Must(d.device.Alloc(room))(b), kerneltest.Must(d.device.Alloc(sizeOf(list)))(b)
					defer closeAll(b, memory, buffer)
					b.SetBytes(sizeOf(list))
					for b.Loop() {
						b.StopTimer()
						table := kerneltest.Must(packer.Table(list, pack.UnitOptions{Part: part}))(b)
						pack := kerneltest.Must(table.Pack(buffer.All(), memory.All(), 0))(b)
						b.StartTimer()
						d.do(b, pack.Queue(d.stream), d.stream.Sync(kerneltest.Limit))
						b.StopTimer()
						closeAll(b, pack, table)
						b.StartTimer()
					}
				})
			}
		}
	}
}

// listBed is a device to time lists on.
type listBed struct {
	device   *streams.Device
	stream   *streams.Stream
	compiler *kernels.Compiler
}

func newListBed(b *testing.B) *listBed {
	set := anyDevice(b)
	d := set.Devices[0]
	return &listBed{d, kerneltest.Must(d.NewStream(streams.Normal))(b), set.Compiler}
}

// anyDevice opens the GPUs, or a host device where there are none.
func anyDevice(b *testing.B) *testdevices.Set {
	b.Helper()
	p, err := streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
	if errors.Is(err, streams.ErrNoDriver) {
		return testdevices.Host(b, 1)
	}
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	return testdevices.GPUs(b)
}

// sizes are the packed bytes to try, about.
func (d *listBed) sizes() []int64 {
	if d.device.Backend == streams.Host {
		return []int64{64 << 10, 4 << 20}
	}
	return []int64{1 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20, 512 << 20}
}

// do ends the benchmark at an error.
func (d *listBed) do(b *testing.B, errs ...error) {
	b.Helper()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
}

func closeAll(b *testing.B, closers ...interface{ Close() error }) {
	b.Helper()
	for _, c := range closers {
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// listLayout makes lists of about so many bytes, and says how much memory they lie in,
// from displacement 0 on.
type listLayout struct {
	name string
	list func(bytes int64) (list []pack.Block, room int64)
}

var listLayouts = []listLayout{
	{"triangle", triangle},
	{"mixed", mixed},
	apart(4), apart(8), apart(24), apart(40), apart(64), apart(128), apart(256), apart(1032), apart(4096),
}

// triangle is the lower triangle of a matrix of float64, by columns.
func triangle(bytes int64) (list []pack.Block, room int64) {
	n := int64(1)
	for n*(n+1)*4 < bytes {
		n++
	}
	for j := range n {
		list = append(list, pack.Block{Displacement: 8 * j * (n + 1), Length: 8 * (n - j)})
	}
	return list, 8 * n * n
}

// mixed is blocks of 8 to 5000 bytes, and a long one of half of all bytes amid them.
func mixed(bytes int64) (list []pack.Block, room int64) {
	rng := rand.New(rand.NewPCG(1, 2))
	add := func(n int64) {
		list = append(list, pack.Block{Displacement: room, Length: n})
		room += n + 8*rng.Int64N(100)
	}
	for half := range int64(2) {
		for done := int64(0); done < bytes/4; {
			n := 8 * (1 + rng.Int64N(625))
			add(n)
			done += n
		}
		if half == 0 {
			add(bytes / 16 * 8)
		}
	}
	return list, room
}

// apart is blocks of one length, as far apart as they are long.
func apart(length int64) listLayout {
	return listLayout{fmt.Sprintf("equal-%d", length), func(bytes int64) (list []pack.Block, room int64) {
		bytes = min(bytes, length<<22)
		for at := int64(0); at < bytes; at += length {
			list = append(list, pack.Block{Displacement: 2 * at, Length: length})
		}
		return list, 2 * length * int64(len(list))
	}}
}

func sizeOf(list []pack.Block) (n int64) {
	for _, b := range list {
		n += b.Length
	}
	return n
}
