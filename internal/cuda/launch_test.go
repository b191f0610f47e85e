//go:build linux && cgo

package cuda_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

var (
	grid  = cuda.Dim3{X: 5, Y: 6, Z: 7}
	block = cuda.Dim3{X: 32, Y: 4, Z: 2}
)

// sweepArg has the mixed sizes, and so the padding, of a kernel's argument.
type sweepArg struct {
	in, out cuda.DevicePtr
	nx      int64
	radius  int16
	last    bool
	scale   float32
	weights [3]float64
	tail    uint8
}

func bytesOf(a *sweepArg) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a))
}

func TestLaunchArrivesAsGiven(t *testing.T) {
	r := newRig(t, 2)
	ctx := r.contexts[1]
	stream := test.Must(ctx.StreamCreate(0))(t)
	arg := sweepArg{in: 0xdeadbeefcafe, out: 3, nx: -1 << 40, radius: -2, last: true, scale: 1.5,
		weights: [3]float64{1, -2.25, 1e300}, tail: 0xAB}
	fn := kernel(t, ctx, "sweep", int(unsafe.Sizeof(arg)))
	l := test.Must(cuda.NewLaunch(fn, grid, block, 1234, bytesOf(&arg)))(t)
	defer l.Free()
	want := cudafake.Launch{Kernel: "sweep", Device: 1, Grid: [3]uint32{5, 6, 7}, Block: [3]uint32{32, 4, 2}, Shared: 1234,
		Arg: bytes.Clone(bytesOf(&arg))}
	arg = sweepArg{} // the launch has its own copy
	test.Check(t, ctx.Launch(l, stream))
	if got := r.fake.Launches(); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLaunchAgainWithAChangedArgument(t *testing.T) {
	r := newRig(t, 1)
	ctx := r.contexts[0]
	stream := test.Must(ctx.StreamCreate(0))(t)
	l := test.Must(cuda.NewLaunch(kernel(t, ctx, "k", 4), grid, block, 0, []byte{1, 2, 3, 4}))(t)
	defer l.Free()
	test.Check(t, ctx.Launch(l, stream))
	l.Arg()[2] = 9
	test.Check(t, ctx.Launch(l, stream))
	got := r.fake.Launches()
	if !bytes.Equal(got[0].Arg, []byte{1, 2, 3, 4}) || !bytes.Equal(got[1].Arg, []byte{1, 2, 9, 4}) {
		t.Errorf("got %v and %v", got[0].Arg, got[1].Arg)
	}
}

// A cooperative launch says so to the driver, which refuses one of more blocks than fit.
func TestLaunchCooperative(t *testing.T) {
	r := newRig(t, 1)
	ctx := r.contexts[0]
	stream := test.Must(ctx.StreamCreate(0))(t)
	fn := kernel(t, ctx, "k", 0)
	cores := test.Must(ctx.Device().Attribute(cuda.AttrMultiprocessorCount))(t)
	fits := test.Must(ctx.OccupancyMaxActiveBlocks(fn, 256, 0))(t) * cores
	for i, c := range []struct {
		blocks      int
		cooperative bool
		want        error
	}{{fits, true, nil}, {fits + 1, true, cuda.CodeCooperativeTooBig}, {fits + 1, false, nil}} {
		l := test.Must(cuda.NewLaunch(fn, cuda.Dim3{X: uint32(c.blocks), Y: 1, Z: 1}, cuda.Dim3{X: 256, Y: 1, Z: 1}, 0, nil))(t)
		defer l.Free()
		l.SetCooperative(c.cooperative)
		l.SetEarly(true)
		test.Is(t, ctx.Launch(l, stream), c.want)
		if all := r.fake.Launches(); c.want == nil && (all[len(all)-1].Cooperative != c.cooperative || !all[len(all)-1].Early) {
			t.Errorf("launch %d arrived as %+v", i, all[len(all)-1])
		}
	}
}

func TestLaunchAfterFree(t *testing.T) {
	ctx := newRig(t, 1).contexts[0]
	stream := test.Must(ctx.StreamCreate(0))(t)
	l := test.Must(cuda.NewLaunch(kernel(t, ctx, "k", 0), grid, block, 0, nil))(t)
	l.Free()
	l.Free()
	if err := ctx.Launch(l, stream); !errors.Is(err, cuda.CodeInvalidHandle) || l.Arg() != nil {
		t.Errorf("got %v, argument %v", err, l.Arg())
	}
}

func TestNewLaunchRefusesImpossibleGeometry(t *testing.T) {
	_, err := cuda.NewLaunch(1, grid, cuda.Dim3{X: 1025, Y: 1, Z: 1}, 0, nil)
	test.Says(t, err, "1025x1x1")
}

func TestModules(t *testing.T) {
	r := newRig(t, 1)
	ctx := r.contexts[0]
	if _, err := ctx.ModuleLoad([]byte("nonsense")); !errors.Is(err, cuda.CodeInvalidImage) ||
		!strings.HasSuffix(err.Error(), "device kernel image is invalid: ptxas fatal: this is not an image") {
		t.Errorf("a bad image: %v", err)
	}
	m := test.Must(ctx.ModuleLoad(cudafake.Image(map[string]int{"pack": 8, "unpack": 16})))(t)
	if _, err := ctx.ModuleFunction(m, "pac"); !errors.Is(err, cuda.CodeNotFound) || !strings.Contains(err.Error(), `"pac"`) {
		t.Errorf("a missing kernel: %v", err)
	}
	fn := test.Must(ctx.ModuleFunction(m, "unpack"))(t)
	test.Check(t, ctx.FunctionSetAttribute(fn, cuda.FuncMaxDynamicShared, 114<<10))
	if v := test.Must(ctx.FunctionAttribute(fn, cuda.FuncMaxDynamicShared))(t); v != 114<<10 {
		t.Errorf("dynamic shared memory %d", v)
	}
	if n := test.Must(ctx.OccupancyMaxActiveBlocks(fn, 256, 114<<10))(t); n != 2 {
		t.Errorf("%d blocks a multiprocessor", n)
	}
	if n := test.Must(ctx.OccupancyMaxActiveBlocks(fn, 256, 115<<10))(t); n != 0 {
		t.Errorf("%d blocks per multiprocessor, with more shared memory than the function may have", n)
	}
	test.Check(t, ctx.ModuleUnload(m))
	test.Is(t, ctx.ModuleUnload(m), cuda.CodeInvalidHandle)
}
