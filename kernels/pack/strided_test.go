package pack_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
)

// strided is a copy of blocks without memory, and the bytes needed on either side.
type strided struct {
	pack.Strided
	dst, src int64
}

// randomStrided returns blocks whose locations are multiples of unit, with gaps on both sides.
func randomStrided(rng *rand.Rand, length, unit int64) (s strided) {
	s.Dst.Offset, s.Src.Offset, s.Length = rng.Int64N(9)*unit, rng.Int64N(9)*unit, length
	dst, src := length, length
	for range rng.IntN(pack.MaxDims + 1) {
		d := pack.Dim{Count: 1 + rng.Int64N(6), Dst: dst + rng.Int64N(4)*unit, Src: src + rng.Int64N(40)*unit}
		s.Dims = append(s.Dims, d)
		dst, src = d.Count*d.Dst, d.Count*d.Src
	}
	s.dst, s.src = s.Dst.Offset+dst, s.Src.Offset+src
	return s
}

// copyStrided is the definition of the copy of blocks.
func copyStrided(dst, src []byte, length int64, dims []pack.Dim) {
	if len(dims) == 0 {
		copy(dst[:length], src[:length])
		return
	}
	outer := dims[len(dims)-1]
	for i := range outer.Count {
		copyStrided(dst[i*outer.Dst:], src[i*outer.Src:], length, dims[:len(dims)-1])
	}
}

// Blocks of any length, at locations aligned to 1 to 16 bytes, short and with several stretches, are copied to
// their destination with all options, and nothing else changes.
func TestStrided(t *testing.T) {
	lengths := []int64{1, 7, 60, 64, 65, 100, 333, 1000, 2047, 2048, 2049, 5000, 30000}
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		copier := test.Must(pack.NewBoxCopier(b.Compiler, b.Device))(t)
		rng := rand.New(rand.NewPCG(7, 8))
		for _, unit := range []int64{1, 2, 4, 8, 16} {
			for _, length := range lengths {
				t.Run(fmt.Sprintf("unit=%d/length=%d", unit, length), func(t *testing.T) {
					on := *b
					on.T = t
					both := []strided{randomStrided(rng, length*unit, unit), randomStrided(rng, 1+rng.Int64N(200), 1)}
					for name, o := range map[string]pack.StridedOptions{
						"default":           {},
						"one thread block":  {MaxBlocks: 1},
						"two thread blocks": {MaxBlocks: 2},
						"inner loop":        {Loop: pack.InnerLoop},
						"outer loop":        {Loop: pack.OuterLoop},
					} {
						checkStrided(&on, copier, name, o, both)
					}
				})
			}
		}
	})
}

// checkStrided performs copies, each between separate memories, in one launch.
func checkStrided(b *kerneltest.Bench, copier *pack.BoxCopier, name string, o pack.StridedOptions, all []strided) {
	b.T.Helper()
	var copies []pack.Strided
	var check []func()
	for _, s := range all {
		want, from := random(s.dst+50), random(s.src)
		s.Dst.Data, s.Src.Data = kerneltest.Upload(b, want), kerneltest.Upload(b, from)
		copies = append(copies, s.Strided)
		copyStrided(want[s.Dst.Offset:], from[s.Src.Offset:], s.Length, s.Dims)
		check = append(check, func() { holds(b, s.Dst.Data, want, "%s, %+v", name, s) })
	}
	k := test.Must(copier.Strided(name, o, copies...))(b.T)
	defer k.Close()
	b.Do(b.Stream.Launch(k.Kernel), b.Stream.Launch(k.Kernel))
	for _, c := range check {
		c()
	}
}

func TestStridedErrors(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	copier := test.Must(pack.NewBoxCopier(b.Compiler, b.Device))(t)
	m := test.Must(b.Device.Alloc(100))(t)
	at := pack.Point{Data: m.Span(0, 50)}
	fits := pack.Strided{Dst: at, Src: pack.Point{Data: m.Span(50, 50)}, Length: 10, Dims: []pack.Dim{{Count: 5, Dst: 10, Src: 10}}}
	test.Must(copier.Strided("fits", pack.StridedOptions{}, fits))(t)
	long, none, back, deep := fits, fits, fits, fits
	long.Length = 11
	none.Dims = []pack.Dim{{Count: 0}}
	back.Dims = []pack.Dim{{Count: 5, Dst: 10, Src: -10}}
	deep.Dims = make([]pack.Dim, pack.MaxDims+1)
	for name, c := range map[string]struct {
		o    pack.StridedOptions
		copy pack.Strided
	}{
		"too long":            {copy: long},
		"no blocks":           {copy: none},
		"before the start":    {copy: back},
		"too many dimensions": {copy: deep},
		"unknown loop":        {pack.StridedOptions{Loop: "round"}, fits},
		"-1 thread blocks":    {pack.StridedOptions{MaxBlocks: -1}, fits},
	} {
		if _, err := copier.Strided(name, c.o, c.copy); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
