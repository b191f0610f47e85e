//go:build linux && cgo

package cuda_test

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

func TestCopies(t *testing.T) {
	const n = 1000
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	stream := test.Must(a.StreamCreate(0))(t)
	src, srcPtr := pinned(t, a, n)
	dst, dstPtr := pinned(t, a, n)
	first, second := test.Must(a.MemAlloc(n))(t), test.Must(a.MemAlloc(n))(t)
	remote := test.Must(b.MemAlloc(n))(t)
	for i := range src {
		src[i] = byte(i * 7)
	}

	test.Check(t, a.MemcpyHtoDAsync(first, srcPtr, n, stream))
	test.Check(t, a.MemcpyPeerAsync(remote, b, first, a, n, stream))
	test.Check(t, a.MemsetD8Async(first, 0xEE, n, stream))
	test.Check(t, a.MemcpyPeerAsync(second, a, remote, b, n, stream))
	test.Check(t, a.MemcpyDtoDAsync(first+1, second+3, n-100, stream))
	test.Check(t, a.MemcpyDtoHAsync(dstPtr, first, n, stream))
	test.Check(t, a.StreamSynchronize(stream))

	want := bytes.Repeat([]byte{0xEE}, n)
	copy(want[1:], src[3:n-97])
	if !bytes.Equal(dst, want) {
		t.Errorf("got  %x\nwant %x", dst[:16], want[:16])
	}
}

func TestCopiesStayInTheirMemory(t *testing.T) {
	ctx := newRig(t, 1).contexts[0]
	stream := test.Must(ctx.StreamCreate(0))(t)
	_, host := pinned(t, ctx, 64)
	memory := test.Must(ctx.MemAlloc(32))(t)
	test.Is(t, ctx.MemcpyHtoDAsync(memory, host, 33, stream), cuda.CodeInvalidValue)
}

// A box goes from pinned memory over both devices and back, and lies at other
// distances at each stop, so that no two numbers can stand for each other.
func TestBoxCopies(t *testing.T) {
	const size = 2000
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	s := test.Must(a.StreamCreate(0))(t)
	src, srcPtr := pinned(t, a, size)
	dst, dstPtr := pinned(t, a, size)
	first, second, third := test.Must(a.MemAlloc(size))(t), test.Must(a.MemAlloc(size))(t), test.Must(a.MemAlloc(size))(t)
	remote := test.Must(b.MemAlloc(size))(t)
	for i := range src {
		src[i], dst[i] = byte(i*7+i/256), 0xEE
	}
	n := cuda.Extent{Width: 11, Height: 3, Depth: 5}
	at := func(p cuda.DevicePtr, pitch, rows uint64) cuda.Pitched {
		return cuda.Pitched{Device: p, Pitch: pitch, Rows: rows}
	}
	from := cuda.Pitched{Host: unsafe.Add(srcPtr, 9), Pitch: 23, Rows: 7}
	to := cuda.Pitched{Host: unsafe.Add(dstPtr, 4), Pitch: 17, Rows: 4}
	test.Check(t, a.Memcpy3DAsync(at(first+1, 12, 3), from, n, s))
	test.Check(t, a.Memcpy3DAsync(at(second, 13, 8), at(first+1, 12, 3), n, s))
	test.Check(t, a.Memcpy3DPeerAsync(at(remote+5, 29, 6), b, at(second, 13, 8), a, n, s))
	test.Check(t, a.Memcpy3DPeerAsync(at(third, 16, 5), a, at(remote+5, 29, 6), b, n, s))
	test.Check(t, a.Memcpy3DAsync(to, at(third, 16, 5), n, s))
	test.Check(t, a.StreamSynchronize(s))

	want := bytes.Repeat([]byte{0xEE}, size)
	for z := range 5 {
		for y := range 3 {
			copy(want[4+17*(4*z+y):][:11], src[9+23*(7*z+y):])
		}
	}
	if !bytes.Equal(dst, want) {
		t.Errorf("got  %x\nwant %x", dst[:64], want[:64])
	}
}

