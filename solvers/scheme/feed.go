package scheme

import "github.com/halox/halox/kernels/sweep"

// changes reports whether the parameters of a stage change from step to step.
func (st *Stage) changes() bool { return st.Parameters != nil }

// feed allocates tables of parameters for the given number of steps on the devices of this process. The stages
// for which fed returns true read them there, in launches that are replayed or run several steps. Without such
// stages it does nothing.
func (r *run) feed(steps int64, fed func(st *Stage) bool) error {
	size := int64(1)
	for size < steps {
		size *= 2
	}
	var give []sweep.Give
	for i := range r.step.Stages {
		give = append(give, r.step.Stages[i].give())
	}
	for _, rank := range r.local {
		sweepers, some := make([]*sweep.Sweeper, len(give)), false
		for i := range sweepers {
			if st := &r.step.Stages[i]; st.Point != nil && fed(st) {
				sweepers[i], some = r.subdomains[rank].stages[0][i].sweeper, true
			}
		}
		if !some {
			return nil
		}
		f, err := sweep.NewFrames(r.subdomains[rank].device, size, sweepers, give)
		if err != nil {
			return err
		}
		r.resources.Add(f)
		if r.frames == nil {
			r.frames = map[int]*sweep.Frames{}
		}
		r.frames[rank] = f
	}
	return nil
}

// fedSteps is the maximum number of steps of a launch that reads tables of parameters, a power of two.
var fedSteps int64 = 256 // tests set less

// mostSteps returns the maximum number of steps of one launch: the launches of one step do not fill a queue.
func (r *run) mostSteps() int64 {
	if len(r.frames) > 0 {
		return fedSteps
	}
	return 1 << 20
}

// fed returns a subdomain whose launches read tables of parameters, or s itself if the run has no tables.
func (s *subdomain) fed(r *run) (*subdomain, error) {
	frames := r.frames[s.rank]
	if frames == nil {
		return s, nil
	}
	fed := &subdomain{rank: s.rank, device: s.device, out: s.out, in: s.in}
	r.resources.Add(fed)
	for _, stages := range s.stages {
		var all []stageLaunches
		for i, made := range stages {
			if sweeper := frames.Fed(i, made.sweeper); sweeper != made.sweeper {
				made = stageLaunches{boxes: made.boxes, arrays: made.arrays, sweeper: sweeper}
				if err := fed.makeLaunches(r.Runner, &r.step.Stages[i], &made); err != nil {
					return nil, err
				}
			}
			all = append(all, made)
		}
		fed.stages = append(fed.stages, all)
	}
	return fed, nil
}

// A pacer is a worker whose devices may choose the lengths of the steps of a round, and end it early.
type pacer interface {
	// paces reports whether they do.
	paces() bool
	// paced returns the state after the last round, once the devices have finished it. Every call returns the same.
	paced() sweep.Paced
}

// onDevices returns the Courant of the step if devices may choose the lengths of the steps of a round; otherwise nil.
func (r *run) onDevices() *sweep.Courant {
	if r.shared() {
		return nil
	}
	for i := range r.step.Stages {
		if st := &r.step.Stages[i]; st.Point == nil || !st.Point.Paced(st.changes()) {
			return nil
		}
	}
	return r.step.Courant
}
