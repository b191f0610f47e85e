package mpi

import "testing"

// The piece size grows as the square root of the message size, within bounds, and pieces are equal.
func TestPieceSize(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range []struct{ length, most, want int64 }{
		{1, 8 * mib, 1},
		{500 * kib, 8 * mib, 500 * kib},
		{600 * kib, 8 * mib, 600 * kib},
		{mib, 8 * mib, mib},
		{2 * mib, 8 * mib, mib},
		{4 * mib, 8 * mib, 2 * mib},
		{16 * mib, 8 * mib, 4 * mib},
		{64 * mib, 8 * mib, 8 * mib},
		{1 << 40, 8 * mib, 8 * mib},
		{1000, 64, 63}, // 16 pieces
		{129, 64, 43},
		{1, 1, 1},
		{7, 1, 1},
	} {
		if got := pieceSize(c.length, c.most); got != c.want {
			t.Errorf("message of %d bytes, pieces of at most %d: got %d, want %d", c.length, c.most, got, c.want)
		}
	}
}
