// Package results keeps what runs and benchmarks measured: records, and tables of them.
//
// A [Record] is one JSON file. It says what was asked for, on which machine it ran, how far
// it came and how fast. A [Row] of it has labels, which say what was measured, and for each
// [Metric] a [Sample]. [WriteTable] prints records. Package results/plot draws them, and
// packages results/trace and results/field have the other files of a run.
//
// A file appears under its name when it is complete: an interrupted run leaves no half of a
// file, and does not damage the one that was there. Missing folders are created. Every error
// names the file and what was being done to it.
package results

import (
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/results/internal/wording"
)

// schemaVersion is the version of the record's layout that this package writes; the file
// record.schema.json describes it. It grows when a key changes its meaning, not when
// one is added.
const schemaVersion = 2

// A Kind says what a record is of.
type Kind string

// The kinds that this halox writes.
const (
	KindRun      Kind = "run"      // a problem solved; see Record.Run
	KindExchange Kind = "exchange" // exchanges of halos
	KindPack     Kind = "pack"     // datatypes packed on a device
	KindPingPong Kind = "pingpong" // datatypes sent there and back
	KindLinks    Kind = "links"    // rates from device to device
	KindLatency  Kind = "latency"  // times of the smallest pieces of work
	KindRanks    Kind = "ranks"    // messages, barriers and overlap of ranks
	KindSchemes  Kind = "schemes"  // steps by scheme, path and size
	KindScaling  Kind = "scaling"  // steps over the number of devices
	KindSweep    Kind = "sweep"    // sweeps on one device, by stencil and size
	KindForecast Kind = "forecast" // steps on hosts that are not there, predicted
)

// kinds returns all of them.
func kinds() []Kind {
	return []Kind{
		KindRun, KindExchange, KindPack, KindPingPong, KindLinks, KindLatency, KindRanks, KindSchemes, KindScaling,
		KindSweep, KindForecast,
	}
}

// A Record is what one command leaves behind: who measured what, on which machine
// and how, and the rows that came of it.
type Record struct {
	Schema  int       `json:"schema"` // set by Write
	Kind    Kind      `json:"kind"`
	Halox   Program   `json:"halox"`             // the program that ran
	Command []string  `json:"command,omitempty"` // its arguments, as given
	Started time.Time `json:"started"`           // RFC 3339
	Host    Host      `json:"host"`              // the machine it ran on
	Devices []Device  `json:"devices"`           // those that took part

	Processes int `json:"processes,omitempty"` // that measured together, if several; of a run see Run.Processes

	Networks []Network `json:"networks,omitempty"` // of messages between processes

	Resumed []time.Time `json:"resumed,omitempty"` // when it was continued, after it had been interrupted

	Settings    any    `json:"settings,omitempty"`    // the resolved config, or the flags of a bench, as JSON
	Interrupted bool   `json:"interrupted,omitempty"` // somebody stopped it before its end
	Failure     string `json:"failure,omitempty"`     // what ended it

	Run  *Run  `json:"run,omitempty"` // of a record of KindRun
	Rows []Row `json:"rows"`
}

// A Network is what carried messages between processes of one host, or between hosts.
type Network struct {
	Between string        `json:"between"`         // "processes" of one host, or "hosts"
	Name    string        `json:"name"`            // as exchange.network: mpi, mpi-device or nccl
	Carrier string        `json:"carrier"`         // the library, in its own words, and of NCCL over what
	Times   []NetworkTime `json:"times,omitempty"` // of messages, as far as measured when it was chosen
}

// A NetworkTime is what a message takes from one device to another, from its first call on the host to its arrival.
type NetworkTime struct {
	Bytes        int64   `json:"bytes"`
	Microseconds float64 `json:"microseconds"`
}

// A Program names the halox that ran.
type Program struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// A Device is one that took part.
type Device struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Backend     string  `json:"backend"`                // cuda or host
	MemoryBytes int64   `json:"memory_bytes,omitempty"` // absent where unknown
	Host        string  `json:"host,omitempty"`         // that it is in, where several processes shared the grid
	Process     int     `json:"process,omitempty"`      // the rank of the process that had it
	PCIBusID    string  `json:"pci_bus_id,omitempty"`   // absent for host devices
	Clocks      *Clocks `json:"clocks,omitempty"`       // absent where unknown
	Links       []Link  `json:"links,omitempty"`
}

// Clocks are the highest that a device runs at, in MHz.
type Clocks struct {
	Cores  int `json:"cores_mhz"`
	Memory int `json:"memory_mhz"`
}

// A Link says how one device reaches another.
type Link struct {
	To         int    `json:"to"`             // id of the other device, of the same process
	Kind       string `json:"kind"`           // what joins the two
	PeerAccess bool   `json:"peer_access"`    // whether one can address the other's memory
	Path       string `json:"path,omitempty"` // how messages between the two travel
}

// Add appends a row.
func (r *Record) Add(rows ...Row) { r.Rows = append(r.Rows, rows...) }

// End says what ended the measurements, where that is an error.
func (r *Record) End(failure error) {
	if failure != nil {
		r.Failure = failure.Error()
	}
}

// State says what came between a record and its end, "" for nothing.
func (r *Record) State() string {
	switch {
	case r.Failure != "":
		return "failed: " + r.Failure
	case r.Interrupted:
		return "interrupted"
	}
	return ""
}

// String names the program, "" where it is not known.
func (p Program) String() string {
	if p.Version == "" {
		return ""
	}
	return wording.Join(" ", "halox", p.Version, p.shortCommit())
}

