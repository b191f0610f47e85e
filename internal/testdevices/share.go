package testdevices

// rank and processes are those of Share.
var rank, processes = 0, 1

// Share has GPUs open a share of the GPUs of this host in this process, which is one of several that run a test together: as
// many in each. Where there are fewer GPUs than processes GPUs skips: kernels of two processes that wait for each other take turns on a GPU, a turn
// for each message.
func Share(r, of int) { rank, processes = r, of }

// shareOf returns the ids of the share of n devices: none where they do not suffice.
func shareOf(n int) (ids []int) {
	each := n / processes
	for i := range each {
		ids = append(ids, rank*each+i)
	}
	return ids
}
