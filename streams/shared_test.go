//go:build unix

package streams_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/streams"
)

// Memory that is opened by its handle is the same memory, until it is sealed. Only the owner counts it.
func TestSharedMemory(t *testing.T) {
	devices := test.Must(streams.HostPlatform(2).Open())(t)
	own, handle, err := devices[0].AllocShared(1000)
	test.Check(t, err)
	other := test.Must(devices[1].OpenShared(handle, 1000))(t)
	other.Bytes()[999] = 7
	if own.Bytes()[999] != 7 || own.Bytes()[0] != 0 {
		t.Error("the memory differs")
	}
	if a, b := devices[0].Held().Memory, devices[1].Held().Memory; a != 1000 || b != 0 {
		t.Errorf("the owner holds %d bytes, the other %d", a, b)
	}
	if _, err := devices[1].OpenShared(handle, 999); err == nil || !strings.Contains(err.Error(), "cannot be shared") {
		t.Errorf("another size: %v", err)
	}
	test.Check(t, own.Seal())
	if _, err := devices[1].OpenShared(handle, 1000); err == nil || !strings.Contains(err.Error(), "cannot be shared") {
		t.Errorf("sealed memory: %v", err)
	}
	if _, err := os.Stat(string(handle)); err == nil || !strings.HasPrefix(filepath.Base(string(handle)), "halox-") {
		t.Errorf("file %s: %v", handle, err)
	}
	test.Check(t, errors.Join(other.Close(), own.Close(), streams.CloseAll(devices)))
}

// A signal between processes is seen once the stream has reached the record, and Release ends waits for it.
func TestSharedSignal(t *testing.T) {
	devices := test.Must(streams.HostPlatform(2).Open())(t)
	counts := test.Must(streams.NewSharedBytes(64))(t)
	theirs := test.Must(streams.OpenSharedBytes(counts.Name, 64))(t)
	s, handle, err := devices[0].NewSharedSignal(counts.Bytes[8:16], "a signal")
	test.Check(t, err)
	other := test.Must(devices[1].OpenSharedSignal(handle, theirs.Bytes[8:16], "a signal"))(t)
	from, to := test.Must(devices[0].NewStream(streams.Normal))(t), test.Must(devices[1].NewStream(streams.Normal))(t)
	group := streams.NewWorkerGroup(1, time.Minute)
	for n := range int64(3) {
		test.Check(t, s.Record(from), other.Await(group, n+1, time.Minute), other.Follow(to), to.Sync(time.Minute))
	}
	err = other.Await(group, 4, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "waited 1ms for a signal to reach 4, got 3") {
		t.Errorf("a record that never comes: %v", err)
	}
	other.Release()
	test.Check(t, other.Await(group, 4, time.Minute))
	test.Check(t, errors.Join(other.Close(), s.Close(), theirs.Close(), counts.Close(), counts.Close(), streams.CloseAll(devices)))
}
