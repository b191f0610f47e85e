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

// A line is drawn over the one before, gives way to notes, and is gone at the end.
func TestStatusIsDrawnAndCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		var doing atomic.Value
		doing.Store("opening the devices")
		s := startStatus(&terminal, func() string { return doing.Load().(string) }, true)
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

// A terminal that takes nothing, as after Ctrl-S, holds up the end for a moment only.
func TestStatusOnAStoppedTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, terminal := io.Pipe()
		s := startStatus(terminal, func() string { return "opening the devices" }, true)
		time.Sleep(2 * drawEvery)
		begin := time.Now()
		s.close()
		if waited := time.Since(begin); waited != drawLimit {
			t.Errorf("close waited %v", waited)
		}
		reader.Close() // lets the goroutine go
	})
}

func TestStatusIsForTerminalsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		s := newStatus(&file, func() string { return "opening the devices" })
		time.Sleep(2 * drawEvery)
		fmt.Fprint(s, "a note")
		s.close()
		if file.String() != "a note" {
			t.Errorf("drawn: %q", file.String())
		}
	})
}