func TestBoxCopiesAreChecked(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	s := test.Must(a.StreamCreate(0))(t)
	_, host := pinned(t, a, 100)
	p, far := test.Must(a.MemAlloc(100))(t), test.Must(b.MemAlloc(100))(t)
	good := cuda.Pitched{Device: p, Pitch: 10, Rows: 5}
	n := cuda.Extent{Width: 10, Height: 5, Depth: 2} // all of the memory
	limit := uint64(test.Must(a.Device().Attribute(cuda.AttrMaxPitch))(t))
	for _, tc := range []struct {
		name string
		err  error
		want error
	}{
		{"all of the memory", a.Memcpy3DAsync(good, cuda.Pitched{Host: host, Pitch: 10, Rows: 5}, n, s), nil},
		{"one plane has no height", a.Memcpy3DAsync(good, good, cuda.Extent{Width: 10, Height: 9, Depth: 1}, s), nil},
		{"past the end", a.Memcpy3DAsync(cuda.Pitched{Device: p + 1, Pitch: 10, Rows: 5}, good, n, s), cuda.CodeInvalidValue},
		{"past the end of pinned memory", a.Memcpy3DAsync(good, cuda.Pitched{Host: host, Pitch: 10, Rows: 6}, n, s), cuda.CodeInvalidValue},
		{"a small pitch", a.Memcpy3DAsync(good, cuda.Pitched{Device: p, Pitch: 9, Rows: 5}, n, s), cuda.CodeInvalidValue},
		{"planes that overlap", a.Memcpy3DAsync(cuda.Pitched{Device: p, Pitch: 10, Rows: 4}, good, n, s), cuda.CodeInvalidValue},
		{"a pitch beyond the limit", a.Memcpy3DAsync(cuda.Pitched{Device: p, Pitch: limit + 1, Rows: 1}, good,
			cuda.Extent{Width: 10, Height: 1, Depth: 1}, s), cuda.CodeInvalidValue},
		{"an empty box", a.Memcpy3DAsync(good, good, cuda.Extent{Width: 10, Height: 0, Depth: 1}, s), cuda.CodeInvalidValue},
		{"a peer's memory without access", a.Memcpy3DAsync(cuda.Pitched{Device: far, Pitch: 10, Rows: 5}, good, n, s), cuda.CodeInvalidContext},
		{"contexts the wrong way round", a.Memcpy3DPeerAsync(cuda.Pitched{Device: far, Pitch: 10, Rows: 5}, a, good, b, n, s), cuda.CodeInvalidContext},
		{"the default stream", a.Memcpy3DAsync(good, good, n, 0), cuda.CodeInvalidHandle},
		{"the default stream, to a peer", a.Memcpy3DPeerAsync(good, a, good, a, n, 0), cuda.CodeInvalidHandle},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v", tc.name, tc.err)
		}
	}
}

func TestPeerAccess(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	stream := test.Must(a.StreamCreate(0))(t)
	mine, theirs := test.Must(a.MemAlloc(8))(t), test.Must(b.MemAlloc(8))(t)
	test.Is(t, a.MemcpyDtoDAsync(theirs, mine, 8, stream), cuda.CodeInvalidContext)
	test.Check(t, a.EnablePeerAccess(b))
	test.Check(t, a.EnablePeerAccess(b)) // as it was already
	test.Check(t, a.MemcpyDtoDAsync(theirs, mine, 8, stream))
	test.Is(t, a.EnablePeerAccess(a), cuda.CodeInvalidDevice)
}

func TestLinksOfTheFake(t *testing.T) {
	for _, tc := range []struct {
		name   string
		link   cudafake.Link
		access bool
		enable error
		sent   byte
	}{
		{"open", cudafake.LinkOpen, true, nil, 0},
		{"closed", cudafake.LinkClosed, false, cuda.CodePeerUnsupported, 0},
		{"lying", cudafake.LinkLying, true, nil, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, 2)
			a, b := r.contexts[0], r.contexts[1]
			r.fake.SetLink(0, 1, tc.link)
			if got := test.Must(a.Device().CanAccessPeer(b.Device()))(t); got != tc.access {
				t.Errorf("access %v", got)
			}
			test.Is(t, a.EnablePeerAccess(b), tc.enable)
			stream := test.Must(a.StreamCreate(0))(t)
			host, p := pinned(t, a, 8)
			mine, theirs := test.Must(a.MemAlloc(8))(t), test.Must(b.MemAlloc(8))(t)
			test.Check(t, a.MemsetD8Async(mine, 0, 8, stream))
			test.Check(t, a.MemcpyPeerAsync(theirs, b, mine, a, 8, stream))
			test.Check(t, a.MemcpyPeerAsync(mine, a, theirs, b, 8, stream)) // the way back is open
			test.Check(t, a.MemcpyDtoHAsync(p, mine, 8, stream))
			want := []byte{0, 0, 0, 0, tc.sent, 0, 0, 0}
			if !bytes.Equal(host, want) {
				t.Errorf("arrived as %v", host)
			}
			box, n := cuda.Pitched{Device: theirs, Pitch: 8, Rows: 1}, cuda.Extent{Width: 8, Height: 1, Depth: 1}
			test.Check(t, a.MemsetD8Async(mine, 0, 8, stream))
			test.Check(t, a.Memcpy3DPeerAsync(box, b, cuda.Pitched{Device: mine, Pitch: 8, Rows: 1}, a, n, stream))
			test.Check(t, a.MemcpyPeerAsync(mine, a, theirs, b, 8, stream))
			test.Check(t, a.MemcpyDtoHAsync(p, mine, 8, stream))
			if !bytes.Equal(host, want) {
				t.Errorf("as a box arrived as %v", host)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	r := newRig(t, 1)
	ctx := r.contexts[0]
	if free, total, err := ctx.MemInfo(); free != 5<<30 || total != 6<<30 || err != nil {
		t.Errorf("MemInfo %d, %d, %v", free, total, err)
	}
	_, host := pinned(t, ctx, 8)
	if p := test.Must(ctx.HostDevicePointer(host))(t); p == 0 {
		t.Error("mapped memory has no device address")
	}
	test.Check(t, ctx.HostFree(host))
	test.Is(t, ctx.HostFree(host), cuda.CodeInvalidValue)
}
