//go:build linux && cgo

package cuda_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/halox/halox/internal/cuda"
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
