package workloads

import "math/rand/v2"

// seed is that of all index lists. DDTBench seeds by the time.
const seed = 2012

// shuffled returns the first n of the numbers 0 to all-1 in a random order, the same for the same arguments.
func shuffled(all, n int) []int {
	r := rand.New(rand.NewPCG(seed, uint64(all)))
	return r.Perm(all)[:n]
}

// scaled returns the numbers times a factor.
func scaled(numbers []int, factor int) []int {
	products := make([]int, len(numbers))
	for i, n := range numbers {
		products[i] = n * factor
	}
	return products
}
