// Package results stores the results of runs and benchmarks: records, and tables of them.
//
// A [Record] is one JSON file. It has the settings, the machine, the outcome and the speed. A [Row] has
// labels, which identify the measurement, and for each [Metric] a [Sample]. [WriteTable] prints records.
// Package results/plot draws them, and packages results/trace and results/field have the other files of a
// run.
//
// A file appears under its name when it is complete: an interrupted run leaves no partial file, and does not
// damage an existing one. Missing folders are created. Every error names the file and the operation.
package results

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/results/internal/wording"
)

// schemaVersion is the version of the record's layout that this package writes; record.schema.json describes
// it. It increases when a key changes its meaning, not when one is added.
const schemaVersion = 2

// A Kind is the kind of a record.
type Kind string

// The kinds that this halox writes.
const (
	KindRun        Kind = "run"        // a problem solved; see Record.Run
	KindExchange   Kind = "exchange"   // exchanges of halos
	KindPack       Kind = "pack"       // datatypes packed on a device
	KindPingPong   Kind = "pingpong"   // datatypes sent back and forth
	KindLinks      Kind = "links"      // rates from device to device
	KindLatency    Kind = "latency"    // times of the smallest pieces of work
	KindRanks      Kind = "ranks"      // messages, barriers and overlap of ranks
	KindSchemes    Kind = "schemes"    // steps by scheme, path and size
	KindScaling    Kind = "scaling"    // steps over the number of devices
	KindSweep      Kind = "sweep"      // sweeps on one device, by stencil and size
	KindCheckpoint Kind = "checkpoint" // checkpoints written and read, and steps meanwhile
	KindForecast   Kind = "forecast"   // predicted steps on more hosts
)

// kinds returns all kinds.
func kinds() []Kind {
	return []Kind{
		KindRun, KindExchange, KindPack, KindPingPong, KindLinks, KindLatency, KindRanks, KindSchemes, KindScaling,
		KindSweep, KindCheckpoint, KindForecast,
	}
}

// A Record is the result of one command: program, machine and settings, and the measured rows.
type Record struct {
	Schema  int       `json:"schema"`            // set by Write
	Kind    Kind      `json:"kind"`              // kind of the record
	Halox   Program   `json:"halox"`             // the program
	Command []string  `json:"command,omitempty"` // its arguments
	Started time.Time `json:"started"`           // start time, RFC 3339
	Host    Host      `json:"host"`              // the machine
	Devices []Device  `json:"devices"`           // devices used

	Processes int `json:"processes,omitempty"` // number of processes, if several; for a run see Run.Processes

	Networks []Network `json:"networks,omitempty"` // networks of messages between processes

	Resumed []time.Time `json:"resumed,omitempty"` // times of continuation after interruptions

	Settings    any    `json:"settings,omitempty"`    // resolved config, or the flags of a benchmark, as JSON
	Interrupted bool   `json:"interrupted,omitempty"` // true if it was interrupted
	Failure     string `json:"failure,omitempty"`     // error that ended it

	Run  *Run  `json:"run,omitempty"` // for KindRun
	Rows []Row `json:"rows"`          // measured values
}

// A Network is the network of messages between processes of one host, or between hosts.
type Network struct {
	Between string        `json:"between"`         // "processes" of one host, or "hosts"
	Name    string        `json:"name"`            // as in exchange.network: mpi, mpi-device or nccl
	Carrier string        `json:"carrier"`         // library with its version string; for NCCL also its transport
	Times   []NetworkTime `json:"times,omitempty"` // message times, if measured when it was chosen
}

// A NetworkTime is the time of a message from one device to another, from its first call on the host to its
// arrival.
type NetworkTime struct {
	Bytes        int64   `json:"bytes"`        // message size
	Microseconds float64 `json:"microseconds"` // time of one message
}

// A Program names the halox that ran.
type Program struct {
	Version string `json:"version"`          // version of halox
	Commit  string `json:"commit,omitempty"` // git commit, if known
}

