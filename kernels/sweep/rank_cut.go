package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
)

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