// shortCommit cuts the commit as git does.
func (p Program) shortCommit() string {
	if len(p.Commit) == 40 {
		return p.Commit[:7]
	}
	return p.Commit
}

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
	Residual   *float64    `json:"residual,omitempty"` // largest one of the equation, of the field before the last step
	Error      *ErrorNorms `json:"error,omitempty"`    // against the exact solution, where one is given

	Sweep            *Sweep   `json:"sweep,omitempty"` // on GPUs
	SetupSeconds     *float64 `json:"setup_seconds,omitempty"`
	LoopSeconds      *float64 `json:"loop_seconds,omitempty"`
	UpdatesPerSecond *float64 `json:"updates_per_second,omitempty"` // owned points times steps, a second of the loop
	BytesExchanged   int64    `json:"bytes_exchanged"`              // sent by all devices in all steps

	Time *float64 `json:"time,omitempty"` // simulated time reached; none for laplace
	DT   *float64 `json:"dt,omitempty"`   // time step; none for laplace

	History []Check `json:"history,omitempty"` // norms at every check, when asked for

	Outputs []*Output `json:"outputs,omitempty"` // the other files that the run was to leave behind

	Trials []Trial `json:"trials,omitempty"` // those that chose the scheme, now or before, the shortest first
}

// A Trial is how long a step took by a scheme and a path that was tried.
type Trial struct {
	Scheme          string  `json:"scheme"`
	Path            string  `json:"path"`
	StepsAnExchange int     `json:"steps_an_exchange,omitempty"` // where that is more than one
	StepSeconds     float64 `json:"step_seconds"`
}

// An Output is a file of a run other than its record.
type Output struct {
	Kind string `json:"kind"` // field, picture or trace
	File string `json:"file"` // as it was given
	// Missing says why the file was not written. A file of that name is then of another run.
	Missing string `json:"missing,omitempty"`
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
	StopDiverged    Stop = "diverged"    // a check found values that are not finite
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

// problem is the few settings that name a problem.
type problem struct {
	Solver    string
	Precision string
	Grid      struct{ Size []int }
	Stop      struct {
		Tolerance float64
		Norm      string
	}
}

// problemOf reads a problem out of settings of any type, by way of their JSON form.
// Of settings without one it is empty.
func problemOf(settings any) (p problem) {
	data, err := json.Marshal(settings)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return problem{}
	}
	return p
}

// String is for example "heat 512 x 512 x 512, float64".
func (p problem) String() string {
	return wording.Join(", ", strings.TrimSpace(p.Solver+" "+wording.Times(p.Grid.Size)), p.Precision)
}

// RunRow returns the row of a record of a run: what was solved how, and how fast.
// The problem is described by the keys solver, grid.size and precision of the
// settings.
func (r *Record) RunRow() Row {
	problem, run := problemOf(r.Settings), r.Run
	row := NewRow().
		Label("solver", problem.Solver).Label(
		"grid", wording.Times(problem.Grid.Size),
	).Label("precision", problem.Precision).
		Label("devices", len(r.Devices)).Label("scheme", run.Scheme).Label("order", run.Order).Label("path", run.Path).
		Label("iterations", run.Iterations)
	if run.StepsAnExchange > 1 {
		row = row.Label("steps_an_exchange", run.StepsAnExchange)
	}
	if run.UpdatesPerSecond != nil {
		row = row.Number(Updates, *run.UpdatesPerSecond)
	}
	if run.LoopSeconds != nil && run.Iterations > 0 {
		row = row.Number(Step, *run.LoopSeconds*1e6/float64(run.Iterations))
	}
	if run.LoopSeconds != nil {
		row = row.Number(Loop, *run.LoopSeconds)
	}
	if run.SetupSeconds != nil {
		row = row.Number(Setup, *run.SetupSeconds)
	}
	if run.Error != nil && run.Error.Max != nil {
		row = row.Number(MaxError, *run.Error.Max)
	}
	return row
}

// A Host is the machine that a run was made on. What is unknown is left out.
type Host struct {
	Name        string `json:"name,omitempty"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	CPU         string `json:"cpu,omitempty"`          // model, as the system calls it
	Cores       int    `json:"cores"`                  // logical cores that this process may use
	MemoryBytes int64  `json:"memory_bytes,omitempty"` // physical memory
	Driver      string `json:"driver,omitempty"`       // version of the GPU driver, where there is one
	CUDA        string `json:"cuda,omitempty"`         // CUDA version of that driver
}

// Machine describes the host that this process runs on. The CPU model and the
// memory are known on Linux only; Driver and CUDA are for the caller to fill in.
func Machine() Host {
	name, _ := os.Hostname()
	memory, _ := strconv.ParseInt(strings.TrimSuffix(procValue("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	return Host{
		Name:        name,
		OS:          runtime.GOOS,
		Arch:        runtime.GOARCH,
		CPU:         procValue("/proc/cpuinfo", "model name"),
		Cores:       runtime.NumCPU(),
		MemoryBytes: memory << 10, // kB are units of 1024 bytes there
	}
}

// procValue returns what follows the first "key:" of a line in a file under /proc, "" without one.
func procValue(path, key string) string {
	data, _ := os.ReadFile(path)
	m := regexp.MustCompile(`(?m)^` + key + `[ \t]*:[ \t]*(.*)$`).FindSubmatch(data)
	if m == nil {
		return ""
	}
	return strings.TrimSpace(string(m[1]))
}
