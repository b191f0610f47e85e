package workloads

// All returns the workloads of all suites.
func All() ([]Workload, error) {
	var all []Workload
	for _, suite := range []func() ([]Workload, error){DDTBench, TEMPI, Jenkins, HAND, Wu, SHOC, HACC} {
		workloads, err := suite()
		if err != nil {
			return nil, err
		}
		all = append(all, workloads...)
	}
	return all, nil
}
