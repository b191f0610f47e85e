package sparse

import (
	"math"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

// blocksOn returns the blocks of a matrix with 1000 rows and 32 entries a row on devices, without memory.
func blocksOn(t *testing.T, side, devices int) *Blocks {
	s := testdevices.Host(t, devices)
	x := &Blocks{Matrix: &Matrix{N: 1000, PerRow: 32, Side: side}, Session: &halo.Session{Devices: s.Devices}}
	for i := range side * side {
		x.All = append(x.All, &Block{Row: i % side, Column: i / side, device: i * devices / (side * side)})
	}
	return x
}

// The work of small cuts, counted by hand: a product has 1000 rows of 32 entries and two vectors of 8000 bytes.
func TestWork(t *testing.T) {
	const product, vector = 1000*(32*12+8) + 2*8000, 8000
	for name, c := range map[string]struct {
		side, devices int
		want          Work
	}{
		"one block": {1, 1, Work{product, 0, 0, 0}},
		// Two vectors go down, two along the rows; each is loaded and stored, and two are added.
		"four blocks on one device": {2, 1, Work{4*product + 4*2*vector + 2*3*vector, 0, 2, 0}},
		// Each device has a column: one vector goes down it. Two leave column 1 along the rows, and are added in column 0.
		"two devices": {2, 2, Work{2*product + 2*vector + 2*vector + 2*3*vector, 2 * vector, 2, 0}},
		// Block (0, 1) sends one down and one along its row. Block (0, 0) sends one down, gets one, and adds it.
		"four devices": {2, 4, Work{product + vector + vector + 3*vector, 2 * vector, 2, 0}},
	} {
		if w := blocksOn(t, c.side, c.devices).Work(0, 0); w != c.want {
			t.Errorf("%s: %+v, want %+v", name, w, c.want)
		}
	}
	x := blocksOn(t, 2, 4)
	w := x.Work(3, 2, [2]*Block{x.Block(1, 0), x.Block(0, 1)})
	// Block (1, 0) gets two vectors, adds one, has two more, and sends one.
	if want := (Work{product + 2*vector + 3*vector + 2*vector + vector, 2 * vector, 5, 0}); w != want {
		t.Errorf("with more %+v, want %+v", w, want)
	}
	x.N = 20000 // a vector of 160 kB
	if w := x.Work(0, 0); w.Gathers != 32*20000 {
		t.Errorf("%d gathers of a block of 20000 rows", w.Gathers)
	}
	for gather, want := range map[float64]float64{0: 1 + 1 + 4.8, 100: 1 + 1 + 4.8 + 2} {
		if us := (Work{4e6, 36e4, 2, 2e5}).us(Rates{4000, 360, 2.4, gather}); math.Abs(us-want) > 1e-12 {
			t.Errorf("it takes %v us with %v gathers a ns, want %v", us, gather, want)
		}
	}
}
