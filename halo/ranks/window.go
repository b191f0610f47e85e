package ranks

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/streams"
)

// NewWindow makes a window between runs: memory returns what each rank of this process contributes, by index
// in All; a span without memory is empty. All later runs have the window, and ranks cannot free it. The
// memory must stay valid until the world is closed. All processes call it, for the same Comm, while no run is
// active. A kernel refers to it as ranks::Window{w.Slot(), ranks::WORLD}, or ranks::DEVICE if c is Device.
func (w *World) NewWindow(c Comm, memory func(rank int) streams.Span) (Window, error) {
	none, place := Window{noSlot, c}, 0
	free := w.use.TryLock()
	if free {
		defer w.use.Unlock()
	}
	var spans []streams.Span
	err := w.canMakeWindow(c, memory, free)
	for (c == All || c == Device) && w.windows[c]>>place&1 == 1 { // also after an error of one process
		place++
	}
	if err == nil {
		spans, err = w.spans(memory)
	}
	if err == nil && place >= MaxWindows {
		err = fmt.Errorf("ranks: %s already has %d windows", w.program.Name, MaxWindows)
	}
	win := Window{int(c)*MaxWindows + place, c}
	var mine []windowEntry
	for _, s := range spans {
		mine = append(mine, windowEntry{s.Address(), s.Length})
	}
	what := fmt.Sprintf("make window %d of %v", place, c)
	gathered, err := gather(w, what, mine, err)
	if err != nil {
		return none, err
	}
	all := slices.Concat(gathered...)
	if w.devices[0].GoKernels {
		w.preset(win, spans, all)
	} else {
		err = w.enter(win, all)
	}
	if err := w.agree(what, err); err != nil {
		return none, err
	}
	w.windows[c] |= 1 << place
	return win, nil
}

// canMakeWindow returns an error if a window cannot be made.
func (w *World) canMakeWindow(c Comm, memory func(rank int) streams.Span, free bool) error {
	wrong := func(why string) error { return fmt.Errorf("ranks: %s: make a window: %s", w.program.Name, why) }
	switch {
	case c != All && c != Device:
		return wrong(fmt.Sprintf("communicator %d does not exist", int(c)))
	case memory == nil:
		return wrong("the function for its memory is nil")
	}
	return w.usable(free)
}

// spans returns the memory of each rank of this process.
func (w *World) spans(memory func(rank int) streams.Span) (all []streams.Span, err error) {
	for i, d := range w.devices {
		for k := range w.ranks {
			rank := w.First() + i*w.ranks + k
			s := memory(rank)
			size := int64(0)
			if s.Memory != nil {
				size = s.Memory.Size()
			}
			switch {
			case s.Memory != nil && s.Memory.Device() != d:
				return nil, fmt.Errorf("ranks: %s: window of rank %d is on another device: %v", w.program.Name, rank, s)
			case s.Offset < 0 || s.Length < 0 || s.Offset > size-s.Length:
				return nil, fmt.Errorf(
					"ranks: %s: a window of rank %d of %d bytes at offset %d exceeds memory of %d bytes",
					w.program.Name, rank, s.Length, s.Offset, size,
				)
			case s.Memory != nil && s.Check() != nil:
				return nil, fmt.Errorf("ranks: %s: a window of rank %d of %v: %w", w.program.Name, rank, s, s.Check())
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// preset keeps a window for runs on CPU devices.
func (w *World) preset(win Window, spans []streams.Span, all []windowEntry) {
	w.presets[win.slot], w.sizes[win.slot] = make([][]byte, len(all)), make([]int64, len(all))
	for rank, e := range all {
		w.sizes[win.slot][rank] = e.Bytes
	}
	for i, s := range spans {
		if s.Memory != nil {
			w.presets[win.slot][w.First()+i] = s.Memory.Bytes()[s.Offset : s.Offset+s.Length]
		}
	}
}

// enter writes the entries of a window to the memory of each device.
func (w *World) enter(win Window, entries []windowEntry) error {
	for _, m := range w.members {
		some, err := streams.Upload(m.device, entries)
		if err != nil {
			return err
		}
		defer some.Close()
		there := m.memory.Span(w.layout().window(int64(win.slot), 0), some.Size())
		if err := errors.Join(m.stream.Copy(there, some.All()), m.stream.Sync(w.grace)); err != nil {
			return err
		}
	}
	return nil
}

// Slot returns the slot of the ranks::Window in kernels.
func (w Window) Slot() int { return w.slot }
