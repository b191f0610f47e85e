package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// setup is a config with the devices, the cut and the plan that it leads to. It has no
// fields yet.
type setup struct {
	config   *configs.Run
	problem  *solvers.Problem
	machine  *machine
	devices  []*streams.Device // by rank
	links    *p2p.Links
	cut      *domain.Decomposition
	place    *halo.Placement
	mapping  *halo.Explanation // nil where the order of the devices was not open
	compiler *kernels.Compiler
	scheme   scheme.Scheme
	tried    []scheme.Trial // where the scheme is the fastest of some, these
	plan     *halo.Plan     // of the exchange in a step
}

// newSetup opens the devices and plans. Notes for the user go to notes.
func newSetup(ctx context.Context, c *configs.Run, notes io.Writer) (w *setup, err error) {
	made := &setup{config: c, compiler: kernels.CompilerFromEnv()}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.close())
		}
	}()
	if made.problem, err = newProblem(c); err != nil {
		return nil, err
	}
	if made.machine, err = openMachine(c.Devices, notes); err != nil {
		return nil, err
	}
	if err := made.openAndCut(); err != nil {
		return nil, err
	}
	if made.links, err = p2p.Discover(ctx, made.devices, made.machine.topology()); err != nil {
		return nil, err
	}
	if err := made.mapDevices(ctx); err != nil {
		return nil, err
	}
	made.scheme = scheme.Choose(scheme.Scheme(c.Exchange.Scheme), made.place)
	if made.plan, err = halo.NewPlan(made.place, made.links, made.path(), made.problem.Field()); err != nil {
		return nil, err
	}
	return made, nil
}

// path returns the path that is wanted: where the config leaves it open, that of the scheme.
func (w *setup) path() p2p.Path {
	path := p2p.Path(w.config.Exchange.Path)
	if path == p2p.Auto {
		path = cmp.Or(needsOf(scheme.Scheme(w.config.Exchange.Scheme)).Path, p2p.Auto)
	}
	return path
}

// openAndCut chooses and opens the devices and cuts the grid for them. Where the
// config leaves the number open, it is the largest that the grid can be cut for.
func (w *setup) openAndCut() error {
	ids, err := w.machine.ids(w.config.Devices)
	if err != nil {
		return err
	}
	width := w.problem.Width()
	parts := domain.Vec{1, 1, 1}
	if copy(parts[:], w.config.Decomposition) == 0 {
		parts, err = domain.AutoParts(w.problem.Grid, len(ids), width)
		for err != nil && w.config.Devices.Count == 0 && len(ids) > 1 {
			ids = ids[:len(ids)-1]
			parts, err = domain.AutoParts(w.problem.Grid, len(ids), width)
		}
		if err != nil {
			return fmt.Errorf("devices.count: %w", err)
		}
	}
	if int(parts.Product()) != len(ids) {
		return fmt.Errorf("decomposition: %v is for %d devices; %d are used", parts, parts.Product(), len(ids))
	}
	if w.cut, err = domain.Decompose(w.problem.Grid, parts); err != nil {
		return fmt.Errorf("decomposition: %w", err)
	}
	w.devices, err = w.machine.platform.Open(ids...)
	return err
}

// mapDevices gives the subdomains their devices, and measures the links where that, or
// the path of a message, depends on it.
func (w *setup) mapDevices(ctx context.Context) (err error) {
	open := w.orderIsOpen()
	if open || w.path() == p2p.Auto && len(w.devices) > 1 {
		if err := w.measure(ctx); err != nil {
			return err
		}
	}
	if !open {
		w.place, err = halo.Place(w.cut, w.devices)
		return err
	}
	place, why, err := halo.MapDevices(w.cut, w.devices, w.cost, w.problem.Field())
	if err != nil {
		return err
	}
	w.place, w.devices, w.mapping = place, place.Devices, &why
	return nil
}

// orderIsOpen reports whether it is for halox to say which subdomain goes to which
// device, and matters.
func (w *setup) orderIsOpen() bool {
	return w.machine.backend == streams.CUDA && len(w.devices) > 2 && len(w.config.Devices.IDs) == 0
}

// measure finds out what messages take, unless it is known.
func (w *setup) measure(ctx context.Context) (err error) {
	if w.links.Model == nil {
		w.links.Model, err = halo.LinkModel(ctx, w.devices, w.links, w.compiler, w.machine.driver(), "")
	}
	return err
}

// cost returns what a packed message takes by the link model, in seconds.
func (w *setup) cost(from, to *streams.Device, bytes int64) float64 {
	message := p2p.MessageShape{Bytes: bytes, Packed: true}
	path, _, err := w.links.Choose(w.path(), from, to, message)
	took, known := w.links.Model.Time(from, to, path, message)
	if err != nil || !known {
		return math.Inf(1)
	}
	return took.Seconds()
}

// close frees the devices and what is on them.
func (w *setup) close() error {
	err := streams.CloseAll(w.devices)
	if w.machine != nil {
		err = errors.Join(err, w.machine.close())
	}
	return err
}
