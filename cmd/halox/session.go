package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// openSession opens the devices that a config wants. What the user should know of it, that
// there is no GPU or that the cache is not to be trusted or cannot be written, goes to notes.
func openSession(ctx context.Context, c configs.Devices, notes io.Writer) (*halo.Session, error) {
	return openShared(ctx, c, shared{}, notes)
}

// shared is with whom a session shares grids.
type shared struct {
	processes *mpi.Processes // nil where this process is alone
	network   mpi.Network    // of messages to the others
}

// openShared is openSession where processes share grids.
func openShared(ctx context.Context, c configs.Devices, with shared, notes io.Writer) (*halo.Session, error) {
	if err := cmp.Or(cache.At("").Check(), cache.At("").Keeps()); err != nil {
		fmt.Fprintln(notes, err)
	}
	during(ctx, "opening the devices", nil)
	devices := devicesOf(c)
	devices.Processes, devices.Network = with.processes, with.network
	s, err := halo.Open(ctx, devices)
	if err != nil {
		return nil, inConfig(err)
	}
	if s.Note != "" {
		fmt.Fprintln(notes, s.Note)
	}
	return s, nil
}

// devicesOf translates the config.
func devicesOf(c configs.Devices) halo.Devices {
	d := halo.Devices{Backend: streams.Backend(c.Backend), Count: int(c.Count), IDs: c.IDs}
	if c.Backend == configs.Auto {
		d.Backend = ""
	}
	return d
}

// optionKeys are the keys of a config that set the options of a session.
var optionKeys = map[string]string{
	"Devices.Backend": "devices.backend", "Devices.Count": "devices.count", "Devices.IDs": "devices.ids",
	"Devices.Network": "exchange.network", "Cutting.Size": "grid.size", "Cutting.Parts": "decomposition", "Cutting.Devices": "devices.count",
}

// inConfig names the key of a config in place of the option that cannot be had.
func inConfig(err error) error {
	if o, ok := errors.AsType[*halo.OptionError](err); ok && optionKeys[o.Option] != "" {
		return fmt.Errorf("%s: %w", optionKeys[o.Option], o.Err)
	}
	return err
}
