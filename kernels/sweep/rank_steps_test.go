package sweep

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// Tiles cover the box exactly once, for any size and number of tiles. No tile is much larger than the average if
// rows need not be divided.
func TestTilesCoverTheBox(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	for _, size := range []domain.Vec{{1, 1, 1}, {7, 5, 1}, {128, 128, 32}, {33, 17, 9}, {200, 3, 2}, {65, 64, 1}} {
		for _, most := range []int{1, 2, 3, 7, 132, 528} {
			box := domain.Box{Lo: domain.Vec{3, 4, 5}, Hi: domain.Vec{3 + size[0], 4 + size[1], 5 + size[2]}}
			tiles := cutIntoTiles(box, most)
			owners := map[domain.Vec]int{}
			for _, b := range tiles {
				if b.Empty() {
					t.Errorf("%v by %d: tile %v must not be empty", size, most, b)
				}
				for z := b.Lo[2]; z < b.Hi[2]; z++ {
					for y := b.Lo[1]; y < b.Hi[1]; y++ {
						for x := b.Lo[0]; x < b.Hi[0]; x++ {
							owners[domain.Vec{x, y, z}]++
						}
					}
				}
			}
			if len(tiles) > most {
				t.Errorf("%v by %d: got %d tiles", size, most, len(tiles))
			}
			for at, n := range owners {
				if n != 1 || !box.Contains(at) {
					t.Fatalf("%v by %d: point %v must have one owner, got %d, box %v", size, most, at, n, box)
				}
			}
			if int64(len(owners)) != box.Points() {
				t.Errorf("%v by %d: tiles must have all points, got %d of %d", size, most, len(owners), box.Points())
			}
		}
	}
	largest := int64(0)
	for _, b := range cutIntoTiles(domain.Box{Hi: domain.Vec{128, 128, 32}}, 132) {
		largest = max(largest, b.Points())
	}
	if want := int64(128 * 128 * 32 / 128); largest != want {
		t.Errorf("the largest of 132 tiles of 128 x 128 x 32: got %d points, want %d", largest, want)
	}
}

// All pairs of tiles are examined, so examining one must not allocate, for any footprint.
func TestFindingPartnersIsCheap(t *testing.T) {
	for _, sample := range samples() {
		n, box := test.Must(newPlan(sample.point, sample.accesses))(t), domain.Box{Hi: domain.Vec{192, 192, 1}}
		s := &RankSteps{phases: [][]StageRank{{{Sweeper: &Sweeper{plan: n}}}}, tiles: [][]rankTile{nil}}
		for _, b := range cutIntoTiles(box, 132) {
			s.tiles[0] = append(s.tiles[0], rankTile{box: b})
		}
		pairs := float64(len(s.tiles[0]) * len(s.tiles[0]))
		if allocated := testing.AllocsPerRun(1, s.findPartners); allocated > pairs/100 {
			t.Errorf("%s: %v allocations for %v pairs of tiles", sample.name(), allocated, pairs)
		}
	}
}

// The kernel of ranks compiles for each generation of GPUs without spills, for all linear stencils and for point
// functions.
func TestRankStepsCompileWithoutSpills(t *testing.T) {
	c := findNVRTC(t)
	for i, s := range append(compiledSamples(t), linearSamples(t)...) {
		for _, arch := range generationsOf(3, i) {
			n := test.Must(newPlan(s.point, s.accesses))(t)
			steps := &RankSteps{phases: make([][]StageRank, 2), classes: n.usualClasses()}
			for phase := range steps.phases {
				steps.phases[phase] = []StageRank{{Sweeper: &Sweeper{plan: n, form: n.form()}}}
			}
			kerneltest.WithoutSpills(t, c, s.name(), steps.program(1), arch)
		}
	}
}
