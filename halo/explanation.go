package halo

import "fmt"

// maxSearched is the largest number of subdomains whose orders are all searched.
const maxSearched = 8

// same is the relative difference of two costs that are taken for equal: they are
// sums in any order.
const same = 1e-9

// margin is what share of the cost another order must save to be taken in place of
// the given one: links that are alike never measure quite alike.
const margin = 0.05

// Cost is what an exchange costs under an order of the devices, in the unit of the
// cost function. A device sends its messages one after the other, and gets its
// messages one after the other at the same time.
type Cost struct {
	Busiest float64 // what the busiest device sends, or gets, whichever is more
	Total   float64 // of all messages
}

// less compares the busiest devices, and among equals the totals.
func (c Cost) less(d Cost) bool {
	if c.Busiest < d.Busiest*(1-same) {
		return true
	}
	return c.Busiest <= d.Busiest*(1+same) && c.Total < d.Total*(1-same)
}

// worthwhile reports whether c saves enough of d.
func (c Cost) worthwhile(d Cost) bool {
	const most = 1 - margin
	return c.Busiest < most*d.Busiest || c.Busiest <= d.Busiest*(1+same) && c.Total < most*d.Total
}

// Explanation says how MapDevices came to its order.
type Explanation struct {
	Given    Cost  // of subdomain i on device i
	Greedy   Cost  // of the greedy order
	Exact    Cost  // of the best order of all; as Greedy where they are too many
	Searched bool  // all orders were searched
	Kept     bool  // the given order stays
	Order    []int // by rank, an index into the devices given
}

// String gives the costs and the order in one line.
func (e Explanation) String() string {
	exact := fmt.Sprintf("not searched beyond %d subdomains", maxSearched)
	if e.Searched {
		exact = fmt.Sprintf("%.4g", e.Exact.Busiest)
	}
	taken := fmt.Sprintf("subdomains lie on devices %v of those given", e.Order)
	if e.Kept {
		taken = "the devices stay in the order given"
	}
	return fmt.Sprintf("cost of the busiest device: as given %.4g, greedy %.4g, exact %s: %s", e.Given.Busiest, e.Greedy.Busiest, exact, taken)
}
