package ranks_test

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// byProxy is in the names of tests whose GPUs access each other only by proxies.
const byProxy = "links=proxy"

func usesProxy(t *testing.T) bool { return strings.Contains(t.Name(), byProxy) }

// fewByProxy returns rounds or, by proxies under the race detector, which slows them most, a few.
func fewByProxy(t *testing.T, rounds int) int {
	if usesProxy(t) {
		return len(testdevices.Again(15, testdevices.Some(30, testdevices.Numbers(rounds))))
	}
	return rounds
}

// onGPUs returns rounds for the devices of a set: on GPUs times as many, but a twentieth of that by proxies,
// which take microseconds per message of a round, and milliseconds if other programs use the GPUs.
func onGPUs(t *testing.T, s *testdevices.Set, rounds, times int) int {
	switch {
	case !testdevices.OnGPU(s.Devices[0]) || testdevices.Instrumented():
		return rounds
	case usesProxy(t):
		return rounds * max(1, times/20)
	}
	return rounds * times
}

// eachLink is testdevices.EachKernel, and again with GPUs that access each other by proxies. In tests of one
// process, emulated GPUs alternate between the two, unless tests are long: half of the tests each.
func eachLink(t *testing.T, n int, f func(t *testing.T, s *testdevices.Set)) {
	t.Helper()
	place := 0
	for _, letter := range t.Name() {
		place += int(letter)
	}
	testdevices.Each(t, n, f)
	if !together.IsAlone() || testdevices.Turn(place, 2, 1) {
		t.Run("backend=cuda-on-cpu", func(t *testing.T) { f(t, testdevices.CPU(t, n)) })
	}
	t.Run(byProxy, func(t *testing.T) {
		t.Run("backend=cuda", func(t *testing.T) { f(t, testdevices.GPUs(t)) })
		if !together.IsAlone() || testdevices.Turn(place+1, 2, 1) {
			t.Run("backend=cuda-on-cpu", func(t *testing.T) { f(t, testdevices.CPUBesideThreads(t, n)) })
		}
	})
}

//go:embed testdata/proxy.cu
var proxyText string

// proxied is struct Proxied of proxy.cu.
type proxied struct {
	Memory      uint64
	What, Bytes int64
	Wrong       uint64
}

// eachServed runs f with GPUs that access each other by proxies: by option, and because there is no other
// way.
func eachServed(t *testing.T, f func(t *testing.T, s *testdevices.Set)) {
	t.Run(byProxy, func(t *testing.T) {
		t.Run("backend=cuda", func(t *testing.T) {
			s := testdevices.GPUs(t)
			if len(s.Devices) < 2 {
				t.Skip("SKIPPED: one GPU")
			}
			f(t, s)
		})
		t.Run("backend=cuda-on-cpu", func(t *testing.T) { f(t, testdevices.CPUBesideThreads(t, 2)) })
	})
	t.Run("links=none", func(t *testing.T) { f(t, testdevices.CPUApart(t, 2)) })
}

func openedServed(t *testing.T, s *testdevices.Set, kernel string, limit time.Duration) *ranks.World {
	t.Helper()
	p := ranks.Program{Name: kernel, Source: kernels.Source{Name: "proxy.cu", Text: proxyText}, Kernel: kernel, Threads: 64}
	return opened(t, s, p, ranks.Options{Ranks: 2, Limit: limit})
}

// Puts arrive even if all ranks have ended before, and the ring of commands cannot hold them all.
func TestProxyFinishesCommands(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	eachServed(t, func(t *testing.T, s *testdevices.Set) {
		const bytes = 8 * 150
		w := openedServed(t, s, "leave", 0)
		m := memory(t, w, bytes)
		last := len(m) - 1
		for range 2 {
			upload(t, s.Devices[last], m[last], make([]byte, bytes))
			for i, d := range run(t, w, func(i int) proxied { return proxied{Memory: m[i].Address(), Bytes: bytes} }) {
				if d.Wrong != 0 {
					t.Errorf("device %d: no device is served by a proxy, or a window of a served device is mapped", i)
				}
			}
			for i, v := range streams.View[uint64](download(t, s.Devices[last], m[last])) {
				if v != 3*uint64(i)+1 {
					t.Fatalf("word %d is %d, want %d", i, v, 3*i+1)
				}
			}
		}
	})
}

// If the proxy does nothing, ranks wait no longer than their limit. An invalid command ends the run with the
// reason.
func TestMisledProxy(t *testing.T) {
	eachServed(t, func(t *testing.T, s *testdevices.Set) {
		for what, is := range []error{ranks.ErrTimeout, nil} {
			patiently(t, is, func(limit time.Duration) error {
				w := openedServed(t, s, "misled", limit)
				m := memory(t, w, 64)
				data := make([]proxied, len(m))
				for i := range data {
					data[i] = proxied{Memory: m[i].Address(), What: int64(what), Bytes: 64}
				}
				err := ranks.Run(t.Context(), w, data)
				want := fmt.Sprintf("waited %v for the proxy of device ", limit)
				if is == nil {
					want = fmt.Sprintf("command %d of kind 77 for device 1", commandsBefore(s))
				}
				if err == nil || !strings.Contains(err.Error(), want) || is != nil && !errors.Is(err, is) {
					return fmt.Errorf("the error is %w, want %q", err, want)
				}
				return nil
			})
		}
	})
}

// commandsBefore is the number of commands of the first device after all ranks have made a window: two
// barriers, and the entry of each rank's window, for each of the others.
func commandsBefore(s *testdevices.Set) int { return (2 + 2) * (len(s.Devices) - 1) }
