package guard_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/internal/test"
)

// What may be held at once, and that nothing held is closed.
func TestHoldsBesideEachOther(t *testing.T) {
	holds := []guard.Hold{guard.Open, guard.Share, guard.Alone}
	excluded := map[[2]guard.Hold]bool{
		{guard.Share, guard.Alone}: true, {guard.Alone, guard.Share}: true, {guard.Alone, guard.Alone}: true,
	}
	for _, first := range holds {
		for _, second := range holds {
			var g guard.Guard
			test.Check(t, g.Hold(first))
			err := g.Hold(second)
			if errors.Is(err, guard.ErrBusy) != excluded[[2]guard.Hold{first, second}] {
				t.Errorf("%x next to %x: %v", second, first, err)
			}
			if err == nil {
				g.Release(second)
			}
			test.Is(t, g.Close(), guard.ErrBusy)
			g.Release(first)
			if err := g.Close(); err != nil || !errors.Is(g.Close(), guard.ErrClosed) {
				t.Errorf("close: %v, again: %v", err, g.Close())
			}
			test.Is(t, g.Hold(second), guard.ErrClosed)
		}
	}
}

// Of many goroutines one holds it alone at a time, and after Close none does.
func TestOneHoldsItAlone(t *testing.T) {
	var g guard.Guard
	var inside, most atomic.Int64
	var group sync.WaitGroup
	closed := 0 // written by whoever holds it alone
	for range 8 {
		group.Go(func() {
			for !g.Closed() {
				if g.Hold(guard.Alone) != nil {
					continue
				}
				most.Store(max(most.Load(), inside.Add(1)))
				closed++
				inside.Add(-1)
				g.Release(guard.Alone)
				if closed := g.Close(); closed == nil && inside.Load() > 0 {
					t.Error("closed while it was held")
				}
			}
		})
	}
	group.Wait()
	if most.Load() != 1 || !g.Closed() {
		t.Errorf("%d at once, closed %v", most.Load(), g.Closed())
	}
}

// Uses cost no memory.
func TestHoldsAllocateNothing(t *testing.T) {
	var g guard.Guard
	if n := testing.AllocsPerRun(100, func() { _ = g.Hold(guard.Alone); g.Release(guard.Alone) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
