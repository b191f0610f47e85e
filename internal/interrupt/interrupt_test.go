//go:build unix

package interrupt

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
)

// limit is the time without progress after which a watch of these tests ends a command.
const limit = time.Second

// After a signal, what hangs is ended by force and what progresses is waited for; the next signal ends both.
func TestSignals(t *testing.T) {
	never := make(chan error)
	// A watch counts the time that it could run, so commands wait for what it says.
	progresses := func(ctx context.Context, out *test.Output, sign func(context.Context)) error {
		During(ctx, "stepping", nil)
		<-ctx.Done()
		for n := 0; n < 20 || out != nil && out.String() == ""; n++ { // three times the limit at least
			time.Sleep(limit * 3 / 20)
			sign(ctx)
		}
		return nil
	}
	for _, tc := range []struct {
		name    string
		command func(ctx context.Context, out *test.Output) error
		signals int
		want    error
		says    string
		after   int64 // signs of progress, before the signals
	}{
		{"looks at nothing", func(context.Context, *test.Output) error {
			return <-never
		}, 1, ErrInterrupted, "terminated: ended by force\n", 0},
		{"hangs", func(ctx context.Context, out *test.Output) error {
			During(ctx, "hanging", func() string { return "; kept" })
			return <-never
		}, 1, ErrInterrupted, "terminated: ended by force while hanging; kept\n", 0},
		{"hangs as rank 0 of several", func(ctx context.Context, out *test.Output) error {
			Together(ctx, true)
			During(ctx, "hanging", nil)
			return <-never
		}, 1, ErrInterrupted, "terminated: ended by force while hanging\n", 0},
		{"hangs as another rank", func(ctx context.Context, out *test.Output) error {
			Together(ctx, false)
			During(ctx, "hanging", nil)
			return <-never
		}, 1, ErrInterrupted, "", 0},
		{"hangs and has said why", func(ctx context.Context, out *test.Output) error {
			During(ctx, "hanging", nil)
			Quiet(ctx)
			return <-never
		}, 1, ErrInterrupted, "", 0},
		{"hangs after it has progressed", func(ctx context.Context, out *test.Output) error {
			During(ctx, "hanging", nil)
			Limit(ctx, None)
			<-ctx.Done()
			Limit(ctx, 0)
			return <-never
		}, 1, ErrInterrupted, "terminated: ended by force while hanging\n", 0},
		{"the second signal", func(ctx context.Context, out *test.Output) error {
			During(ctx, "writing", nil)
			Limit(ctx, None)
			return <-never
		}, 3, ErrInterrupted, "terminated: ended by force while writing\n", 0},
		{"keeps forever", func(ctx context.Context, out *test.Output) error {
			During(ctx, "hanging", func() string { <-never; return "" })
			return <-never
		}, 1, ErrInterrupted, "", 0},
		{"stops", func(ctx context.Context, out *test.Output) error {
			During(ctx, "waiting", nil)
			<-ctx.Done()
			return fmt.Errorf("wait: %w", ctx.Err())
		}, 1, ErrInterrupted, "", 0},
		{"gets the same signal twice", func(ctx context.Context, out *test.Output) error {
			return progresses(ctx, out, Progress)
		}, 2, nil, "terminated: still stepping; the next signal ends it at once\n", 0},
		{"progresses", func(ctx context.Context, out *test.Output) error {
			return progresses(ctx, out, Progress)
		}, 1, nil, "terminated: still stepping; the next signal ends it at once\n", 0},
		{"has several phases", func(ctx context.Context, out *test.Output) error {
			return progresses(ctx, out, func(ctx context.Context) { During(ctx, "reading", nil) })
		}, 1, nil, "terminated: still reading; the next signal ends it at once\n", 0},
		{"has no limit", func(ctx context.Context, out *test.Output) error {
			return progresses(ctx, out, func(ctx context.Context) { Limit(ctx, None) })
		}, 1, nil, "terminated: still stepping; the next signal ends it at once\n", 0},
		{"is patient", func(ctx context.Context, out *test.Output) error {
			Together(ctx, false)
			Patience(ctx, time.Hour)
			return progresses(ctx, nil, func(context.Context) {})
		}, 1, nil, "", 0},
		{"compiles", func(ctx context.Context, out *test.Output) error {
			During(ctx, "stepping", nil)
			Busy(ctx, func() bool { return out.String() == "" })
			<-ctx.Done()
			for out.String() == "" {
				time.Sleep(limit / 10)
			}
			return nil
		}, 1, nil, "terminated: still stepping; the next signal ends it at once\n", 0},
		{"steps slowly", func(ctx context.Context, out *test.Output) error {
			During(ctx, "stepping", nil)
			Progress(ctx)
			time.Sleep(limit)
			Progress(ctx)
			<-ctx.Done()
			for out.String() == "" {
				time.Sleep(limit / 10)
			}
			return nil
		}, 1, nil, "terminated: still stepping; the next signal ends it at once\n", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out test.Output
			w := Catch(t.Context(), &out)
			w.signals, w.patience = make(chan os.Signal), limit // not those of the process
			go func() {
				for signs := int64(-1); signs < tc.after; time.Sleep(10 * time.Millisecond) {
					w.mu.Lock()
					signs = w.progress
					w.mu.Unlock()
				}
				for i := range tc.signals {
					w.signals <- []os.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT}[i]
				}
			}()
			err := w.Run(func(ctx context.Context) error { return tc.command(ctx, &out) })
			if err != tc.want || out.String() != tc.says {
				t.Errorf("%v: %q", err, out.String())
			}
		})
	}
}

// What must not be divided is not: an end by force waits for it.
func TestWhole(t *testing.T) {
	var out test.Output
	w := Catch(t.Context(), &out)
	never, whole := make(chan error), false
	err := w.Run(func(ctx context.Context) error {
		During(ctx, "ending", func() string { return fmt.Sprint(" ", whole) })
		Whole(ctx, func() {
			w.signals <- syscall.SIGTERM
			w.signals <- syscall.SIGINT
			time.Sleep(2 * keepTime)
			whole = true
		})
		return <-never
	})
	if want := "terminated: ended by force while ending true\n"; err != ErrInterrupted || out.String() != want {
		t.Errorf("%v: %q", err, out.String())
	}
}
