package testdevices

// rank and processes are those of Share.
var rank, processes = 0, 1

// Share has GPUs open a share of the GPUs of this host in this process, which is one of several that run a test together: as
// many in each, and one that others have too where there are fewer GPUs than processes. Kernels of two processes that wait for
// each other take turns on a GPU.
func Share(r, of int) { rank, processes = r, of }

// shareOf returns the ids of the share of n devices.
func shareOf(n int) (ids []int) {
	each := max(1, n/processes)
	for i := range min(n, each) {
		ids = append(ids, (rank*each+i)%n)
	}
	return ids
}
