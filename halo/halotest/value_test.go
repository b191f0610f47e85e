package halotest

import (
	"testing"

	"github.com/halox/halox/domain"
)

// With one-byte elements, one value in 256 would be poison by chance.
func TestNoValueIsPoison(t *testing.T) {
	g := domain.Grid{Dims: 2, Size: domain.Vec{64, 64, 1}}
	seen := map[byte]bool{}
	for y := range g.Size[1] {
		for x := range g.Size[0] {
			var b [1]byte
			value(b[:], &block{}, g, domain.Vec{x, y, 0})
			seen[b[0]] = true
		}
	}
	if seen[poison] || len(seen) != 255 {
		t.Errorf("%d values, poison among them: %v", len(seen), seen[poison])
	}
}