// A Device is a device that was used.
type Device struct {
	ID          int     `json:"id"`                     // number in its backend
	Name        string  `json:"name"`                   // model
	Backend     string  `json:"backend"`                // cuda or host
	MemoryBytes int64   `json:"memory_bytes,omitempty"` // absent where unknown
	Host        string  `json:"host,omitempty"`         // its host, if several processes shared the grid
	Process     int     `json:"process,omitempty"`      // rank of its process
	PCIBusID    string  `json:"pci_bus_id,omitempty"`   // absent for CPU devices
	Clocks      *Clocks `json:"clocks,omitempty"`       // absent where unknown
	Links       []Link  `json:"links,omitempty"`        // links to other devices
}

// Clocks are the maximum clocks of a device, in MHz.
type Clocks struct {
	Cores  int `json:"cores_mhz"`  // MHz
	Memory int `json:"memory_mhz"` // MHz
}

// A Link describes how one device accesses another.
type Link struct {
	To         int    `json:"to"`             // id of the other device, of the same process
	Kind       string `json:"kind"`           // kind of connection
	PeerAccess bool   `json:"peer_access"`    // true if one can address the other's memory
	Path       string `json:"path,omitempty"` // path of messages
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
	Scheme string `json:"scheme,omitempty"` // scheme of the run
	Order  string `json:"order,omitempty"`  // of two-stream or assisted
	Path   string `json:"path,omitempty"`   // path of its messages
	// How many steps go between two exchanges, where that is more than one.
	StepsPerExchange int `json:"steps_per_exchange,omitempty"`

	Processes     int         `json:"processes,omitempty"`    // that shared the grid, where they were several
	Decomposition [3]int      `json:"decomposition,omitzero"` // devices along x, y, z
	Subdomains    []Subdomain `json:"subdomains,omitempty"`   // decomposition

	Iterations int         `json:"iterations"` // steps done
	Stopped    Stop        `json:"stopped"`    // why the run ended
	Norms                  // of the last step
	Residual   *float64    `json:"residual,omitempty"` // largest one of the equation, of the field before the last step
	Error      *ErrorNorms `json:"error,omitempty"`    // against the exact solution, where one is given

	Errors map[string]*ErrorNorms `json:"errors,omitempty"` // those of each field, if there are several

	Measures      map[string]*float64 `json:"measures,omitempty"`       // numbers that the config measures, at the end
	StartMeasures map[string]*float64 `json:"start_measures,omitempty"` // those before the first step

	Sweep            *Sweep   `json:"sweep,omitempty"`              // on GPUs
	SetupSeconds     *float64 `json:"setup_seconds,omitempty"`      // time before the loop
	LoopSeconds      *float64 `json:"loop_seconds,omitempty"`       // time of the loop
	UpdatesPerSecond *float64 `json:"updates_per_second,omitempty"` // owned points times steps, a second of the loop
	BytesExchanged   int64    `json:"bytes_exchanged"`              // sent by all devices in all steps

	Time *float64 `json:"time,omitempty"` // simulated time reached; none for laplace
	DT   *float64 `json:"dt,omitempty"`   // time step, the last one if it changes; none for laplace

	StableDT     *float64 `json:"stable_dt,omitempty"`     // largest stable time step, if known
	IgnoredTerms []string `json:"ignored_terms,omitempty"` // terms of the equations that StableDT ignores

	Origin  []float64 `json:"origin,omitempty"`  // coordinates of the first point, x first
	Spacing []float64 `json:"spacing,omitempty"` // distances between points

	History []Check `json:"history,omitempty"` // norms at every check, when asked for

	Outputs []*Output `json:"outputs,omitempty"` // the other files that the run was to leave behind

	Checkpoints *Checkpoints `json:"checkpoints,omitempty"`  // of the run; nil if it writes none
	RestartStep *int64       `json:"restart_step,omitempty"` // step of the checkpoint from which the run continued
	Faults      []Fault      `json:"faults,omitempty"`       // after which the run was started again

	Series       []Series `json:"series,omitempty"`                // those that were written while the run went on
	SeriesWaited *float64 `json:"series_waited_seconds,omitempty"` // time that steps waited for series

	Samples int64 `json:"samples,omitempty"` // of statistics

	Warnings []string `json:"warnings,omitempty"` // failures of outputs that did not end the run, and doubts about the result

	Trials []Trial `json:"trials,omitempty"` // those that chose the scheme, now or before, the shortest first
}

