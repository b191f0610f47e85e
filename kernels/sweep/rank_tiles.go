package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
)

// rankTile is what one rank owns.
type rankTile struct {
	box      domain.Box
	partners []int // ranks of the world

	// On a host device: what sweeps it, by phase, and what that is given.
	sweep []func(frame []byte)
	frame []byte
}

// Cut cuts the subdomain of each device into tiles of so many ranks, and makes all ready. It is called once.
func (s *RankSteps) Cut(ranks int) error {
	if ranks < 1 || s.tiles != nil {
		return fmt.Errorf("sweep: tiles for %d ranks, of steps that have %d", ranks, len(s.tiles))
	}
	for _, box := range s.boxes {
		tiles := make([]rankTile, ranks)
		for i, b := range cutIntoTiles(box, ranks) {
			tiles[i].box = b
		}
		s.tiles = append(s.tiles, tiles)
	}
	s.findPartners()
	for device, d := range s.devices {
		if !d.GoKernels {
			if err := s.upload(device); err != nil {
				return err
			}
			continue
		}
		for i := range s.tiles[device] {
			t := &s.tiles[device][i]
			t.frame = s.plan().frame()
			for _, devices := range s.phases {
				r := devices[device]
				t.sweep = append(t.sweep, r.Sweeper.plan.hostSpec("ranks", r.Arrays, []domain.Box{t.box}, nil).RunWith)
			}
		}
	}
	return nil
}

// tileRow is the multiple of points at which rows are cut: those of two cache lines of doubles.
const tileRow = 32

// cutIntoTiles cuts a box into at most so many tiles, of which the largest takes the least time by an estimate: its
// points, and a part of those on its surface, which others wait for.
func cutIntoTiles(box domain.Box, most int) (tiles []domain.Box) {
	size := box.Size()
	best, parts := 1<<62, domain.Vec{1, 1, 1}
	for z := 1; z <= min(size[2], most); z++ {
		for y := 1; y <= min(size[1], most/z); y++ {
			for x := 1; x <= min(max(1, size[0]/tileRow), most/(z*y)); x++ {
				nx, ny, nz := longest(size[0], x, tileRow), longest(size[1], y, 1), longest(size[2], z, 1)
				if cost := 4*nx*ny*nz + nx*ny + ny*nz + nx*nz; cost < best {
					best, parts = cost, domain.Vec{x, y, z}
				}
			}
		}
	}
	units := domain.Vec{tileRow, 1, 1}
	for i := range parts[0] * parts[1] * parts[2] {
		at := domain.Vec{i % parts[0], i / parts[0] % parts[1], i / parts[0] / parts[1]}
		b := box
		for a := range at {
			b.Lo[a] = box.Lo[a] + cutAt(size[a], parts[a], at[a], units[a])
			b.Hi[a] = box.Lo[a] + cutAt(size[a], parts[a], at[a]+1, units[a])
		}
		tiles = append(tiles, b)
	}
	return tiles
}

// cutAt returns where the i-th of so many parts of a length begins: at a multiple of unit.
func cutAt(length, parts, i, unit int) int {
	if i == parts {
		return length
	}
	return length / unit * i / parts * unit
}

// longest returns the length of the longest part.
func longest(length, parts, unit int) (most int) {
	for i := range parts {
		most = max(most, cutAt(length, parts, i+1, unit)-cutAt(length, parts, i, unit))
	}
	return most
}

// findPartners finds out which tiles exchange notifications: those of which one stores points, or ghosts, that the
// other reads.
func (s *RankSteps) findPartners() {
	n, ranks := s.plan(), len(s.tiles[0])
	pair := func(a, b int) {
		for _, p := range [][2]int{{a, b}, {b, a}} {
			t := &s.tiles[p[0]/ranks][p[0]%ranks]
			if at, known := slices.BinarySearch(t.partners, p[1]); !known && a != b {
				t.partners = slices.Insert(t.partners, at, p[1])
			}
		}
	}
	for device, tiles := range s.tiles {
		for i, t := range tiles {
			for k, other := range tiles[:i] {
				if n.readsAround(t.box, other.box) || n.readsAround(other.box, t.box) {
					pair(device*ranks+i, device*ranks+k)
				}
			}
			for _, devices := range s.phases {
				for _, st := range devices[device].Stores {
					piece := st.Send.Intersect(t.box)
					if piece.Empty() {
						continue
					}
					piece = piece.Shift(st.Ghost.Lo.Sub(st.Send.Lo))
					for k, other := range s.tiles[st.To] {
						if n.readsAround(other.box, piece) {
							pair(device*ranks+i, st.To*ranks+k)
						}
					}
				}
			}
		}
	}
}

// readsAround reports whether who sweeps a box reads points of another one, in any array.
func (n *plan) readsAround(box, of domain.Box) bool {
	if box.Empty() || box.Grow(n.radius()).Intersect(of).Empty() {
		return false
	}
	return slices.ContainsFunc(n.reads, func(r readArray) bool {
		return slices.ContainsFunc(r.footprint, func(o domain.Vec) bool { return !box.Shift(o).Intersect(of).Empty() })
	})
}

// tableBytes is the size of struct RankSteps.
func (s *RankSteps) tableBytes() int {
	phases := len(s.phases)
	return 8*(phases*(s.plan().arrays+2*s.classes.count()+2)+2) + s.plan().frameBytes()
}

// threadsAlong counts the threads of a rank in points along x, rows and layers of a tile, that many along x and y.
func threadsAlong(threads, nx, ny int) [3]int {
	return [3]int{threads % nx, threads / nx % ny, threads / nx / ny}
}

// groupedTile reports whether the rows of a tile are whole groups, which are aligned in all phases.
func (s *RankSteps) groupedTile(device int, box domain.Box) bool {
	n := s.plan()
	if box.Empty() || box.Size()[0]%n.group != 0 {
		return false
	}
	for _, devices := range s.phases {
		arrays := slices.Concat(devices[device].Arrays...)
		if !n.grouped(arrays, box) || partOf(arrays[0], box, n.group, n.group).head != 0 {
			return false
		}
	}
	return true
}

// groupOf returns how many points a thread takes at once.
func (s *RankSteps) groupOf(grouped bool) int {
	if grouped {
		return s.plan().group
	}
	return 1
}
