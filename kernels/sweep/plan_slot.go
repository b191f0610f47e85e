package sweep

import "github.com/halox/halox/kernels/sums"

// totals is the size of a slot in numbers of 8 bytes.
func (n *plan) totals() int {
	if len(n.slot) == 0 {
		return 0
	}
	last := n.slot[len(n.slot)-1]
	return (last.place + last.op.bytes()) / 8
}

// placeOf returns where a reduction begins in a slot.
func (n *plan) placeOf(reduction int) int { return n.slot[4*len(n.norms)+reduction].place }

// clear sets a slot to what is found at no point.
func (n *plan) clear(s slot) {
	clear(s)
	for i, r := range n.point.Reductions {
		if r.Op != Sum {
			*in[float64](s, n.placeOf(i)) = r.Op.identity()
		}
	}
}

// join sets a slot to what others have together.
func (n *plan) join(total slot, slots []slot) {
	n.clear(total)
	for _, part := range n.slot {
		for _, s := range slots {
			if part.op == Sum {
				in[sums.Sum](total, part.place).Join(*in[sums.Sum](s, part.place))
				continue
			}
			value := in[float64](total, part.place)
			*value = part.op.join(*value, *in[float64](s, part.place))
		}
	}
}

// values returns the numbers of a slot.
func (n *plan) values(s slot) (all []float64) {
	for _, part := range n.slot {
		if part.op == Sum {
			all = append(all, in[sums.Sum](s, part.place).Value())
		} else {
			all = append(all, *in[float64](s, part.place))
		}
	}
	return all
}
