package sweep

import (
	"errors"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// Portion is a set of boxes that one launch sweeps.
type Portion struct {
	Name  string       // name of the launch
	Boxes []domain.Box // at most six, owned, without overlap
}

// Totals are the norms and reductions over the boxes of several launches.
type Totals struct {
	plan     *plan
	launches []*Launch
	joins    []*streams.Kernel
	device   *streams.Memory // the totals, then memory for the results of blocks
	host     *streams.Memory // pinned
}

// joinBlocks is the number of blocks that join the slots if there are more than fewSlots, and thus the number of
// totals that the last block joins.
const (
	joinBlocks = 128
	fewSlots   = 4096 // sweeps of 128^3 points have no more
)

// Measure prepares a launch for each portion that sweeps it like Sweep, bitwise identical, and also computes the
// norms of the written values and the reductions, without reading memory again. The totals are those over all
// portions, once the launches and, ordered after all of them, Totals.Queue are done. Closing the totals also frees
// the launches.
func (s *Sweeper) Measure(arrays Arrays, portions ...Portion) (launches []*Launch, totals *Totals, err error) {
	if s.plan.totals() == 0 {
		return nil, nil, errors.New(
			"sweep: point function " + s.plan.point.Name + " : must have an access with norms, or a reduction")
	}
	for _, p := range portions {
		if err := s.check(arrays, p.Boxes); err != nil {
			return nil, nil, err
		}
	}
	t := &Totals{plan: s.plan}
	defer func() {
		if err != nil {
			launches, totals, err = nil, nil, errors.Join(err, t.Close())
		}
	}()
	if s.device.GoKernels {
		err = s.measureOnHost(t, arrays, portions)
	} else {
		err = s.measureOnGPU(t, arrays, portions)
	}
	return t.launches, t, err
}

// allocate allocates memory for the totals, those of some blocks, and the given number of slots.
func (t *Totals) allocate(d *streams.Device, slots int64) (err error) {
	size := int64(t.plan.totals()) * 8
	if t.device, err = d.Alloc(size * (1 + joinBlocks + slots)); err != nil {
		return err
	}
	t.host, err = d.AllocPinned(size)
	return err
}

// slots returns the memory of the first slots.
func (t *Totals) slots(count int64) streams.Span {
	all := t.slot(0)
	all.Length *= count
	return all
}

// slotOnHost returns a slot of a CPU device.
func (t *Totals) slotOnHost(n int) slot {
	at := t.slot(int64(n))
	return at.Memory.Bytes()[at.Offset : at.Offset+at.Length]
}

// slot returns the memory of slot n.
func (t *Totals) slot(n int64) streams.Span {
	size := int64(t.plan.totals()) * 8
	return t.device.Span((1+joinBlocks+n)*size, size)
}

func (s *Sweeper) measureOnHost(t *Totals, arrays Arrays, portions []Portion) error {
	if err := t.allocate(s.device, int64(len(portions))); err != nil {
		return err
	}
	var slots []slot
	for i, p := range portions {
		slots = append(slots, t.slotOnHost(i))
		spec := s.plan.hostSpec(p.Name, arrays, p.Boxes, slots[i])
		spec.Uses = append(spec.Uses, t.device.All())
		l, err := s.launch(spec, 0)
		if err != nil {
			return err
		}
		t.launches = append(t.launches, l)
	}
	return t.joinOnHost(s.device, slots)
}

// joinOnHost prepares the join of the slots.
func (t *Totals) joinOnHost(d *streams.Device, slots []slot) error {
	total := slot(t.device.Bytes()[:t.host.Size()])
	return t.join(d, streams.KernelSpec{Run: func() { t.plan.join(total, slots) }})
}

func (s *Sweeper) measureOnGPU(t *Totals, arrays Arrays, portions []Portion) error {
	slots, plans := int64(0), make([]launchPlan, len(portions))
	for i, p := range portions {
		plans[i] = s.plan.newLaunchPlan(s.form, slices.Concat(arrays...), p.Boxes, s.form.measuredShape(s.shape))
		for b := range plans[i].parts {
			plans[i].parts[b].slot += slots
		}
		slots += plans[i].blocks()
	}
	if err := t.allocate(s.device, s.maxSlots(arrays, portions)); err != nil {
		return err
	}
	for i := range plans {
		plans[i].totals = t.slot(0).Address()
		l, err := s.launchPlan(portions[i].Name, &plans[i], withMeasured, t.device.All())
		if err != nil {
			return err
		}
		t.launches = append(t.launches, l)
	}
	return t.joinSlots(s.device, s.programs, slots)
}

// maxSlots returns the largest number of slots of portions for any shape of sweeps, so that their memory is known
// before tuning.
func (s *Sweeper) maxSlots(arrays Arrays, portions []Portion) (most int64) {
	for _, shape := range s.form.shapes {
		slots := int64(0)
		for _, p := range portions {
			k := s.plan.newLaunchPlan(s.form, slices.Concat(arrays...), p.Boxes, s.form.measuredShape(shape))
			slots += k.blocks()
		}
		most = max(most, slots)
	}
	return most
}

// joinSlots prepares the launches that join the slots.
func (t *Totals) joinSlots(d *streams.Device, programs map[string]map[string]function, slots int64) error {
	var totals function
	for _, p := range programs {
		totals = p["totals"]
	}
	size := uint64(t.host.Size())
	join := func(from, to uint64, n int64, blocks int) error {
		var w words
		w.put(int64(from), int64(to), n)
		return t.join(
			d,
			streams.KernelSpec{
				Function: totals, Grid: [3]int{blocks, len(t.plan.slot), 1}, Block: [3]int{blockSize, 1, 1},
				Argument: w,
			},
		)
	}
	if slots <= fewSlots {
		return join(t.slot(0).Address(), t.device.Address(), slots, 1)
	}
	if err := join(t.slot(0).Address(), t.device.Address()+size, slots, joinBlocks); err != nil {
		return err
	}
	return join(t.device.Address()+size, t.device.Address(), joinBlocks, 1)
}

// join adds a launch that joins slots.
func (t *Totals) join(d *streams.Device, spec streams.KernelSpec) error {
	spec.Name, spec.Uses, spec.Early = "totals", []streams.Span{t.device.All()}, true
	k, err := d.NewKernel(spec)
	if err == nil {
		t.joins = append(t.joins, k)
	}
	return err
}

// Queue queues the join of the results of all blocks, and the copy of the totals to the host.
func (t *Totals) Queue(s *streams.Stream) error {
	for _, k := range t.joins {
		if err := s.Launch(k); err != nil {
			return err
		}
	}
	return s.CopyAs(streams.OtherWork, t.host.All(), t.device.Span(0, t.host.Size()))
}

// Norms returns the norms of a written access and of its change, over all its components, once the work of Queue
// is done. ok is false for an access without norms, see Access.Before.
func (t *Totals) Norms(access string) (n rows.Norms, ok bool) {
	for i, a := range t.plan.norms {
		if t.plan.accesses[a].Name == access {
			return *in[rows.Norms](t.host.Bytes(), i*normBytes), true
		}
	}
	return n, false
}

// Reduced returns a reduction, once the work of Queue is done. ok is false for an unknown name.
func (t *Totals) Reduced(name string) (r Reduced, ok bool) {
	for i, one := range t.plan.point.Reductions {
		if one.Name != name {
			continue
		}
		if r.op = one.Op; r.op == Sum {
			r.sum = *in[sums.Sum](t.host.Bytes(), t.plan.placeOf(i))
		} else {
			r.value = *in[float64](t.host.Bytes(), t.plan.placeOf(i))
		}
		return r, true
	}
	return r, false
}

// Close frees the totals and their launches. Closing twice is allowed.
func (t *Totals) Close() error {
	var all []error
	for _, l := range t.launches {
		all = append(all, l.Close())
	}
	for _, k := range t.joins {
		all = append(all, k.Close())
	}
	for _, m := range []*streams.Memory{t.device, t.host} {
		if m != nil {
			all = append(all, m.Close())
		}
	}
	return errors.Join(all...)
}
