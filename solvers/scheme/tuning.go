package scheme

import "time"

// Tuning is in which shape a stage is swept by a stencil or a point function.
type Tuning struct {
	Stage  string        // its name
	Block  [2]int        // threads along x and y
	Layers int           // that a thread takes: planes, or rows in two dimensions
	Took   time.Duration // to find that out, on all devices; next to nothing where it was known
}
