package sparse

import (
	"flag"
	"fmt"
)

// Rates say how fast a machine is, for the model. Those of an H200 are the defaults.
type Rates struct {
	Memory float64 // of a device, GB/s
	Link   float64 // from a device to others, GB/s
	Hop    float64 // a put with its notification, or a step of a barrier, us
	Gather float64 // elements from the second-level cache of a device, 10^9/s; 0: they are not counted
}

func (r *Rates) flags(f *flag.FlagSet) {
	f.Float64Var(&r.Memory, "memory-rate", 4000, "GB/s of a device's memory, for the model")
	f.Float64Var(&r.Link, "link-rate", 360, "GB/s from a device to others, for the model")
	f.Float64Var(&r.Hop, "hop", 2.4, "us of a put with its notification, for the model")
	f.Float64Var(&r.Gather, "gather-rate", 0, "10^9/s of elements that a device loads at random from its second-level cache, for the model; 0 leaves them out")
}

func (r *Rates) check() error {
	if !(r.Memory > 0 && r.Link > 0 && r.Hop >= 0 && r.Gather >= 0) {
		return fmt.Errorf("--memory-rate %g --link-rate %g --hop %g --gather-rate %g: want rates above 0, and a time and a rate of gathers from 0 on", r.Memory, r.Link, r.Hop, r.Gather)
	}
	return nil
}
