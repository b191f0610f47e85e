// Package progress shows how far a command is, on a terminal or in lines.
package progress

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/halox/halox/kernels"
)

// Intervals of the status line, shown during setup, and of progress bars or lines, shown during steps and measurements.
const (
	drawEvery = 100 * time.Millisecond // between two drawings
	lineEvery = 10 * time.Second       // between two lines without a terminal
	drawLimit = time.Second            // for the last drawing, on a terminal that may have been stopped
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// repeat calls draw periodically in a separate goroutine, so that a blocking terminal does not delay the command, and
// once more, with last, when stop is called. stop waits for that, but not for a blocking terminal.
func repeat(every time.Duration, draw func(last bool)) (stop func()) {
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-time.After(every):
				draw(false)
			case <-ending:
				draw(true)
				return
			}
		}
	}()
	return func() {
		close(ending)
		select {
		case <-ended:
		case <-time.After(drawLimit):
		}
	}
}

// Status shows the setup phase of a command in one line of a terminal, which it overwrites. Notes for the user are
// written through it.
type Status struct {
	Close    func()                           // clears the line
	Compiler atomic.Pointer[kernels.Compiler] // the line counts the kernels that it compiles

	w     io.Writer
	doing func() string

	picture atomic.Pointer[string] // the next above the line
	rows    int                    // of the one on the terminal

	mu    sync.Mutex // of w and
	drawn string     // the line on the terminal
}

// NewStatus draws the result of doing on w, if draws is set.
func NewStatus(w io.Writer, doing func() string, draws bool) *Status {
	s := &Status{w: w, doing: doing, Close: func() {}}
	if draws {
		s.Close = repeat(drawEvery, func(last bool) {
			s.showPicture()
			if last {
				s.line("")
			} else {
				s.line(s.text())
			}
		})
	}
	return s
}

// Write writes notes in place of the line, which is drawn again below them.
func (s *Status) Write(notes []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.w.Write(notes)
}

func (s *Status) text() string {
	text := s.doing()
	if c := s.Compiler.Load(); c != nil {
		begun, done := c.Compiled()
		switch n := begun - done; {
		case n == 1:
			text += ", compiling a program"
		case n > 1:
			text += fmt.Sprintf(", compiling %d programs", n)
		}
	}
	return text
}

// showPicture replaces the picture above the line.
func (s *Status) showPicture() {
	picture := s.picture.Swap(nil)
	if picture == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clear(); s.rows > 0 {
		fmt.Fprintf(s.w, "\x1b[%dA\x1b[J", s.rows)
	}
	io.WriteString(s.w, *picture)
	s.rows = strings.Count(*picture, "\n")
}

// line replaces the line on the terminal.
func (s *Status) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.w.(*os.File); ok { // a line that wraps could not be cleared
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && utf8.RuneCountInString(text) >= columns {
			text = string([]rune(text)[:max(0, columns-1)])
		}
	}
	if text != s.drawn {
		s.clear()
		fmt.Fprint(s.w, text)
		s.drawn = text
	}
}

func (s *Status) clear() {
	if s.drawn != "" {
		fmt.Fprint(s.w, "\r", strings.Repeat(" ", utf8.RuneCountInString(s.drawn)), "\r")
	}
	s.drawn = ""
}

// Options describe what a Bar shows.
type Options struct {
	What, Unit string        // such as "heat" and "steps"
	From, All  int64         // what was done before, and the end; less than 0 if that is unknown
	Lines      bool          // write a line every ten seconds if there is no terminal
	Also       func() string // more about it, such as the last checkpoint; default nothing. Another goroutine calls it.
	Log        *slog.Logger  // record it every ten seconds instead; default nil
}

// A Bar shows the number of completed steps or parts, how fast they are, and an estimate of the remaining time.
type Bar struct {
	Close func() // ends it

	o      Options
	done   atomic.Int64
	begun  time.Time
	status *Status // nil without a terminal
}

