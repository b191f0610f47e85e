//go:build linux && cgo

package streams

import (
	"bytes"
	"errors"
	"testing"

	"github.com/halox/halox/internal/test"
)

// What the caller made is used, and left as it is by Close.
func TestWrappedStreamAndMemory(t *testing.T) { onCUDA(t, wrapAndUse) }

// onCUDA runs a test with the GPUs of a fake driver, and with those of this machine.
func onCUDA(t *testing.T, f func(t *testing.T, d []*Device)) {
	t.Run("fake", func(t *testing.T) { f(t, newRig(t, 2).devices) })
	t.Run("gpu", func(t *testing.T) {
		p, err := CUDAPlatform("")
		if errors.Is(err, ErrNoDriver) {
			t.Skip("SKIPPED: no GPU: ", err)
		}
		test.Check(t, err)
		devices := test.Must(p.Open())(t)
		t.Cleanup(func() { test.Check(t, CloseAll(devices), p.Close()) })
		f(t, devices)
	})
}

func wrapAndUse(t *testing.T, devices []*Device) {
	d := devices[0]
	stream := test.Must(d.NewStream(Normal))(t)
	memory := test.Must(d.Alloc(64))(t)
	in, out := test.Must(d.AllocPinned(64))(t), test.Must(d.AllocPinned(64))(t)
	for i := range in.Bytes() {
		in.Bytes()[i] = byte(i * 7)
	}

	handle := stream.Handle()
	if handle == 0 {
		t.Error("a stream of a GPU has no handle")
	}
	inside := errors.New("inside")
	if err := d.Within(func() error { return inside }); err != inside {
		t.Errorf("within a GPU: %v", err)
	}
	wrapped := test.Must(d.WrapStream(handle))(t)
	view := test.Must(d.WrapMemory(memory.Address()+16, 32))(t)
	test.Check(t, wrapped.Copy(view.All(), in.Span(0, 32)), wrapped.Close(), view.Close())
	test.Check(t, stream.Copy(out.Span(0, 32), memory.Span(16, 32)), stream.Sync(testLimit))
	if !bytes.Equal(out.Bytes()[:32], in.Bytes()[:32]) {
		t.Error("the bytes did not arrive in the caller's memory")
	}
	if _, err := d.WrapStream(0); err == nil {
		t.Error("the default stream was taken")
	}
	if _, err := d.WrapMemory(0, 8); err == nil {
		t.Error("address 0 was taken")
	}
	if _, err := d.WrapBytes(make([]byte, 8)); err == nil {
		t.Error("a GPU took bytes of the host")
	}
	test.Check(t, CloseAll(devices))
	if err := d.Within(func() error { return inside }); err == nil || errors.Is(err, inside) {
		t.Errorf("within a GPU that is closed: %v", err)
	}
}
