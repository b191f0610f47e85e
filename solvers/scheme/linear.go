package scheme

import (
	"slices"
	"time"

	"github.com/halox/halox/kernels"
)

// tuneBudget is how long the shape of sweeps may be searched for on one device: that of
// others of its kind and stencil is then known.
const tuneBudget = 100 * time.Millisecond

// newLinear makes a linear stage ready.
func (d *subdomain) newLinear(x *Runner, st *Stage, n int64, made *stageLaunches, found [2]*foundTotals) error {
	sweeper, err := x.compiler.NewSweeper(d.device, *st.Linear, st.real())
	if err != nil {
		return err
	}
	dst, src := st.Writes[0].field(n).Parts[d.rank], st.Reads[0].field(n).Parts[d.rank]
	if !made.boxes.interior.Empty() { // the field that the first step writes holds nothing yet
		first := func(a Access) kernels.Array { return a.field(1).Parts[d.rank] }
		t, err := sweeper.Tune(first(st.Writes[0]), first(st.Reads[0]), made.boxes.interior, tuneBudget)
		if err != nil {
			return err
		}
		d.shape = t.Shape
		if t.Key != "" {
			made.tuning = Tuning{Stage: st.Name, Block: t.Shape.Block, Layers: t.Shape.Layers, Took: t.Took}
		}
	}
	regions := made.regions(x.place.Subdomains[d.rank].Box)
	for k, some := range [][]region{regions[:2], regions[2:]} {
		t, err := d.linearLaunches(sweeper, dst, src, some)
		if err != nil {
			return err
		}
		if v := slices.Index(x.step.Measured, st.Writes[0].Variable); v >= 0 {
			found[k].add(normTotal{t, v}, map[int]string{v: ""})
		}
	}
	return nil
}

// linearLaunches makes the sweeps of regions that together are the subdomain, without norms and
// with, and returns the total of the norms.
func (d *subdomain) linearLaunches(sweeper *kernels.Sweeper, dst, src kernels.Array, regions []region) (*kernels.NormReduction, error) {
	var portions []kernels.BoxSet
	var kept []region
	for _, r := range regions {
		if len(r.boxes) == 0 {
			continue
		}
		k, err := sweeper.SweepAs(r.name, dst, src, r.boxes...)
		if err != nil {
			return nil, err
		}
		d.resources.Add(k)
		*r.plain = Kernel(k)
		portions, kept = append(portions, kernels.BoxSet{Name: r.name, Boxes: r.boxes}), append(kept, r)
	}
	launches, t, err := sweeper.Measure(dst, src, portions...)
	if err != nil {
		return nil, err
	}
	d.resources.Add(t)
	for i, r := range kept {
		*r.measured = Kernel(launches[i])
	}
	return t, nil
}

// real returns the type of a linear stage.
func (st *Stage) real() kernels.Real { return kernels.Real(st.Writes[0].Variable.Spec.Element) }
