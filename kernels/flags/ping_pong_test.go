package flags

import (
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// hostDevices opens some for the length of the test.
func hostDevices(t *testing.T, n int) []*streams.Device {
	t.Helper()
	devices := test.Must(streams.HostPlatform(n).Open())(t)
	t.Cleanup(func() { test.Report(t, streams.CloseAll(devices)) })
	return devices
}

// A device waits no longer than the limit, and the error says for which other.
func TestFlagPingPongInVain(t *testing.T) {
	d := hostDevices(t, 2)
	c := kernels.CompilerFromEnv()
	r := test.Must(NewPingPong(c, d[0], d[1], 20*time.Millisecond))(t)
	defer r.Close()
	g, err := NewGate(c, d[1], 200*time.Millisecond)
	test.Check(t, err)
	defer g.Close()
	test.Check(t, g.Shut(r.players[1].stream))
	_, err = r.Play(3)
	test.Says(t, err, "device host 0 timed out after 20ms waiting for a flag from device host 1")
	test.Says(t, g.Open(), "a gate of device host 1 was not opened within 200ms")
	if _, err := r.Play(0); err == nil {
		t.Error("no rounds")
	}
}
