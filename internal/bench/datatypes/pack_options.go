package datatypes

import (
	"cmp"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// PackOptions say which engines pack which layouts.
type PackOptions struct {
	Layouts
	Engines []string // nil for all and auto, see Engines; the driver's copies are always among them
	To      string   // where the packed bytes go and come from, ToDevice or ToPinned; "" for the figure's, or ToDevice
	Unpack  bool     // unpacking is measured too

	figure *packFigure
	work   []workloads.Workload
}

// List fills in what was left open and returns the layouts that the options choose.
func (o *PackOptions) List() ([]workloads.Workload, error) {
	err := o.check()
	if o.Engines != nil {
		err = cmp.Or(err, option.EachOf("engines", o.Engines, Engines()...))
	}
	if o.To != "" {
		err = cmp.Or(err, option.OneOf("to", o.To, ToDevice, ToPinned))
	}
	if err != nil {
		return nil, err
	}
	if err := o.setFigure(); err != nil {
		return nil, err
	}
	o.work, err = o.choose(o.figure.shows)
	return o.work, err
}

// setFigure finds the figure, and takes what it has of its own.
func (o *PackOptions) setFigure() (err error) {
	if o.Figure == "" {
		o.To = cmp.Or(o.To, ToDevice)
		if o.Engines == nil {
			o.Engines = []string{AllEngines, string(packing.Auto)}
		}
		o.figure = generalPackFigure(o.generalAxes("Packing"), o.contenders())
		return nil
	}
	if o.figure, err = named(packFigures(), o.Figure); err != nil {
		return err
	}
	f := o.figure
	switch {
	case o.Engines != nil:
		return ownOption(&f.axes, "engines")
	case o.Unpack:
		return ownOption(&f.axes, "unpack")
	case o.To == "" && f.pinned:
		o.To = ToPinned
	}
	o.To, o.Unpack = cmp.Or(o.To, ToDevice), f.roundTrip
	return o.take(&f.axes)
}

// contenders returns the engines that are asked for, the driver's copies always.
func (o *PackOptions) contenders() (all []contender) {
	for _, e := range chosenEngines(append([]string{string(packing.Copies)}, o.Engines...)) {
		all = append(all, contender{engine: e})
	}
	return all
}

// Check refuses options that make no sense, and fills in those that were left open.
func (o *PackOptions) Check() error {
	work, err := o.List()
	if err != nil {
		return err
	}
	return o.checkAxis(&o.figure.axes, work)
}

// Contenders returns what is measured, as results name it.
func (o *PackOptions) Contenders() []string { return namesOf(o.figure.contenders()) }

// Draw draws the figure of a record. It is plot.ErrNothing where the record has nothing of it.
func (o *PackOptions) Draw(r *results.Record) (plot.Chart, error) { return chartOf(o.figure.draw(r)) }
