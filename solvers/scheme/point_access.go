package scheme

import (
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
)

// pointAccess is an access of a point function: what the stage reads and writes of one level of a
// variable. An update in place is one access that is read and written.
type pointAccess struct {
	Access
	write bool
}

// pointAccesses joins what a stage reads and writes, the former first.
func (st *Stage) pointAccesses() (all []pointAccess) {
	for _, r := range st.Reads {
		all = append(all, pointAccess{Access: r})
	}
	for _, w := range st.Writes {
		at := slices.IndexFunc(all, func(a pointAccess) bool { return w.sameField(a.Access) })
		if at < 0 {
			at = len(all)
			all = append(all, pointAccess{Access: w})
		}
		all[at].write = true
	}
	return all
}

// sweepAccesses describes them to package sweep. Of measured variables norms are taken, where the
// stage reads the level before at the point too, or updates it in place.
func (st *Stage) sweepAccesses(measured []*Variable) (all []sweep.Access) {
	accesses := st.pointAccesses()
	for _, a := range accesses {
		s := sweep.Access{
			Name: a.Name, Element: sweep.Element(a.Variable.Spec.Element), Components: a.Variable.Spec.Components,
			Footprint: a.Reads, Footprints: a.Components, Write: a.write, Sparse: a.Sparse,
		}
		if !a.write && len(a.Reads)+len(a.Components) == 0 {
			s.Footprint = stencil.Point()
		}
		inPlace := a.write && slices.ContainsFunc(st.Reads, a.sameField)
		if inPlace {
			s.Footprint = stencil.Point()
		}
		if a.write && slices.Contains(measured, a.Variable) {
			s.Before = st.before(accesses, a, inPlace)
		}
		all = append(all, s)
	}
	return all
}

// before returns the name of the access that holds the level before one that is written, "" if
// the stage does not read it at the point.
func (st *Stage) before(all []pointAccess, written pointAccess, inPlace bool) string {
	if inPlace && written.Variable.Levels() == 1 {
		return written.Name
	}
	for _, a := range all {
		if a.Variable == written.Variable && a.Level == written.Level-1 && !a.write && a.atPoint() {
			return a.Name
		}
	}
	return ""
}

// nameOf returns the name under which the point function knows what is written.
func (st *Stage) nameOf(w Access) string {
	for _, a := range st.pointAccesses() {
		if a.write && w.sameField(a.Access) {
			return a.Name
		}
	}
	return ""
}

// arrays returns those of the accesses in step n on a subdomain.
func (st *Stage) arrays(rank int, n int64) (all sweep.Arrays) {
	for _, a := range st.pointAccesses() {
		f := a.field(n)
		components, _ := f.Spec.Arrays()
		var arrays []kernels.Array
		for c := range components {
			arrays = append(arrays, f.Array(rank, c))
		}
		all = append(all, arrays)
	}
	return all
}
