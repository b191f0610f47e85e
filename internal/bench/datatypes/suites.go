package datatypes

import (
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/results"
)

// suite is a source of workloads.
type suite struct {
	name string
	make func() ([]workloads.Workload, error)
}

func suites() []suite {
	return []suite{
		{"ddtbench", workloads.DDTBench}, {"tempi", workloads.TEMPI}, {"jenkins", workloads.Jenkins}, {"hand", workloads.HAND},
		{"wu", workloads.Wu}, {"shoc", workloads.SHOC}, {"hacc", workloads.HACC},
	}
}

// Suites returns the names of the suites of layouts.
func Suites() (names []string) {
	for _, s := range suites() {
		names = append(names, s.name)
	}
	return names
}

// layoutOf begins the row of a workload.
func layoutOf(w workloads.Workload) results.Row {
	return results.LayoutRow(w.Suite, w.Name, w.Params, w.Bytes)
}

// positive returns the number, or no label where it is none.
func positive[N int | int64 | float64](n N) any {
	if n == 0 {
		return nil
	}
	return n
}
