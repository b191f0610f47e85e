package results

// A Run is what a record says of a problem that was solved. Numbers that don't
// apply, were never reached or are not finite are nil here and absent in the file;
// see [Number].
type Run struct {
	Scheme string `json:"scheme,omitempty"`
	Order  string `json:"order,omitempty"` // of the exchange: left-right or pairwise, for two-stream
	Path   string `json:"path,omitempty"`
	// How many steps go between two exchanges, where that is more than one.
	StepsAnExchange int `json:"steps_an_exchange,omitempty"`

	Processes     int         `json:"processes,omitempty"`    // that shared the grid, where they were several
	Decomposition [3]int      `json:"decomposition,omitzero"` // devices along x, y, z
	Subdomains    []Subdomain `json:"subdomains,omitempty"`

	Iterations int         `json:"iterations"` // steps done
	Stopped    Stop        `json:"stopped"`    // why the run ended
	Norms                  // of the last step
	Error      *ErrorNorms `json:"error,omitempty"` // against the exact solution, where one is given

	Sweep            *Sweep   `json:"sweep,omitempty"` // on GPUs
	SetupSeconds     *float64 `json:"setup_seconds,omitempty"`
	LoopSeconds      *float64 `json:"loop_seconds,omitempty"`
	UpdatesPerSecond *float64 `json:"updates_per_second,omitempty"` // owned points times steps, a second of the loop
	BytesExchanged   int64    `json:"bytes_exchanged"`              // sent by all devices in all steps

	Time *float64 `json:"time,omitempty"` // simulated time reached; none for laplace
	DT   *float64 `json:"dt,omitempty"`   // time step; none for laplace

	History []Check `json:"history,omitempty"` // norms at every check, when asked for
}

// A Subdomain is the box of owned points [Lo, Hi) that one device has, in
// global 0-based indices along x, y, z.
type Subdomain struct {
	Device  int    `json:"device"`            // id of the device
	Process int    `json:"process,omitempty"` // the rank of the process that had it
	Lo      [3]int `json:"lo"`
	Hi      [3]int `json:"hi"`
}

// Sweep is how the first GPU swept the most of its subdomain.
type Sweep struct {
	Block  [2]int `json:"block"`  // threads of a block along x and y
	Layers int    `json:"layers"` // that a thread takes: planes, or rows in two dimensions
	// What finding that out took on all GPUs; about 0 where it was known.
	TuningSeconds *float64 `json:"tuning_seconds,omitempty"`
}

// A Stop is the reason for which a run ended.
type Stop string

// The reasons that a record knows.
const (
	StopTolerance   Stop = "tolerance"   // the change fell below the tolerance
	StopIterations  Stop = "iterations"  // all steps asked for were done
	StopInterrupted Stop = "interrupted" // somebody ended it between two steps
	StopError       Stop = "error"       // it failed; Record.Failure says how
)

// Norms sum up the field after a step and the change that the step made, over
// the owned points.
type Norms struct {
	MaxChange *float64 `json:"max_change,omitempty"` // largest absolute change
	L2Change  *float64 `json:"l2_change,omitempty"`  // root of the sum of squares of the change
	L2Norm    *float64 `json:"l2_norm,omitempty"`    // root of the mean of squares of the field
	MaxNorm   *float64 `json:"max_norm,omitempty"`   // largest absolute value of the field
}

// ErrorNorms measure the distance from the exact solution.
type ErrorNorms struct {
	L2  *float64 `json:"l2,omitempty"`  // root of h^d times the sum of squares
	Max *float64 `json:"max,omitempty"` // largest absolute distance
}

// A Check is one line of the history: the norms after so many steps.
type Check struct {
	Iteration int `json:"iteration"`
	Norms
}
