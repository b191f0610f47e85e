package boundary

// RegisterSymmetric adds a kind that no other file knows: the field is even about the nearest points, on which the face
// lies, so that the n-th ghost is a copy of the point n+1 steps inside. It returns what removes it.
func RegisterSymmetric() (remove func()) {
	rules["symmetric"] = rule{source: func(n int) int { return n + 1 }, named: true}
	return func() { delete(rules, "symmetric") }
}
