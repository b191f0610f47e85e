package datatypes

import (
	"io"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// The kernel that keeps a GPU busy compiles, and takes what it is given.
func TestBusyCompiles(t *testing.T) {
	source := busySource
	source.Text += "static_assert(sizeof(Busy) == 3 * 8, \"size\");\n"
	testdevices.Compile(t, source)
}

// A GPU has as many thread blocks kept busy as the fraction of those that it holds.
func TestBusyBlocks(t *testing.T) {
	for _, tc := range []struct {
		fraction float64
		info     streams.Info
		want     int
	}{
		{1, streams.Info{Backend: streams.CUDA, Arch: "sm_90", Cores: 132}, 1056},
		{0.25, streams.Info{Backend: streams.CUDA, Arch: "sm_90", Cores: 132}, 264},
		{0.5, streams.Info{Backend: streams.CUDA, Arch: "sm_86", Cores: 10}, 30},
		{1, streams.Info{Backend: streams.CUDA, Arch: "sm_75", Cores: 40}, 160},
		{0.001, streams.Info{Backend: streams.CUDA, Arch: "sm_80", Cores: 8}, 1},
		{0.5, streams.HostPlatform(1).Devices()[0], 1},
	} {
		if n := (&busy{fraction: tc.fraction}).blocks(tc.info); n != tc.want {
			t.Errorf("%v of %+v: %d blocks, not %d", tc.fraction, tc.info, n, tc.want)
		}
	}
}

// What is done beside the busy kernel is done once, and its error is kept.
func TestBusyDuring(t *testing.T) {
	var none *busy
	if lost, err := none.during(func() error { return io.EOF }); lost != 0 || err != io.EOF {
		t.Errorf("%v, %v", lost, err)
	}
	set := testdevices.Host(t, 2)
	b := test.Must(newBusy(t.Context(), kernels.CompilerFromEnv(), set.Devices, 0.25))(t)
	defer b.Close()
	if len(b.occupants) != 2 {
		t.Fatalf("%d occupants", len(b.occupants))
	}
	for _, o := range b.occupants {
		if o.alone <= 0 || o.took <= 0 {
			t.Errorf("%v launches a second, %v each", o.alone, o.took)
		}
	}
	done := 0
	lost, err := b.during(func() error {
		time.Sleep(20 * time.Millisecond)
		done++
		return nil
	})
	if err != nil || done != 1 || lost >= 1 {
		t.Errorf("done %d times, %v lost, %v", done, lost, err)
	}
	test.Is(t, test.ErrorOf(b.during(func() error { return io.EOF })), io.EOF)
	if _, err := b.during(func() error { return set.Devices[0].Close() }); err == nil {
		t.Error("a device that is gone was kept busy")
	}
}
