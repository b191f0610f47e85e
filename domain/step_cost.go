package domain

// What a step costs in AutoParts, in units of points copied in one piece.
// Measured on NVLink, a message takes 5 us before its first byte arrives, in
// which a GPU sends some 2^18 doubles and sweeps four times as many points. Faces
// of the slowest axis travel as they lie; the others are packed and unpacked,
// those across rows with one useful element a transaction.
const (
	sweepCost      = 0.25
	messageCost    = 1 << 18
	contiguousCost = 1
	packedCost     = 3
	stridedCost    = 6
)

// axisCost is that of a point of a message along an axis.
func axisCost(axis, dims int) float64 {
	switch axis {
	case dims - 1:
		return contiguousCost
	case 0:
		return stridedCost
	}
	return packedCost
}
