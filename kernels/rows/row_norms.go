package rows

import "github.com/halox/halox/kernels/sums"

// AddRow joins to n the norms of one row that a sweep changed from old to new,
// with sums of a mode. old has at least len(new) points.
//
// Points become float64 before anything else is done to them.
//
// With fast sums, point i goes to lane i%8; when the row is through, the lanes
// are folded by halves, 0..3 with 4..7, then 0..1 with 2..3, then 0 with 1, and
// the result joins n as in [Norms.Add]. The sums of a row are therefore the same
// on every machine, but not those of the same row cut into pieces.
func AddRow[T Float](n *Norms, new, old []T, mode sums.Mode) {
	if len(new) == 0 {
		return
	}
	need("AddRow", "old", len(old), len(new))
	old = old[:len(new)]
	if mode == sums.Fast {
		var l lanes
		accumulate(best(), &l, new, old)
		n.Add(l.fold())
		return
	}
	for len(new) > 0 {
		some := min(len(new), chunk)
		addChunk(n, new[:some], old[:some])
		new, old = new[some:], old[some:]
	}
}

// chunk is how many points of a row are taken at a time.
const chunk = 512

// addChunk joins the norms of few points.
func addChunk[T Float](n *Norms, new, old []T) {
	var l lanes
	accumulate(best(), &l, new, old)
	most := l.fold()
	n.MaxChange, n.Max = max(n.MaxChange, most.MaxChange), max(n.Max, most.Max)
	var room [2][chunk]float64
	changes, values := room[0][:len(new)], room[1][:len(new)]
	old = old[:len(new)]
	for i, v := range new {
		value := float64(v)
		change := value - float64(old[i])
		changes[i], values[i] = float64(change*change), float64(value*value)
	}
	n.SumChange2.AddUpTo(changes, float64(most.MaxChange*most.MaxChange))
	n.Sum2.AddUpTo(values, float64(most.Max*most.Max))
}
