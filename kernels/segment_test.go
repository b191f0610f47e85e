package kernels

import (
	"bytes"
	"testing"

	"github.com/halox/halox/domain"
)

// column is a segment of rows of 8 bytes from one place of a field to another,
// rows of 128 bytes and planes of 1024 bytes.
func column(dst, src uint64) segment {
	return segment{dst: dst, src: src, dstPitch: 128, dstPlane: 1024, srcPitch: 128, srcPlane: 1024, nx: 1, ny: 5, nz: 3, word: 8}
}

// apply does on bytes what the kernels do with segments.
func apply(memory []byte, table []segment) {
	for _, s := range table {
		for n := range s.words() {
			row := n / s.nx
			x, second := (n-row*s.nx)*s.word, row&s.twin
			row >>= s.twin
			to := int64(s.dst) + row%s.ny*s.dstPitch + row/s.ny*s.dstPlane + second*s.dstTwin + x
			from := int64(s.src) + row%s.ny*s.srcPitch + row/s.ny*s.srcPlane + second*s.srcTwin + x
			copy(memory[to:to+s.word], memory[from:from+s.word])
		}
	}
}

func TestTwins(t *testing.T) {
	wide := column(2<<12, 3<<12)
	wide.nx, wide.word = 8, 16
	widePair := wide
	widePair.dst += 64
	widePair.src += 64
	taller := column(8+2<<12, 16+3<<12)
	taller.ny = 6
	for name, c := range map[string]struct {
		table []segment
		want  int
	}{
		"both ends of x":               {[]segment{column(0, 64), column(72, 8)}, 1},
		"ends of two fields, by sides": {[]segment{column(0, 64), column(4096, 4160), column(72, 8), column(4168, 4104)}, 2},
		"three columns":                {[]segment{column(0, 64), column(72, 8), column(80, 16)}, 2},
		"ends of another field":        {[]segment{column(0, 64), column(4168, 4104)}, 2},
		"rows of a whole line":         {[]segment{wide, widePair}, 2},
		"of different heights":         {[]segment{column(2<<12, 3<<12), taller}, 2},
		"none":                         {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			memory := make([]byte, 1<<15)
			for i := range memory {
				memory[i] = byte(i * 31 >> 3)
			}
			want := bytes.Clone(memory)
			apply(want, c.table)
			joined := joinTwins(c.table)
			apply(memory, joined)
			if len(joined) != c.want || !bytes.Equal(memory, want) {
				t.Errorf("%d segments, not %d; the same bytes: %v", len(joined), c.want, bytes.Equal(memory, want))
			}
		})
	}
}

// The stores of the ghosts at both ends of x of an array into itself become whole
// sectors, where only padding lies beside them.
func TestStoresFillSectors(t *testing.T) {
	for name, c := range map[string]struct {
		points, width int
		words, word   int64 // of a row
	}{
		"a layer":                    {64, 1, 2, 16},
		"two layers":                 {64, 2, 2, 16},
		"three layers":               {64, 3, 2, 16},
		"five layers":                {64, 5, 4, 16},
		"a row that ends in between": {62, 2, 1, 16}, // the upper end alone
		"no room between two rows":   {15, 1, 1, 8},
	} {
		t.Run(name, func(t *testing.T) {
			layout, err := domain.NewLayout(domain.Box{Hi: domain.Vec{c.points, 4, 4}}, domain.UniformRadius(3, c.width), 8)
			if err != nil {
				t.Fatal(err)
			}
			send := domain.SendBox(layout.Owned, domain.Direction{-1, 0, 0}, layout.Width)
			ghost := domain.GhostBox(layout.Owned, domain.Direction{1, 0, 0}, layout.Width)
			before, after := layout.Padding(ghost, sector)
			a := Array{Layout: layout}
			store := Store(a, ghost, a, send)
			if store.slack != (slack{before, after}) || before != 0 {
				t.Errorf("slack %v; padding %d and %d", store.slack, before, after)
			}
			row := int64(c.width+after) * 8
			if row != c.words*c.word {
				t.Errorf("rows of %d bytes, not %d", row, c.words*c.word)
			}
		})
	}
}
