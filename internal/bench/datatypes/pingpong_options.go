package datatypes

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// PingPongOptions say which messages go from one device to another and back.
type PingPongOptions struct {
	Layouts
	Paths    []string // nil for the figure's, or direct and peer
	Engines  []string // nil for the figure's, or auto; see Engines
	Fragment int64    // bytes of a fragment; 0 for what suits
	Ring     int      // fragments under way at once; 0 for what suits
	Remote   bool     // by path peer, unpack from the sender's memory
	Busy     float64  // the fraction of each device that something else keeps busy

	figure *pingFigure
	work   []workloads.Workload
}

// PingPongPaths returns the paths that can be measured.
func PingPongPaths() []string {
	paths := option.Texts(p2p.Paths())
	slices.Reverse(paths)
	return paths
}

// maxRing bounds the fragments under way: each has events and a buffer of its own.
const maxRing = 1024

// List fills in what was left open and returns the layouts that the options choose.
func (o *PingPongOptions) List() ([]workloads.Workload, error) {
	err := o.check()
	if o.Paths != nil {
		err = cmp.Or(err, option.EachOf("paths", o.Paths, PingPongPaths()...))
	}
	if o.Engines != nil {
		err = cmp.Or(err, option.EachOf("engine", o.Engines, Engines()...))
	}
	if err = cmp.Or(err, o.checkNumbers()); err != nil {
		return nil, err
	}
	if err := o.setFigure(); err != nil {
		return nil, err
	}
	if o.Remote && !slices.Contains(o.Paths, string(p2p.Peer)) {
		return nil, errors.New("--remote is for path peer, which is not among --paths")
	}
	o.work, err = o.choose(o.figure.shows)
	return o.work, err
}

func (o *PingPongOptions) checkNumbers() error {
	switch {
	case o.Fragment < 0:
		return fmt.Errorf("--fragment %d: give a positive number of bytes, or 0 for what suits", o.Fragment)
	case o.Ring < 0 || o.Ring > maxRing:
		return fmt.Errorf("--ring %d: give a positive number up to %d, or 0 for what suits", o.Ring, maxRing)
	case !(o.Busy >= 0 && o.Busy <= 1):
		return fmt.Errorf("--busy %v: give a fraction from 0 to 1", o.Busy)
	}
	return nil
}

// setFigure finds the figure, and takes what it has of its own and what its paper did where the
// options say nothing.
func (o *PingPongOptions) setFigure() (err error) {
	if o.Figure == "" {
		o.figure = generalPingFigure(o.generalAxes("Ping-pong"))
	} else {
		if o.figure, err = named(pingFigures(), o.Figure); err != nil {
			return err
		}
		if o.Engines != nil && o.figure.engines != nil {
			return ownOption(&o.figure.axes, "engine")
		}
		if err := o.take(&o.figure.axes); err != nil {
			return err
		}
	}
	o.Engines = firstOf(o.Engines, o.figure.engines, []string{string(packing.Auto)})
	o.Paths = firstOf(o.Paths, o.figure.paths, []string{string(p2p.Direct), string(p2p.Peer)})
	return nil
}

// firstOf returns the first that is not nil.
func firstOf(all ...[]string) []string {
	return all[slices.IndexFunc(all, func(s []string) bool { return s != nil })]
}

// Check refuses options that make no sense, and fills in those that were left open.
func (o *PingPongOptions) Check() error {
	work, err := o.List()
	if err != nil {
		return err
	}
	return o.checkAxis(&o.figure.axes, work)
}

// channels returns those to be measured.
func (o *PingPongOptions) channels() []channel { return channelsOf(o.Paths, o.Engines, o.Remote) }

// Contenders returns what is measured, as results name it.
func (o *PingPongOptions) Contenders() []string { return namesOf(o.channels()) }

// Draw draws the figure of a record. It is plot.ErrNothing where the record has nothing of it.
func (o *PingPongOptions) Draw(r *results.Record) (plot.Chart, error) {
	return chartOf(o.figure.draw(r))
}
