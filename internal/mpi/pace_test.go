package mpi

import (
	"testing"
	"time"
)

// No more waits than are allowed look without a rest, each for as long as it may, and others take their places when they end.
func TestWaitsSpinInTurn(t *testing.T) {
	var w waits
	w.most.Store(2)
	all := make([]pace, 4)
	for i := range all {
		all[i] = newPace(&w)
		all[i].rest()
	}
	for i, p := range all {
		if p.spins != (i < 2) {
			t.Errorf("wait %d of 4, of which 2 may: %t", i, p.spins)
		}
	}
	all[0].end()
	all[0].end()
	late := newPace(&w)
	if late.rest(); !late.spins {
		t.Error("no wait took the place of one that ended")
	}
	for late.rest() < spinning.Spin {
	}
	if waited := late.rest(); late.spins || waited < spinning.Spin {
		t.Errorf("a wait of %v looks without a rest", waited)
	}
	for i := range all {
		all[i].end()
	}
	late.end()
	if n := w.spinning.Load(); n != 0 {
		t.Errorf("%d waits are counted that have ended", n)
	}
}

// No more threads linger than are allowed, none for long, and an order that comes meanwhile ends it.
func TestLinger(t *testing.T) {
	var l Library
	never := func() bool { return false }
	if l.Linger(func() bool { return true }) {
		t.Error("one lingers where none may")
	}
	l.Spin(1)
	looks := 0
	if !l.Linger(func() bool {
		looks++
		if looks == 1 && l.Linger(func() bool { return true }) {
			t.Error("two linger where one may")
		}
		return looks == 3
	}) {
		t.Error("an order that came was not seen")
	}
	began := time.Now()
	if l.Linger(never) || time.Since(began) < lingerFor {
		t.Errorf("without an order it ended after %v", time.Since(began))
	}
	if n := l.idle.spinning.Load(); n != 0 {
		t.Errorf("%d are counted that have ended", n)
	}
}
