package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// What is nil is an error that says so.
func TestWhatIsNilIsRefused(t *testing.T) {
	set := testdevices.Host(t, 1)
	s := test.Must(stencil.HeatOf(stencil.Kind{Points: 7, Shape: stencil.StarShape}, []float64{0.1, 0.1, 0.1}, 1, 1e-3))(t)
	point, accesses, err := Linear(s, kernels.Float64)
	test.Check(t, err)
	of := func(_ any, err error) error { return err }
	empty := [][][]StageRank{{{{}}}}
	for name, c := range map[string]struct {
		says string
		err  error
	}{
		"sweeps of no device":          {"device is nil", of(New(set.Compiler, nil, point, accesses))},
		"a check on no device":         {"device is nil", Check(set.Compiler, nil, point, accesses, 0)},
		"fused stages by no sweeper":   {"no sweeper", of(NewFusedStages(empty, time.Second))},
		"resident steps by no sweeper": {"no sweeper", of(NewResidentSteps(empty, 1, time.Second, false))},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", name, c.err, c.says)
		}
	}
}
