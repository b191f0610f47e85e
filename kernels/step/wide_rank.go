package step

// wideRank is the box of a rank with wide ghosts, along the axes of tiles and from its first point on.
type wideRank struct {
	size    [3]int
	inside  [3][2]bool    // whether there is a neighbour behind a side
	mirrors [3][2]bool    // whether ghosts behind it are the points before it; else they keep their values
	owners  [27]wideOwner // by codeOf a direction: who owns the ghosts there
	bounds  [3][]int      // where tiles begin, and in the end the size
	tileAt  [3][]int      // which tile along an axis has a point
}

// wideOwner is a rank, and what leads from a ghost to its point there.
type wideOwner struct {
	known bool
	rank  int
	shift [3]int
}

// codeOf numbers directions.
func codeOf(d [3]int) int { return 13 + d[0] + 3*d[1] + 9*d[2] }

// wide says along which axes there are neighbours.
func (r *wideRank) wide() (wide [3]bool) {
	for a := range wide {
		wide[a] = r.inside[a][0] || r.inside[a][1]
	}
	return wide
}

// cut cuts the box into so many tiles along each axis.
func (r *wideRank) cut(tiles [3]int64) {
	for a := range tiles {
		for i := range int(tiles[a]) + 1 {
			r.bounds[a] = append(r.bounds[a], r.size[a]*i/int(tiles[a]))
		}
		for i := range int(tiles[a]) {
			for range r.bounds[a][i+1] - r.bounds[a][i] {
				r.tileAt[a] = append(r.tileAt[a], i)
			}
		}
	}
}

// tileOf returns the tile that has a point, and its first point.
func (r *wideRank) tileOf(p [3]int) (tile int, lo [3]int) {
	at := [3]int{r.tileAt[0][p[0]], r.tileAt[1][p[1]], r.tileAt[2][p[2]]}
	for a := range at {
		lo[a] = r.bounds[a][at[a]]
	}
	return at[0] + (len(r.bounds[0])-1)*(at[1]+(len(r.bounds[1])-1)*at[2]), lo
}
