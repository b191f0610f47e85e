package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
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

// A line is drawn over the one before, gives way to notes, and is gone at the end.
func TestStatusIsDrawnAndCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		var doing atomic.Value
		doing.Store("opening the devices")
		s := newStatus(&terminal, func() string { return doing.Load().(string) }, true)
		time.Sleep(3*drawEvery + drawEvery/2)
		doing.Store("trying")
		time.Sleep(drawEvery)
		fmt.Fprintln(s, "a note")
		time.Sleep(drawEvery)
		s.close()
		over := func(text string) string { return "\r" + strings.Repeat(" ", len(text)) + "\r" }
		want := "opening the devices" + over("opening the devices") + "trying" + over("trying") + "a note\ntrying" + over("trying")
		if got := terminal.String(); got != want {
			t.Errorf("drawn %q, not %q", got, want)
		}
	})
}

// A terminal that takes nothing, as after Ctrl-S, does not delay the steps, and the end for a moment only.
func TestStoppedTerminal(t *testing.T) {
	for name, start := range map[string]func(terminal io.Writer) (steps func(int64), end func()){
		"progress": func(w io.Writer) (func(int64), func()) {
			p := startBar(w, "heat", "steps", 100)
			return p.steps, p.close
		},
		"status": func(w io.Writer) (func(int64), func()) {
			return func(int64) {}, newStatus(w, func() string { return "opening the devices" }, true).close
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			reader, terminal := io.Pipe()
			steps, end := start(terminal)
			time.Sleep(2 * drawEvery)
			begin := time.Now()
			steps(17)
			if waited := time.Since(begin); waited != 0 {
				t.Errorf("%s: a step waited %v", name, waited)
			}
			end()
			if waited := time.Since(begin); waited != drawLimit {
				t.Errorf("%s: close waited %v", name, waited)
			}
			reader.Close() // lets the goroutine go
		})
	}
}

func TestFilesAreNoTerminals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		p, s := newProgress(&file, "heat", "steps", 100, false), newStatus(&file, func() string { return "opening the devices" }, isTerminal(&file))
		p.steps(17)
		time.Sleep(2 * drawEvery)
		fmt.Fprint(s, "a note")
		p.close()
		s.close()
		if file.String() != "a note" {
			t.Errorf("drawn: %q", file.String())
		}
	})
}