// Checkpoints counts the checkpoints of a run.
type Checkpoints struct {
	Folder  string   `json:"folder"`            // of the checkpoints
	Step    *int64   `json:"step,omitempty"`    // of the last whole one that this run has written
	Bytes   int64    `json:"bytes,omitempty"`   // its size
	Seconds *float64 `json:"seconds,omitempty"` // time until it was whole; steps continue meanwhile, except for Waited
	Written int      `json:"written"`           // whole checkpoints
	Skipped int      `json:"skipped,omitempty"` // left out, because the one before was still being written
	Failed  int      `json:"failed,omitempty"`  // that could not be written
	Waited  int      `json:"waited,omitempty"`  // written while steps waited, because devices lack memory for a copy
}

// A Series is files of fields at several times.
type Series struct {
	File    string  `json:"file"`             // file or folder that a viewer opens
	Written int     `json:"written"`          // outputs
	Failed  int     `json:"failed,omitempty"` // outputs that could not be written
	Bytes   int64   `json:"bytes"`            // size of the files, of all processes
	Seconds float64 `json:"seconds"`          // time of writing, in the background if there was memory for a copy
}

// A Fault is an event after which a run was started again, or a device that was left out.
type Fault struct {
	Time    time.Time `json:"time"`    // of the event
	Step    int64     `json:"step"`    // the last one that is known to be complete
	Code    int       `json:"code"`    // exit code of the process; -1 if it was killed or crashed
	Message string    `json:"message"` // its error
	Devices []string  `json:"devices"` // that it ran on
	Left    []string  `json:"left"`    // on which the run continued

	// Checks says what a check of each device in a process of its own found after a device was lost: "ok", or an error.
	Checks map[string]string `json:"checks,omitempty"`
}

// A Trial is how long a step took by a scheme and a path that was tried.
type Trial struct {
	Scheme           string  `json:"scheme"`                       // scheme of the trial
	Path             string  `json:"path"`                         // path of its messages
	StepsPerExchange int     `json:"steps_per_exchange,omitempty"` // where that is more than one
	StepSeconds      float64 `json:"step_seconds"`                 // time of a step
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
	Lo      [3]int `json:"lo"`                // first point
	Hi      [3]int `json:"hi"`                // end, excluded
}

// Sweep is the shape of the sweeps of the first GPU over most of its subdomain.
type Sweep struct {
	Block  [2]int `json:"block"`  // threads of a block along x and y
	Layers int    `json:"layers"` // planes per thread, or rows in two dimensions
	// Time of tuning on all GPUs; about 0 if cached.
	TuningSeconds *float64 `json:"tuning_seconds,omitempty"`
}

// A Stop is the reason why a run ended.
type Stop string

// The reasons in records.
const (
	StopTolerance   Stop = "tolerance"   // the change fell below the tolerance
	StopIterations  Stop = "iterations"  // all requested steps were run
	StopTime        Stop = "time"        // the simulated time was reached, with steps whose length changes
	StopInterrupted Stop = "interrupted" // it was interrupted between two steps
	StopWallTime    Stop = "wall time"   // the time for steps was over
	StopDiverged    Stop = "diverged"    // a check found values that are not finite
	StopError       Stop = "error"       // it failed, see Record.Failure
)

// Norms summarize the field after a step and the change by the step, over the owned points.
type Norms struct {
	MaxChange *float64 `json:"max_change,omitempty"` // largest absolute change
	L2Change  *float64 `json:"l2_change,omitempty"`  // root of the sum of squares of the change
	L2Norm    *float64 `json:"l2_norm,omitempty"`    // root of the mean of squares of the field
	MaxNorm   *float64 `json:"max_norm,omitempty"`   // largest absolute value of the field
}

// ErrorNorms measure the deviation from the exact solution.
type ErrorNorms struct {
	L2  *float64 `json:"l2,omitempty"`  // root of h^d times the sum of squares
	Max *float64 `json:"max,omitempty"` // largest absolute deviation
}

