package scheme

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/p2p"
)

// Scheme is how the sweeps and exchanges of a step are ordered over host
// threads and streams.
type Scheme string

// Auto is the scheme that suits the placement, see Choose; Fastest finds it by trial.
const Auto Scheme = "auto"

// Order is how a scheme divides its exchange into two phases.
type Order string

// The orders: LeftRight sends all that goes in + directions, then all that
// goes in - directions; Pairwise exchanges both ways within every other pair
// of neighbours, then within the pairs between.
const (
	LeftRight Order = "left-right"
	Pairwise  Order = "pairwise"
)

// Needs are what a scheme says of itself, for all that offer a choice: what it needs of steps,
// plans and devices.
type Needs struct {
	Paths        []p2p.Path // it can exchange over; all where there are none
	Path         p2p.Path   // it takes where the choice is left to it; p2p.Auto where this is empty
	Orders       []Order    // it can be told to take; none where it has one of its own
	MaxDevices   int        // of all processes; 0 where there is no limit
	OnePerDevice bool       // every subdomain has a device of its own
	Steady       bool       // nothing that a step is given changes with time, but by its kernels
	Swept        bool       // halox sweeps the stages: it takes no kernels of the caller's own
	Processes    bool       // its subdomains can be those of several processes, to which messages take path mpi
	Groups       bool       // it can make several steps between two exchanges, see Step.Group
	// it exchanges between parts of a subdomain too, so that groups of steps matter on one device
	Within bool
}

// ErrUnsuited says that a scheme cannot run a step on the devices it is placed on.
var ErrUnsuited = errors.New("the scheme does not suit the step")

// CheckPath returns an error, ErrUnsuited, if a scheme with these needs cannot exchange over a
// path that is asked for.
func (n Needs) CheckPath(name Scheme, path p2p.Path) error {
	if path != p2p.Auto && len(n.Paths) > 0 && !slices.Contains(n.Paths, path) {
		return fmt.Errorf("scheme: %w: %s exchanges over path %v, not %s", ErrUnsuited, name, n.Paths, path)
	}
	return nil
}

// CheckDevices returns an error if a scheme with these needs cannot take so many devices.
func (n Needs) CheckDevices(name Scheme, devices int) error {
	if n.MaxDevices > 0 && devices > n.MaxDevices {
		return fmt.Errorf("%s: %d devices; up to %d are possible", name, devices, n.MaxDevices)
	}
	return nil
}

// checkOrder returns an error, ErrUnsuited, if a scheme with these needs cannot take an order
// that is asked for.
func (n Needs) checkOrder(name Scheme, o Order) error {
	if o != "" && !slices.Contains(n.Orders, o) {
		return fmt.Errorf("scheme: %w: %s has no order %q; it can take %q", ErrUnsuited, name, o, n.Orders)
	}
	return nil
}
