package steps

// The modes of scaling, and, but for both, the values of label mode.
const (
	strongScaling = "strong"
	weakScaling   = "weak"
	bothScalings  = "both"
)

// modes returns the modes of scaling.
func modes() []string { return []string{strongScaling, weakScaling, bothScalings} }
