package ranks

import (
	"fmt"

	"github.com/halox/halox/streams"
)

// NewWindow makes a window before any run, which all runs then have: of what memory gives for each rank of the world.
// The kernel gets it by its slot, as ranks::Window{w.Slot(), ranks::WORLD}.
func (w *World) NewWindow(c Comm, memory func(rank int) streams.Span) (Window, error) {
	place := 0
	for w.windows[c]>>place&1 == 1 {
		place++
	}
	if place >= MaxWindows {
		return Window{-1, c}, fmt.Errorf("ranks: %s has %d windows already", w.program.Name, MaxWindows)
	}
	win := Window{int(c)*MaxWindows + place, c}
	spans := make([]streams.Span, w.Size())
	for rank := range spans {
		spans[rank] = memory(rank)
		if m := spans[rank].Memory; m != nil && m.Device() != w.devices[rank/w.ranks] {
			return Window{-1, c}, fmt.Errorf("ranks: %s: a window of rank %d of memory of another device: %v", w.program.Name, rank, spans[rank])
		}
	}
	if w.devices[0].GoKernels {
		w.presets[win.slot] = make([][]byte, len(spans))
		for rank, s := range spans {
			if s.Memory != nil {
				w.presets[win.slot][rank] = s.Memory.Bytes()[s.Offset : s.Offset+s.Length]
			}
		}
	} else if err := w.enter(win, spans); err != nil {
		return Window{-1, c}, err
	}
	w.windows[c] |= 1 << place
	return win, nil
}

// enter writes the entries of a window to the boards.
func (w *World) enter(win Window, spans []streams.Span) error {
	entries := make([]windowEntry, len(spans))
	for rank, s := range spans {
		entries[rank] = windowEntry{s.Address(), s.Length}
	}
	for _, m := range w.members {
		some, err := streams.Upload(m.device, entries)
		if err != nil {
			return err
		}
		defer some.Close()
		if err := m.stream.Copy(m.board.Span(w.board().window(int64(win.slot), 0), some.Size()), some.All()); err != nil {
			return err
		}
		if err := m.stream.Sync(w.options.Limit); err != nil {
			return err
		}
	}
	return nil
}

// Slot is the slot of the ranks::Window that a kernel has.
func (w Window) Slot() int { return w.slot }
