package flags

import (
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/streams"
)

// programs returns all programs that this package may compile.
func programs() []kernels.Program {
	return []kernels.Program{latencyProgram()}
}

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs()...) }

func TestEveryArgumentIsMirrored(t *testing.T) { kerneltest.MirrorArguments(t, programs()...) }

func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	kerneltest.CompileWithoutSpills(t, programs()...)
}

// Every line of a network has one reader and one writer: the line of a rank for a neighbor is the line that the
// neighbor writes, and lines do not overlap.
func TestNetwork(t *testing.T) {
	platform := streams.HostPlatform(4)
	devices := test.Must(platform.Open())(t)
	defer streams.CloseAll(devices)
	n := test.Must(NewNetwork(devices, [][]int{{1, 3}, {0, 2, 3}, {1}, {1, 0}}, 3, 2, 1))(t)
	var open streams.Resources
	defer open.Close()
	for rank := range devices {
		test.Check(t, n.Open(rank, &open))
	}
	readers := map[streams.Span]int{}
	for rank, others := range n.neighbors {
		for at, other := range others {
			for which := range 2 {
				mine, its := n.Pair(rank, at, which)
				if mine.Memory != n.memory[rank] || its.Memory != n.memory[other] || its != n.line(other, n.Place(rank, other), which) {
					t.Errorf("rank %d waits at %v, rank %d at %v", rank, mine, other, its)
				}
				readers[mine]++
			}
		}
		readers[n.OwnLine(rank, 0)]++
	}
	for s, count := range readers {
		if count != 1 || s.Offset%lineBytes != 0 || s.Offset+s.Length > s.Memory.Size() {
			t.Errorf("got %d users of %v", count, s)
		}
	}
	if len(readers) != 2*(2+3+1+2)+4 {
		t.Errorf("got %d lines", len(readers))
	}
}

func TestNetworkErrors(t *testing.T) {
	devices := make([]*streams.Device, 3)
	for says, neighbors := range map[string][][]int{
		"neighbors must be mutual, but rank 1 does not name rank 0": {{1}, {2}, {1}},
		"neighbors must be mutual, but rank 3 does not name rank 0": {{3}, {}, {}},
		"neighbors must be mutual, but rank 1 does not name rank 1": {{}, {1}, {}},
		"number of neighbors must be at most 1, got 2":              {{1, 2}, {0}, {0}},
	} {
		test.Says(t, test.ErrorOf(NewNetwork(devices, neighbors, 1, 1, 0)), says)
	}
}

// hostDevices opens CPU devices for the duration of the test.
func hostDevices(t *testing.T, n int) []*streams.Device {
	t.Helper()
	devices := test.Must(streams.HostPlatform(n).Open())(t)
	t.Cleanup(func() { test.Report(t, streams.CloseAll(devices)) })
	return devices
}

// A device waits for at most the limit, and the error names the other device.
func TestFlagPingPongTimesOut(t *testing.T) {
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
		t.Error("0 rounds: got no error")
	}
}

// Sizes of a class are close to each other, and each class begins with a size that maps to itself.
func TestAlike(t *testing.T) {
	for _, c := range []struct{ size, want [3]int }{
		{[3]int{0, 1, 31}, [3]int{0, 1, 31}},
		{[3]int{32, 33, 34}, [3]int{32, 32, 34}},
		{[3]int{128, 135, 136}, [3]int{128, 128, 136}},
		{[3]int{144, 160, 255}, [3]int{144, 160, 248}},
		{[3]int{511, 512, 543}, [3]int{496, 512, 512}},
	} {
		if got := Alike(c.size); got != c.want {
			t.Errorf("%v: got %v, want %v", c.size, got, c.want)
		}
	}
	for n := 1; n < 1<<17; n++ {
		low := Alike([3]int{n})[0]
		if low > n || 16*(n-low) > low || Alike([3]int{low})[0] != low {
			t.Fatalf("%d: %d", n, low)
		}
	}
}
