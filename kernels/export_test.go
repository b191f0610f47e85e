package kernels

import "embed"

// Sources are the files under cu/, and LayoutSource the text that programs add to them.
var (
	Sources      embed.FS = sources
	LayoutSource          = layoutSource
)

// PointsBoxes is the parameter for the boxes of a PointSpec, and Box one of them.
type (
	PointsBoxes [maxBoxes]box
	Box         = box
)
