package kernels

import "embed"

// Sources are those under cu/, and LayoutSource what programs add to them.
var (
	Sources      embed.FS = sources
	LayoutSource          = layoutSource
)

// PointsBoxes is what the kernel of a PointSpec gets of boxes, and Box one of them.
type (
	PointsBoxes [maxBoxes]box
	Box         = box
)