// NewBar draws a bar if w is a terminal. Otherwise it writes lines or records, as the options say.
func NewBar(w io.Writer, o Options) *Bar {
	b := &Bar{Close: func() {}, o: o, begun: time.Now()}
	b.done.Store(o.From)
	switch {
	case o.Log != nil:
		b.Close = repeat(lineEvery, b.record)
	case IsTerminal(w):
		b.draw(w)
	case o.Lines:
		b.Close = repeat(lineEvery, func(last bool) { b.print(w, last) })
	}
	return b
}

// Set notes that n are done, and returns at once.
func (b *Bar) Set(n int64) { b.done.Store(n) }

// Add notes that n more are done, and returns at once.
func (b *Bar) Add(n int64) { b.done.Add(n) }

// Done returns how many are done.
func (b *Bar) Done() int64 { return b.done.Load() }

// Show draws a picture of whole lines above a bar on a terminal, in place of the one before, and returns at once.
func (b *Bar) Show(picture string) {
	if b.status != nil {
		b.status.picture.Store(&picture)
	}
}

// draw draws a bar periodically, and clears it at the end. A picture stays.
func (b *Bar) draw(w io.Writer) {
	b.status = NewStatus(w, b.line, true)
	b.Close = b.status.Close
}

// line returns the text of a bar.
func (b *Bar) line() string {
	if b.o.All <= 0 {
		return b.text()
	}
	const width = 20
	full := int(min(max(0, b.done.Load()*width/b.o.All), width))
	return fmt.Sprintf("%s  |%s%s|", b.text(), strings.Repeat("█", full), strings.Repeat(" ", width-full))
}

// rate returns how many are done per second since the begin, and the remaining time, 0 as long as they are unknown.
func (b *Bar) rate() (perSecond float64, left time.Duration) {
	done, took := b.done.Load(), time.Since(b.begun).Seconds()
	if done <= b.o.From || took <= 0 {
		return 0, 0
	}
	perSecond = float64(done-b.o.From) / took
	return perSecond, time.Duration(float64(b.o.All-done) / perSecond * float64(time.Second))
}

// text describes the progress.
func (b *Bar) text() string {
	text := b.count()
	if rate, left := b.rate(); rate > 0 {
		digits := max(0, 2-int(math.Floor(math.Log10(rate))))
		if text += fmt.Sprintf(", %.*f %s/s", digits, rate, b.o.Unit); b.o.All >= 0 {
			text += fmt.Sprintf(", about %v left", left.Round(time.Second))
		}
	}
	if also := b.also(); also != "" {
		text += ", " + also
	}
	return text
}

// count describes how many are done.
func (b *Bar) count() string {
	of := ""
	if b.o.All >= 0 {
		of = fmt.Sprintf(" of %d", b.o.All)
	}
	return fmt.Sprintf("%s: %d%s %s", b.o.What, b.done.Load(), of, b.o.Unit)
}

func (b *Bar) also() string {
	if b.o.Also == nil {
		return ""
	}
	return b.o.Also()
}

// print writes the progress as a line.
func (b *Bar) print(w io.Writer, last bool) {
	switch {
	case last:
		fmt.Fprintf(w, "%s in %v\n", b.count(), time.Since(b.begun).Round(time.Second))
	case b.done.Load() > b.o.From:
		fmt.Fprintln(w, b.text())
	}
}

// record writes the progress to the log.
func (b *Bar) record(bool) {
	rate, left := b.rate()
	more := []any{"what", b.o.What, "unit", b.o.Unit, "done", b.done.Load(), "all", b.o.All}
	if rate > 0 {
		if more = append(more, "per_second", rate); b.o.All >= 0 {
			more = append(more, "seconds_left", left.Seconds())
		}
	}
	if also := b.also(); also != "" {
		more = append(more, "also", also)
	}
	b.o.Log.Info("progress", more...)
}
