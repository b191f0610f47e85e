package boundary

// Register adds a kind that no other file knows, and returns what removes it. Of "symmetric" the field is even about
// the nearest points, on which the face lies, so that the n-th ghost is a copy of the point n+1 steps inside.
func Register() (remove func()) {
	rules["symmetric"] = rule{source: func(n int) int { return n + 1 }, named: true}
	return func() { delete(rules, "symmetric") }
}
