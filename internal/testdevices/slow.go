package testdevices

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/kernels"
)

//go:embed slow/nvrtc.c
var slowSource string

// Slow is an NVRTC whose compilations take their time, for a driver of package cudafake that runs
// no kernels.
type Slow struct {
	Library string
	log     string
}

// SlowNVRTC builds one. It refuses the program that is named, if one is.
func SlowNVRTC(t testing.TB, takes time.Duration, refuses string) Slow {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("SKIPPED: no C compiler for an NVRTC that is slow: ", err)
	}
	dir := t.TempDir()
	s := Slow{filepath.Join(dir, "libnvrtc.so"), filepath.Join(dir, "log")}
	source := filepath.Join(dir, "nvrtc.c")
	if err := os.WriteFile(source, []byte(slowSource), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(cc, "-shared", "-fPIC", "-O1", "-Wall", fmt.Sprintf("-DSLOW=%d", takes.Milliseconds()),
		fmt.Sprintf("-DREFUSES=%q", refuses), fmt.Sprintf("-DLOG=%q", s.log), "-o", s.Library, source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build an NVRTC that is slow: %v\n%s", err, out)
	}
	return s
}

// NoCompiler returns a compiler that compiles nothing, and takes no time for it, for a driver of package cudafake that runs no
// kernels.
func NoCompiler(t testing.TB) *kernels.Compiler {
	t.Helper()
	return kernels.NewCompiler(kernels.Options{NVRTC: SlowNVRTC(t, 0, "").Library, Cache: t.TempDir()})
}

// Compiled returns the programs so far, in the order in which they were begun, and how many were compiled at
// the same time at most.
func (s Slow) Compiled(t testing.TB) (names []string, together int) {
	t.Helper()
	log, err := os.ReadFile(s.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	now := 0
	for line := range strings.Lines(string(log)) {
		name := strings.TrimSpace(line[1:])
		if line[0] == '-' {
			now--
			continue
		}
		names = append(names, name)
		now++
		together = max(together, now)
	}
	return names, together
}