// A Check is one line of the history: the norms after a step.
type Check struct {
	Iteration int      `json:"iteration"`      // step of the check
	Time      *float64 `json:"time,omitempty"` // simulated time after the step; none for laplace
	DT        *float64 `json:"dt,omitempty"`   // length of the step, where it changes
	Norms
	Measures map[string]*float64 `json:"measures,omitempty"` // numbers that the config measures
	Probes   map[string]*float64 `json:"probes,omitempty"`   // values at points, where the config has a probe at the step
}

// problem is the settings that describe a problem.
type problem struct {
	Solver    string
	Precision string
	Grid      struct{ Size []int }
	Unit      any // a text, or one by field
	Measure   any // formulas by name
	Fields    any // sections by name
	Stop      struct {
		Tolerance float64
		Norm      string
		Field     string
	}
}

// problemOf reads a problem from settings of any type, through their JSON form. It is empty for other settings.
func problemOf(settings any) (p problem) {
	data, err := json.Marshal(settings)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return problem{}
	}
	return p
}

// unit returns the unit of a field, or the unit of all fields for "": "" if there is none, or several.
func (p problem) unit(field string) string {
	all, ok := p.Unit.(map[string]any)
	if !ok {
		text, _ := p.Unit.(string)
		return text
	}
	text, _ := all[field].(string)
	if fields, _ := p.Fields.(map[string]any); field == "" && len(all) == max(1, len(fields)) {
		units := slices.Collect(maps.Values(all))
		if text, _ = units[0].(string); slices.ContainsFunc(units, func(u any) bool { return fmt.Sprint(u) != text }) {
			return ""
		}
	}
	return text
}

// ofField matches a measure of one field, in its unit.
var ofField = regexp.MustCompile(`^\s*(?:sum|mean|max|min)\(\s*(\w+)\s*\)\s*$`)

// unitOfMeasure returns the unit of a measure if it is one of values of a field, and "" otherwise.
func (p problem) unitOfMeasure(name string) string {
	all, _ := p.Measure.(map[string]any)
	formula, _ := all[name].(string)
	if m := ofField.FindStringSubmatch(formula); m != nil {
		return p.unit(m[1])
	}
	return ""
}

// String is for example "heat 512 x 512 x 512, float64".
func (p problem) String() string {
	return wording.Join(", ", strings.TrimSpace(p.Solver+" "+wording.Times(p.Grid.Size)), p.Precision)
}

// RunRow returns the row of a record of a run: problem, scheme and speed. The keys solver, grid.size and precision of
// the settings describe the problem.
func (r *Record) RunRow() Row {
	problem, run := problemOf(r.Settings), r.Run
	row := NewRow().
		Label("solver", problem.Solver).Label(
		"grid", wording.Times(problem.Grid.Size),
	).Label("precision", problem.Precision).
		Label("devices", len(r.Devices)).Label("scheme", run.Scheme).Label("order", run.Order).Label("path", run.Path).
		Label("iterations", run.Iterations)
	if run.StepsPerExchange > 1 {
		row = row.Label("steps_per_exchange", run.StepsPerExchange)
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

// A Host is the machine of a run. Unknown fields are omitted.
type Host struct {
	Name        string `json:"name,omitempty"`         // host name
	OS          string `json:"os"`                     // operating system
	Arch        string `json:"arch"`                   // architecture
	CPU         string `json:"cpu,omitempty"`          // model, as reported by the system
	Cores       int    `json:"cores"`                  // logical cores that this process may use
	MemoryBytes int64  `json:"memory_bytes,omitempty"` // physical memory
	Driver      string `json:"driver,omitempty"`       // version of the GPU driver, if there is one
	CUDA        string `json:"cuda,omitempty"`         // CUDA version of that driver
}

// Machine describes the host of this process. The CPU model and the memory are known only on Linux; the caller sets
// Driver and CUDA.
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

// procValue returns the text after the first "key:" in a file under /proc, "" without one.
func procValue(path, key string) string {
	data, _ := os.ReadFile(path)
	m := regexp.MustCompile(`(?m)^` + key + `[ \t]*:[ \t]*(.*)$`).FindSubmatch(data)
	if m == nil {
		return ""
	}
	return strings.TrimSpace(string(m[1]))
}
