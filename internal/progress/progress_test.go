package progress

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func testBar(terminal io.Writer) *Bar {
	b := &Bar{o: Options{What: "heat", Unit: "steps", All: 100}, begun: time.Now()}
	b.draw(terminal)
	return b
}

func TestProgressIsDrawnAndCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		p := testBar(&terminal)
		p.Set(17)
		time.Sleep(5*drawEvery + drawEvery/2)
		p.Close()
		drawn := terminal.String()
		if n := strings.Count(drawn, "heat: 17 of 100 steps, "); n != 5 {
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
		s := NewStatus(&terminal, func() string { return doing.Load().(string) }, true)
		time.Sleep(3*drawEvery + drawEvery/2)
		doing.Store("trying")
		time.Sleep(drawEvery)
		fmt.Fprintln(s, "a note")
		time.Sleep(drawEvery)
		s.Close()
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
			p := testBar(w)
			return p.Set, p.Close
		},
		"status": func(w io.Writer) (func(int64), func()) {
			return func(int64) {}, NewStatus(w, func() string { return "opening the devices" }, true).Close
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
		p, s := NewBar(&file, Options{What: "heat", Unit: "steps", All: 100}), NewStatus(&file, func() string { return "opening the devices" }, IsTerminal(&file))
		p.Set(17)
		time.Sleep(2 * drawEvery)
		fmt.Fprint(s, "a note")
		p.Close()
		s.Close()
		if file.String() != "a note" {
			t.Errorf("drawn: %q", file.String())
		}
	})
}

// Without a terminal, a line reports the progress periodically.
func TestProgressInLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := NewBar(&log, Options{What: "links", Unit: "parts", From: 4, All: 40, Lines: true, Also: func() string { return "checkpoint at 9" }})
		time.Sleep(lineEvery + lineEvery/2)
		p.Set(10)
		time.Sleep(lineEvery)
		p.Set(40)
		p.Close()
		if want := "links: 10 of 40 parts, 0.300 parts/s, about 1m40s left, checkpoint at 9\nlinks: 40 of 40 parts in 25s\n"; log.String() != want {
			t.Errorf("%q, want %q", log.String(), want)
		}
	})
}

// A picture is drawn above the bar, over the one before, and stays at the end.
func TestPictureAboveTheBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		p := testBar(&terminal)
		p.Show("a\nb\n")
		time.Sleep(drawEvery + drawEvery/2)
		p.Show("c\nd\ne\n")
		p.Set(17)
		time.Sleep(drawEvery)
		p.Show("f\n")
		p.Close()
		text := terminal.String()
		for _, want := range []string{"a\nb\n", "\x1b[2A\x1b[Jc\nd\ne\n", "heat: 17 of 100 steps", "\x1b[3A\x1b[Jf\n"} {
			_, rest, found := strings.Cut(text, want)
			if !found {
				t.Errorf("%q is not in %q", want, text)
			}
			text = rest
		}
		if strings.TrimSpace(text) != "" {
			t.Errorf("left behind: %q", text)
		}
	})
}

// The log of programs has numbers instead of a text.
func TestProgressInALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := NewBar(io.Discard, Options{What: "heat", Unit: "steps", All: 40, Log: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(lineEvery / 2)
		p.Set(10)
		time.Sleep(lineEvery)
		p.Close()
		if n := strings.Count(log.String(), "msg=progress what=heat unit=steps done=10 all=40 per_second="); n != 2 || !strings.Contains(log.String(), "per_second=1 seconds_left=30\n") {
			t.Errorf("%d in %s", n, log.String())
		}
	})
}
