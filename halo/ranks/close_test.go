package ranks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// Close waits for a running run, whether it ends by its limit or by the context, and the devices are usable
// afterwards. Until then another run, a window and a channel are rejected.
func TestCloseWaits(t *testing.T) {
	for name, open := range map[string]func(t testing.TB, n int) *testdevices.Set{
		"host": testdevices.Host, "cuda-on-cpu": testdevices.CPUBesideThreads,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, 2)
			testdevices.Patiently(t, func(limit time.Duration) error { return closeWaits(t, s, limit) })
			for _, d := range s.Devices {
				test.Report(t, d.Err())
			}
		})
	}
}

func closeWaits(t *testing.T, s *testdevices.Set, limit time.Duration) error {
	var w *ranks.World
	var wrongs []error
	is := func(what string, err, want error) {
		if !errors.Is(err, want) {
			wrongs = append(wrongs, fmt.Errorf("%s: %w, want %w", what, err, want))
		}
	}
	says := func(what string, err error, want string) {
		if err == nil || !strings.Contains(err.Error(), want) {
			wrongs = append(wrongs, fmt.Errorf("%s: %w, want %q", what, err, want))
		}
	}
	begin := func(ctx context.Context, waits time.Duration) <-chan error {
		p := ranks.Program{Name: "wrong", Source: source(), Kernel: "wrong", Threads: 32, Host: func(r *ranks.Rank) {
			r.WaitNotifications(200, 1)
		}}
		var err error
		if w, err = ranks.New(s.Compiler, s.Devices, s.Links, p, ranks.Options{Ranks: 2, Limit: waits}); err != nil {
			t.Fatal(err)
		}
		m := memory(t, w, 512)
		ended := make(chan error, 1)
		go func() {
			ended <- ranks.Run(ctx, w, []wrong{{m[0].Address(), -1, 0}, {m[1].Address(), -1, 0}}) // -1: no wrong call
		}()
		time.Sleep(limit / 6) // so that the ranks wait
		return ended
	}
	for range 2 {
		ended := begin(t.Context(), limit)
		is("close", w.Close(), nil)
		is("a run beyond its limit", <-ended, ranks.ErrTimeout)
	}

	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := begin(ctx, 2*time.Minute)
	is("close of its devices", streams.CloseAll(s.Devices), guard.ErrBusy)
	says("a second run", ranks.Run(t.Context(), w, make([]wrong, 2)), "the world is running")
	_, err := w.NewWindow(ranks.All, func(int) streams.Span { return streams.Span{} })
	says("a window", err, "the world is running")
	_, err = w.NewChannel(0, 1, 4, 64)
	says("a channel", err, "the world is running")
	var over atomic.Bool
	time.AfterFunc(limit/6, func() {
		over.Store(true)
		cancel(enough)
	})
	is("close", w.Close(), nil)
	if !over.Load() {
		wrongs = append(wrongs, errors.New("closed before the run has ended"))
	}
	is("a run that is interrupted", <-ended, enough)
	is("close again", w.Close(), nil)
	says("a run of a closed world", ranks.Run(t.Context(), w, make([]wrong, 2)), "the world is closed")
	return errors.Join(wrongs...)
}
