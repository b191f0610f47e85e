package rows

// AddRow joins to n the norms of one row that a sweep changed from old to new.
// old has at least len(new) points.
//
// Points become float64 before anything else is done to them. Point i goes to
// lane i%8; when the row is through, the lanes are folded by halves, 0..3 with
// 4..7, then 0..1 with 2..3, then 0 with 1, and the result joins n as in
// [Norms.Add]. The sums of a row are therefore the same on every machine, but
// not those of the same row cut into pieces.
func AddRow[T Float](n *Norms, new, old []T) {
	if len(new) == 0 {
		return
	}
	need("AddRow", "old", len(old), len(new))
	var l lanes
	accumulate(best(), &l, new, old[:len(new)])
	n.Add(l.fold())
}
