package halo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/host"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// maxHostDevices is the largest number of host devices that Open opens.
const maxHostDevices = 1024

// Devices says which devices Open opens. The zero value means all GPUs, or where there
// are none one host device per core.
type Devices struct {
	Backend streams.Backend // "": that of the GPUs where there are some, else host devices
	Count   int             // 0: all; the number of IDs where these are given
	IDs     []int           // by the backend's numbers, each once, in this order; nil: the first Count

	// Processes share grids with this one, see mpi.Join; nil where this one is alone. Those of a
	// host share its devices, or the IDs; Count is then of each process.
	Processes *mpi.Processes

	// Network carries messages to other processes. Auto, or "": the fastest that TryNetworks has found right on these
	// processes before, mpi.Pieces where it was not called. One that is named and cannot be had is an error.
	Network mpi.Network
}

// OptionError says which option cannot be had, and why.
type OptionError struct {
	Option string // such as "Devices.Count" or "Cutting.Parts"
	Err    error
}

// Error names the option.
func (e *OptionError) Error() string { return "halo: " + e.Option + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *OptionError) Unwrap() error { return e.Err }

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}

// tooSmall is the error of a grid that is too small for so many devices, and says whether fewer would do.
func tooSmall(err error, grid domain.Grid, devices int, width domain.Radius) error {
	if _, alone := domain.AutoParts(grid, 1, width); devices == 1 || alone != nil {
		return optionError("Devices.Count", "%w: use a larger grid", err)
	}
	return optionError("Devices.Count", "%w: use fewer devices or a larger grid", err)
}

// open reports whether it is left to halox how many devices are used.
func (d Devices) open() bool { return d.Count == 0 && len(d.IDs) == 0 }

// check refuses what no machine can have.
func (d Devices) check() error {
	switch {
	case d.Backend != "" && !slices.Contains(streams.Backends(), string(d.Backend)):
		return optionError("Devices.Backend", "there is no %q: %s, or none for either", d.Backend,
			strings.Join(streams.Backends(), ", "))
	case d.Count < 0:
		return optionError("Devices.Count", "%d is negative", d.Count)
	case d.Count > 0 && len(d.IDs) > 0 && d.Count != len(d.IDs):
		return optionError("Devices.Count", "%d does not agree with Devices.IDs, which has %d", d.Count, len(d.IDs))
	}
	if d.Network != "" && d.Network != mpi.Auto && !slices.Contains(mpi.Networks(), d.Network) {
		return optionError("Devices.Network", "there is no %q: %s, or one of %v", d.Network, mpi.Auto, mpi.Networks())
	}
	seen := map[int]bool{}
	for _, id := range d.IDs {
		if id < 0 || seen[id] {
			return optionError("Devices.IDs", "%v: they must be different, and count from 0", d.IDs)
		}
		seen[id] = true
	}
	return nil
}

// platform opens the backend, or the first that this machine has if none is named; without says why it has none that
// come before. A library that the environment names must be one.
func (d Devices) platform(ctx context.Context) (p *streams.Platform, without, err error) {
	for _, k := range streams.Kinds() {
		if d.Backend != "" && d.Backend != k.Backend {
			continue
		}
		p, err := d.start(ctx, k)
		switch {
		case err == nil:
			return p, without, nil
		case d.Backend != "" || !errors.Is(err, streams.ErrNoDriver) || named(k) && errors.Is(err,
			streams.ErrNoLibrary):
			return nil, nil, err
		case without == nil:
			without = fmt.Errorf("no %s: %w", k.Noun, errors.Unwrap(err))
		}
	}
	return nil, nil, optionError("Devices.Backend", "%w", without)
}

// named reports whether the environment names the library of the backend.
func named(k streams.Kind) bool { return k.Variable != "" && os.Getenv(k.Variable) != "" }

// start opens one backend.
func (d Devices) start(ctx context.Context, k streams.Kind) (*streams.Platform, error) {
	n, option := d.hostCount()
	if k.HostCores && n > maxHostDevices {
		return nil, optionError(option, "%d %ss: must be at most %d", n, k.Noun, maxHostDevices)
	}
	p, err := startDriver(ctx, k, n)
	switch {
	case err == nil:
		return p, nil
	case named(k) && errors.Is(err, streams.ErrNoLibrary):
		return nil, optionError("Devices.Backend", "%s: %w", k.Variable, err)
	}
	return nil, &OptionError{"Devices.Backend", err}
}

// startDriver opens the driver of a backend. One that does not come back when the context
// ends is left to itself.
func startDriver(ctx context.Context, k streams.Kind, devices int) (*streams.Platform, error) {
	type started struct {
		platform *streams.Platform
		err      error
	}
	done := make(chan started, 1)
	go func() {
		library := ""
		if named(k) {
			library = os.Getenv(k.Variable)
		}
		p, err := k.Open(library, devices)
		done <- started{p, err}
	}()
	select {
	case s := <-done:
		return s.platform, s.err
	case <-ctx.Done():
	}
	go func() {
		if s := <-done; s.err == nil {
			_ = s.platform.Close() // no caller waits for it
		}
	}()
	return nil, fmt.Errorf("halo: start the %s driver: %w", k.Backend, ctx.Err())
}

// hostCount returns how many host devices to open, and the option that says so: one
// a core, or, where more are asked for, these.
func (d Devices) hostCount() (n int, option string) {
	n, option = min(host.Threads(), maxHostDevices), "Devices.Count"
	if d.Count > 0 {
		n = d.Count
	}
	if len(d.IDs) > 0 && slices.Max(d.IDs) >= n {
		n, option = slices.Max(d.IDs)+1, "Devices.IDs"
	}
	return n, option
}

// choose returns the ids of the devices to open.
func (d Devices) choose(backend streams.Backend, have int) ([]int, error) {
	for _, id := range d.IDs {
		if id >= have {
			return nil, optionError("Devices.IDs", "there is no %s device %d; this machine has %d, counted from 0",
				backend, id, have)
		}
	}
	if len(d.IDs) > 0 {
		return d.IDs, nil
	}
	n := d.Count
	if n == 0 || !d.Processes.IsAlone() { // which take their shares of all
		n = have
	}
	if n > have {
		return nil, optionError("Devices.Count", "%d %s devices were asked for; this machine has %d", n, backend, have)
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids, nil
}
