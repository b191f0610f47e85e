package main

import (
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
)

func TestLiveNeedsATerminal(t *testing.T) {
	if code, _, errs := cli("run", write(t, "c.yaml", small), "--live"); code != int(command.Usage) || !strings.Contains(errs, "--live: the standard error must be a terminal") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
