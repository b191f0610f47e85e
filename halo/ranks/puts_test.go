package ranks_test

import (
	"cmp"
	"embed"
	"fmt"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed testdata
var kernelFiles embed.FS

// sourceOf returns a file of kernels, after the shared code.
func sourceOf(name string) kernels.Source {
	text := ""
	for _, file := range []string{"common.cuh", name} {
		content, err := kernelFiles.ReadFile("testdata/" + file)
		if err != nil {
			panic(err)
		}
		text += string(content)
	}
	return kernels.Source{Name: name, Text: text}
}

func source() kernels.Source { return sourceOf("litmus.cu") }

// opened returns a world until the end of the test, of a program of litmus.cu if it names no source. If the
// options have no limit, it sets one so long that other load on this machine does not end a wait.
func opened(t *testing.T, s *testdevices.Set, p ranks.Program, o ranks.Options) *ranks.World {
	t.Helper()
	o.Limit = cmp.Or(o.Limit, 5*time.Minute)
	if p.Source.Text == "" {
		p.Source = source()
	}
	o.Proxy = o.Proxy || usesProxy(t)
	o.Processes = together
	w := test.Must(ranks.New(s.Compiler, s.Devices, s.Links, p, o))(t)
	t.Cleanup(func() { test.Report(t, w.Close()) })
	return w
}

// program is a program for CPU devices with a source that compiles.
func program(host func(r *ranks.Rank)) ranks.Program {
	return ranks.Program{Name: "p", Source: source(), Kernel: "ring", Threads: 32, Host: host}
}

// memory allocates bytes on each device until the end of the test.
func memory(t *testing.T, w *ranks.World, bytes int64) (all []*streams.Memory) {
	t.Helper()
	for _, d := range w.Devices() {
		m := test.Must(d.Alloc(bytes))(t)
		t.Cleanup(func() { test.Report(t, m.Close()) })
		all = append(all, m)
	}
	return all
}

func hash(a, b uint32) uint32 {
	h := a*0x9e3779b1 ^ (b+0x7f4a7c15)*0x85ebca77
	h ^= h >> 15
	h *= 0xc2b2ae3d
	h ^= h >> 13
	return h
}

// run runs a program once, with the data that of returns for each device, and returns the data afterwards.
func run[T any](t *testing.T, w *ranks.World, of func(device int) T) []T {
	t.Helper()
	data := make([]T, len(w.Devices()))
	for i := range data {
		data[i] = of(i)
	}
	test.Check(t, ranks.Run(t.Context(), w, data))
	return data
}

// puts is struct Puts of litmus.cu.
type puts struct {
	Memory, Source     uint64
	Slot, Rounds, Rest int64
	Errors, First      uint64
}

// Every rank puts bytes of all sizes and alignments to others and itself, near and far, and notifies it. The
// bytes arrive in place, and nothing else changes. Counts wrap around. For ranks of CPU devices, package
// litmus tests this.
func TestPuts(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	eachLink(t, 3, func(t *testing.T, s *testdevices.Set) {
		if s.Devices[0].GoKernels {
			t.Skip("SKIPPED: litmus.Tests.Puts covers CPU devices")
		}
		const slot = 4096
		for _, kernel := range []string{"puts_by_blocks", "puts_by_warps"} {
			for _, c := range []struct {
				ranks, threads, rounds int
				rest                   time.Duration
			}{{1, 64, 40, 0}, {2, 32, 60, 20 * time.Microsecond}, {5, 128, 40, 50 * time.Microsecond}, {16, 64, 30, 0}} {
				t.Run(fmt.Sprintf("%s/ranks=%d", kernel, c.ranks), func(t *testing.T) {
					if isHeavy(s, c.ranks) {
						t.Skip("SKIPPED: needs make test-long for this many ranks of several processes on the CPU")
					}
					if !testdevices.Long() {
						c.rounds /= 2
					}
					c.rounds = onGPUs(t, s, c.rounds, 500)
					w := opened(t, s, ranks.Program{Name: kernel, Kernel: kernel, Threads: c.threads},
						ranks.Options{Ranks: c.ranks, Checks: c.ranks%2 == 1})
					ranks.SetFirstCount(w, 1<<64-5)
					slots, sources := memory(t, w, 2*slot*int64(c.ranks)), memory(t, w, slot*int64(c.ranks))
					for range 2 {
						for i, d := range run(t, w, func(i int) puts {
							return puts{slots[i].Address(), sources[i].Address(), slot, int64(c.rounds), int64(c.rest), 0, 0}
						}) {
							if d.Errors != 0 {
								t.Errorf("device %d: %d wrong bytes, the first in round %d", i, d.Errors, d.First-1)
							}
						}
					}
				})
			}
		}
	})
}
