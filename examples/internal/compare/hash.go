package compare

// Hash returns 64 bits that depend on two numbers and look random: the finalizer of SplitMix64 (Steele, Lea and Flood
// 2014). It makes data that any part of a program can make again.
func Hash(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b*0xd1342543de82ef95 + 0x632be59bd9b4e019
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Data is the kind of numbers that a problem is given.
type Data string

// The kinds: integers of which sums are exact in any order, and reals between -1 and 1.
const (
	Integers Data = "integers"
	Reals    Data = "reals"
)

// Number makes a number of a hash. Integers are as large as most, of either sign.
func (d Data) Number(hash uint64, most int64) float64 {
	if d == Reals {
		return float64(int64(hash)>>10) * 0x1p-53
	}
	return float64(int64(hash>>1)%(2*most+1) - most)
}
