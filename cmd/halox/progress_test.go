package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsDrawnAndCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		p := startBar(&terminal, "heat", "steps", 100)
		p.steps(17)
		time.Sleep(5*drawEvery + drawEvery/2)
		p.close()
		drawn := terminal.String()
		if n := strings.Count(drawn, "17/100"); n != 5 {
			t.Errorf("drawn %d times, not 5: %q", n, drawn)
		}
		if last := drawn[strings.LastIndex(strings.TrimSuffix(drawn, "\r"), "\r"):]; strings.TrimSpace(last) != "" {
			t.Errorf("left behind: %q", last)
		}
	})
}

// A terminal that takes nothing, as after Ctrl-S, holds up neither the steps
// nor, for long, the end.
func TestProgressOnAStoppedTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, terminal := io.Pipe()
		p := startBar(terminal, "heat", "steps", 100)
		time.Sleep(2 * drawEvery)
		begin := time.Now()
		p.steps(17)
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("a step waited %v", waited)
		}
		p.close()
		if waited := time.Since(begin); waited != drawLimit {
			t.Errorf("close waited %v", waited)
		}
		reader.Close() // lets the goroutine go
	})
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		p := newProgress(&file, "heat", "steps", 100, false)
		p.steps(17)
		time.Sleep(2 * drawEvery)
		p.close()
		if file.Len() > 0 {
			t.Errorf("drawn: %q", file.String())
		}
	})
}
