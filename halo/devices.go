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

// maxHostDevices is the largest number of CPU devices that Open opens.
const maxHostDevices = 1024

// Devices selects the devices that Open opens. The zero value selects all GPUs, or one CPU device per core if
// there is no GPU.
type Devices struct {
	Backend streams.Backend // "": GPUs if there are any, otherwise CPU devices
	Count   int             // number of devices per process; 0: all, or the number of IDs
	IDs     []int           // device numbers of the backend, distinct, in this order; nil: the first Count

	// Without are devices that are left out, such as failed ones: PCI bus ids, or names such as "cuda 1". Fewer devices
	// than Count or IDs request are opened then.
	Without []string

	// Processes are the processes that share grids with this one, see mpi.Join; nil for a single process.
	// Processes on one host share its devices, or the IDs; Count is per process.
	Processes *mpi.Processes

	// Network carries messages to other processes. Auto, or "", is the fastest network that TryNetworks has
	// verified for these processes. If it has not run, it is mpi.IPC within a host, if that carries data intact, and
	// mpi.Pieces otherwise. It is an error if a named network is unavailable.
	Network mpi.Network
}

// OptionError reports an invalid or unavailable option.
type OptionError struct {
	Option string // such as "Devices.Count" or "Cutting.Parts"
	Err    error  // the reason
}

// Error names the option.
func (e *OptionError) Error() string { return "halo: " + e.Option + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *OptionError) Unwrap() error { return e.Err }

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}

// tooSmall returns the error for a grid that is too small for the devices, and suggests fewer devices if that
// helps.
func tooSmall(err error, grid domain.Grid, devices int, width domain.Radius) error {
	if _, alone := domain.AutoParts(grid, 1, width); devices == 1 || alone != nil {
		return optionError("Devices.Count", "%w: use a larger grid", err)
	}
	return optionError("Devices.Count", "%w: use fewer devices or a larger grid", err)
}

// open reports whether halox chooses the number of devices.
func (d Devices) open() bool { return d.Count == 0 && len(d.IDs) == 0 }

// check returns an error if an option is invalid on every machine.
func (d Devices) check() error {
	switch {
	case d.Backend != "" && !slices.Contains(streams.Backends(), string(d.Backend)):
		return optionError("Devices.Backend", "must be %s or empty, got %q", strings.Join(streams.Backends(), ", "),
			d.Backend)
	case d.Count < 0:
		return optionError("Devices.Count", "must not be negative, got %d", d.Count)
	case d.Count > 0 && len(d.IDs) > 0 && d.Count != len(d.IDs):
		return optionError("Devices.Count", "must be 0 or the number of Devices.IDs (%d), got %d", len(d.IDs), d.Count)
	}
	if d.Network != "" && d.Network != mpi.Auto && !slices.Contains(mpi.Networks(), d.Network) {
		return optionError("Devices.Network", "must be %s or one of %v, got %q", mpi.Auto, mpi.Networks(), d.Network)
	}
	seen := map[int]bool{}
	for _, id := range d.IDs {
		if id < 0 || seen[id] {
			return optionError("Devices.IDs", "must be distinct and at least 0, got %v", d.IDs)
		}
		seen[id] = true
	}
	return nil
}

// platform opens the backend, or the first available one if none is named. without is the reason why earlier
// backends are unavailable. If the environment names a library, it must be usable.
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
		return nil, optionError(option, "must be at most %d %ss, got %d", maxHostDevices, k.Noun, n)
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

// startDriver opens the driver of a backend. It abandons a driver that does not return before the context
// ends.
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
			_ = s.platform.Close() // no caller is waiting for it
		}
	}()
	return nil, fmt.Errorf("halo: start the %s driver: %w", k.Backend, ctx.Err())
}

// hostCount returns how many CPU devices to open, one per core or more if requested, and the option that sets
// it.
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
func (d Devices) choose(infos []streams.Info) (ids []int, err error) {
	backend, have := infos[0].Backend, len(infos)
	if len(d.Without) > 0 { // which the driver may not list
		d.Count = min(d.Count, have)
		defer func() {
			ids = slices.DeleteFunc(slices.Clone(ids), func(id int) bool {
				return id >= have || slices.Contains(d.Without, infos[id].PCIBusID) ||
					slices.Contains(d.Without, fmt.Sprintf("%s %d", backend, id))
			})
			if len(ids) == 0 && err == nil {
				err = optionError("Devices.Without", "must leave a device to open, got %v", d.Without)
			}
		}()
	}
	for _, id := range d.IDs {
		if id >= have && len(d.Without) == 0 {
			return nil, optionError("Devices.IDs",
				"must be %s devices of this machine, which has %d (counted from 0), got %d", backend, have, id)
		}
	}
	if len(d.IDs) > 0 {
		return d.IDs, nil
	}
	n := d.Count
	if n == 0 || !d.Processes.IsAlone() { // which share all devices
		n = have
	}
	if n > have {
		return nil, optionError("Devices.Count", "must be at most the %d %s devices of this machine, got %d", have,
			backend, n)
	}
	ids = make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids, nil
}
