package sweep

import (
	"errors"
	"fmt"
	"regexp"
)

// ErrFootprint says that a point function reads what its accesses do not say.
var ErrFootprint = errors.New("a point function reads an offset that is no constant of the footprint")

var (
	besideFootprint  = regexp.MustCompile(`offset_beside_the_footprint_of_(\w+)`)
	outsideComponent = regexp.MustCompile(`component_outside_of_an_access`)
	unknownName      = regexp.MustCompile(`identifier "(\w+)" is undefined|['‘](\w+)['’] was not declared`) // by NVRTC, by g++
	otherFunction    = regexp.MustCompile(`NameOfAnotherFunction`)
)

// explain says what it means that the compiler found no function of certain names, see access.cuh.
func (n *plan) explain(err error) error {
	if m := besideFootprint.FindStringSubmatch(err.Error()); m != nil {
		a := n.accesses[n.find(m[1])]
		all := a.footprint(0)
		for q := range a.components() {
			all = all.Join(a.footprint(q))
		}
		return fmt.Errorf("sweep: %s: at(%s, ...): %w, which is %v: unroll loops over offsets, or name the offset in the footprint", n.point.file(), m[1], ErrFootprint, all)
	}
	if outsideComponent.MatchString(err.Error()) {
		return fmt.Errorf("sweep: %s: a component that its access does not have, or that is no constant: unroll loops over components: %w", n.point.file(), ErrFootprint)
	}
	if otherFunction.MatchString(err.Error()) {
		return fmt.Errorf("sweep: point function %q uses a name that is no access or reduction of its own, but one in Point.Elsewhere: %w", n.point.Name, err)
	}
	if m := unknownName.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("sweep: point function %q has no access %q: a source is compiled for each of its functions with the names of that one; those of others are for Point.Elsewhere: %w",
			n.point.Name, m[1]+m[2], err)
	}
	return fmt.Errorf("sweep: point function %q: %w", n.point.Name, err)
}
