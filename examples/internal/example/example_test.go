package example

import (
	"context"
	"flag"
	"io"
	"runtime"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
)

// TestMaxDevices runs a program that takes one device on a host that may have more cores.
func TestMaxDevices(t *testing.T) {
	for count, want := range map[string]int{"0": 1, "2": 2} {
		p := Program{MaxDevices: 1, Flags: func(*flag.FlagSet) {}, Run: func(
			_ context.Context, s *halo.Session, _ io.Writer,
		) (uint32, error) {
			if n := len(s.Devices); n != want {
				t.Errorf("--devices %s on %d cores: %d devices, want %d", count, runtime.NumCPU(), n, want)
			}
			return 0, nil
		}}
		test.Report(t, p.Command(t.Context(), []string{"--backend", "host", "--devices", count}, io.Discard))
	}
}
