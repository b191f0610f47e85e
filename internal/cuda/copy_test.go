//go:build linux && cgo

package cuda_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
)

func TestCopies(t *testing.T) {
	const n = 1000
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	stream := must(a.StreamCreate(0))(t)
	src, srcPtr := pinned(t, a, n)
	dst, dstPtr := pinned(t, a, n)
	first, second := must(a.MemAlloc(n))(t), must(a.MemAlloc(n))(t)
	remote := must(b.MemAlloc(n))(t)
	for i := range src {
		src[i] = byte(i * 7)
	}

	ok(t, a.MemcpyHtoDAsync(first, srcPtr, n, stream))
	ok(t, a.MemcpyPeerAsync(remote, b, first, a, n, stream))
	ok(t, a.MemsetD8Async(first, 0xEE, n, stream))
	ok(t, a.MemcpyPeerAsync(second, a, remote, b, n, stream))
	ok(t, a.MemcpyDtoDAsync(first+1, second+3, n-100, stream))
	ok(t, a.MemcpyDtoHAsync(dstPtr, first, n, stream))
	ok(t, a.StreamSynchronize(stream))

	want := bytes.Repeat([]byte{0xEE}, n)
	copy(want[1:], src[3:n-97])
	if !bytes.Equal(dst, want) {
		t.Errorf("got  %x\nwant %x", dst[:16], want[:16])
	}
}

func TestCopiesStayInTheirMemory(t *testing.T) {
	ctx := newRig(t, 1).contexts[0]
	stream := must(ctx.StreamCreate(0))(t)
	_, host := pinned(t, ctx, 64)
	memory := must(ctx.MemAlloc(32))(t)
	if err := ctx.MemcpyHtoDAsync(memory, host, 33, stream); !errors.Is(err, cuda.CodeInvalidValue) {
		t.Errorf("a copy past the end: %v", err)
	}
}

func TestPeerAccess(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	stream := must(a.StreamCreate(0))(t)
	mine, theirs := must(a.MemAlloc(8))(t), must(b.MemAlloc(8))(t)
	if err := a.MemcpyDtoDAsync(theirs, mine, 8, stream); !errors.Is(err, cuda.CodeInvalidContext) {
		t.Errorf("without peer access: %v", err)
	}
	ok(t, a.EnablePeerAccess(b))
	ok(t, a.EnablePeerAccess(b)) // as it was already
	ok(t, a.MemcpyDtoDAsync(theirs, mine, 8, stream))
	if err := a.EnablePeerAccess(a); !errors.Is(err, cuda.CodeInvalidDevice) {
		t.Errorf("access to itself: %v", err)
	}
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
			if got := must(a.Device().CanAccessPeer(b.Device()))(t); got != tc.access {
				t.Errorf("access %v", got)
			}
			if err := a.EnablePeerAccess(b); !errors.Is(err, tc.enable) {
				t.Errorf("enabled with %v", err)
			}
			stream := must(a.StreamCreate(0))(t)
			host, p := pinned(t, a, 8)
			mine, theirs := must(a.MemAlloc(8))(t), must(b.MemAlloc(8))(t)
			ok(t, a.MemsetD8Async(mine, 0, 8, stream))
			ok(t, a.MemcpyPeerAsync(theirs, b, mine, a, 8, stream))
			ok(t, a.MemcpyPeerAsync(mine, a, theirs, b, 8, stream)) // the way back is open
			ok(t, a.MemcpyDtoHAsync(p, mine, 8, stream))
			if want := []byte{0, 0, 0, 0, tc.sent, 0, 0, 0}; !bytes.Equal(host, want) {
				t.Errorf("arrived as %v", host)
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
	if p := must(ctx.HostDevicePointer(host))(t); p == 0 {
		t.Error("mapped memory has no device address")
	}
	ok(t, ctx.HostFree(host))
	if err := ctx.HostFree(host); !errors.Is(err, cuda.CodeInvalidValue) {
		t.Errorf("freed twice: %v", err)
	}
}
