package ranks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// Close waits for a run that goes on, whether it ends by its limit or because the context does, and the devices are of
// use afterwards. Meanwhile another run, a window and a channel are refused.
func TestCloseWaits(t *testing.T) {
	const limit = 300 * time.Millisecond
	enough := errors.New("enough")
	for name, open := range map[string]func(t testing.TB, n int) *testdevices.Set{
		"host": testdevices.Host, "cuda-on-cpu": testdevices.CPUBesideThreads,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, 2)
			var w *ranks.World
			m := make([]*streams.Memory, len(s.Devices))
			began := make(chan struct{}, 100)
			begin := func(ctx context.Context, limit time.Duration) <-chan error {
				p := ranks.Program{Name: "wrong", Source: source(), Kernel: "wrong", Threads: 32, Host: func(r *ranks.Rank) {
					r.WaitNotifications(200, 1)
				}}
				var err error
				if w, err = ranks.New(s.Compiler, s.Devices, s.Links, p, ranks.Options{Ranks: 2, Limit: limit}); err != nil {
					t.Fatal(err)
				}
				m = memory(t, w, 512)
				ended := make(chan error, 1)
				go func() {
					began <- struct{}{}
					ended <- ranks.Run(ctx, w, []wrong{{m[0].Address(), -1, 0}, {m[1].Address(), -1, 0}}) // -1 is nothing wrong
				}()
				<-began
				time.Sleep(30 * time.Millisecond) // so that the ranks wait
				return ended
			}
			closed := func(ended <-chan error, want error) {
				t.Helper()
				if err := w.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				if err := <-ended; !errors.Is(err, want) {
					t.Errorf("the run: %v, want %v", err, want)
				}
			}
			for range 5 {
				closed(begin(t.Context(), limit), ranks.ErrTimeout)
			}

			ctx, cancel := context.WithCancelCause(t.Context())
			ended, early := begin(ctx, time.Minute), make(chan struct{})
			time.AfterFunc(100*time.Millisecond, func() {
				select {
				case <-early:
					t.Error("closed before the run has ended")
				default:
				}
				cancel(enough)
			})
			if err := w.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			close(early)
			closed(ended, enough) // again

			ended = begin(t.Context(), limit)
			if err := ranks.Run(t.Context(), w, make([]wrong, 2)); err == nil || !strings.Contains(err.Error(), "the world is running") {
				t.Errorf("a second run: %v", err)
			}
			if _, err := w.NewWindow(ranks.All, func(int) streams.Span { return streams.Span{} }); err == nil || !strings.Contains(err.Error(), "the world is running") {
				t.Errorf("a window: %v", err)
			}
			if _, err := w.NewChannel(0, 1, 4, 64); err == nil || !strings.Contains(err.Error(), "the world is running") {
				t.Errorf("a channel: %v", err)
			}
			closed(ended, ranks.ErrTimeout)
			if err := ranks.Run(t.Context(), w, make([]wrong, 2)); err == nil || !strings.Contains(err.Error(), "the world is closed") {
				t.Errorf("a run of a closed world: %v", err)
			}
			for _, d := range s.Devices {
				if err := d.Err(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
