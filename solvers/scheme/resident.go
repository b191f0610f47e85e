package scheme

import (
	"errors"

	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
)

// Resident is the scheme in which one kernel per device runs all steps of a round, without the host. With
// several steps between two exchanges, on GPUs, it supports steps of stars of radius 1 whose fields, with
// their wider ghosts, stay on the multiprocessors.
const Resident Scheme = "resident"

func residentScheme() *definition {
	return &definition{
		name: Resident,
		needs: Needs{
			Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, Swept: true, Steady: true,
			Groups: true, LocalGroups: true,
		},
		unfit: unforwarded, make: newResident, onGPUs: true,
	}
}

// resident drives one subdomain.
type resident struct {
	*oneKernel
	options Options
	kernel  *sweep.ResidentRank
	courant *sweep.Courant // see onDevices
}

func newResident(r *run, o Options) ([]worker, error) {
	if err := r.feed(fedSteps, (*Stage).changes); err != nil {
		return nil, err
	}
	ranks, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	early := o.checks() && len(r.step.Measured) == 1
	courant := r.onDevices()
	all, err := sweep.NewResidentSteps(ranks, r.step.group(), r.patience(), early, courant)
	if err != nil {
		return nil, unsuited(Resident, err)
	}
	r.resources.Add(all)
	return r.onePerSubdomain(func(d *subdomain) (_ worker, err error) {
		k := &resident{options: o, kernel: all.Rank(d.rank), courant: courant}
		k.oneKernel, err = r.newOneKernel(d, func(phase, stage int) []*sweep.Totals {
			return []*sweep.Totals{k.kernel.Totals(phase, stage)}
		})
		return k, err
	})
}

func (r *resident) maxQueued() int64 { return r.mostSteps() }

func (r *resident) steps(first, last int64, norms bool) error {
	r.stream.BeginStep(first)
	if err := r.frames[r.rank].Queue(r.stream, r.moment(first), last-first+1); err != nil {
		return err
	}
	if r.courant != nil {
		return errors.Join(r.kernel.QueuePaced(r.stream, r.moment(first), r.clock.now, last-first+1,
			r.options.anything), r.total(last))
	}
	if err := r.kernel.Queue(r.stream, r.moment(first), last-first+1, norms); err != nil || !norms {
		return err
	}
	return r.total(last)
}

// paces is false in a dry run, in which no kernel makes steps.
func (r *resident) paces() bool { return r.courant != nil && !r.device.IsDry() }

func (r *resident) paced() sweep.Paced { return r.kernel.Paced() }

// maxEarly is the limit of kernels that compute all norms while they sweep.
func (r *resident) maxEarly() int64 {
	if len(r.step.Measured) != 1 || r.measured == nil {
		return 0
	}
	return min(r.maxQueued(), r.kernel.MaxChecks())
}

func (r *resident) stepsWithNorms(first, last, next, every int64) error {
	r.stream.BeginStep(first)
	c := sweep.Checks{
		Until: next - first, Every: every, Tolerance: -1, L2: r.options.Norm == L2Norm,
		Finite: !r.options.anything,
	}
	if r.options.Tolerance > 0 {
		c.Tolerance = r.options.Tolerance
	}
	if err := r.kernel.QueueChecked(r.stream, r.moment(first), last-first+1, c); err != nil {
		return err
	}
	return r.total(last)
}

func (r *resident) early() (norms []reduce.Norms, ended int64) { return r.kernel.Checked() }

// sync waits for the streams, and checks whether the kernels reached their limit of waiting.
func (r *resident) sync() error {
	if err := r.syncAll(r.stream, r.norms); err != nil {
		return err
	}
	return r.kernel.Err()
}
