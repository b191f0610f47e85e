//go:build linux && cgo

package main

import (
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/testdevices"
)

// Without a link that carries data messages go through the host only, and bench
// pingpong says so before anything else.
func TestBenchPingPongWithoutALink(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	fake := withFake(t)
	fake.SetLink(1, 0, cudafake.LinkLying)
	code, out, notes := cli("bench", "pingpong", "--backend", "cuda", "--match", "wu/V/n=1024")
	if code != exitFailed || out != "" || !strings.Contains(notes, "--paths direct: p2p: no direct path from device cuda 1 to cuda 0: ") || !strings.Contains(notes, "use path staged") {
		t.Errorf("exit code %d:\n%s%s", code, out, notes)
	}
	if live := fake.Live(); live != (cudafake.Live{}) {
		t.Errorf("left behind: %+v", live)
	}
}
