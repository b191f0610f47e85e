package sweep

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// Tiles lie beside each other and are the whole box, whatever its size and however many there may be; no tile is much
// larger than its part where rows need not be cut.
func TestTilesAreTheWholeBox(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	for _, size := range []domain.Vec{{1, 1, 1}, {7, 5, 1}, {128, 128, 32}, {33, 17, 9}, {200, 3, 2}, {65, 64, 1}} {
		for _, most := range []int{1, 2, 3, 7, 132, 528} {
			box := domain.Box{Lo: domain.Vec{3, 4, 5}, Hi: domain.Vec{3 + size[0], 4 + size[1], 5 + size[2]}}
			tiles := cutIntoTiles(box, most)
			owners := map[domain.Vec]int{}
			for _, b := range tiles {
				if b.Empty() {
					t.Errorf("%v by %d: tile %v is empty", size, most, b)
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
				t.Errorf("%v by %d: %d tiles", size, most, len(tiles))
			}
			for at, n := range owners {
				if n != 1 || !box.Contains(at) {
					t.Fatalf("%v by %d: point %v has %d owners, box %v", size, most, at, n, box)
				}
			}
			if int64(len(owners)) != box.Points() {
				t.Errorf("%v by %d: tiles have %d points, the box %d", size, most, len(owners), box.Points())
			}
		}
	}
	largest := int64(0)
	for _, b := range cutIntoTiles(domain.Box{Hi: domain.Vec{128, 128, 32}}, 132) {
		largest = max(largest, b.Points())
	}
	if want := int64(128 * 128 * 32 / 128); largest != want {
		t.Errorf("the largest of 132 tiles of 128 x 128 x 32 has %d points; want %d", largest, want)
	}
}

// The kernel of ranks compiles for each generation of GPUs and keeps its variables in registers, for all linear stencils
// and for point functions.
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
