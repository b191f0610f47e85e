// Package faults runs a command in a child process, and starts it again from a checkpoint when a device or the process
// is lost.
package faults

import (
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/results"
)

// Plan is what a child is told at its start.
type Plan struct {
	Config  []byte          // JSON of a configs.Run
	Restart bool            // continue from the newest checkpoint
	Without []string        // devices that are left out, see halo.Devices.Without
	Spent   time.Duration   // since the first child was started
	Faults  []results.Fault // so far
	Links   []string        // links that failed their probes when the run began
	Opened  bool            // Links are known
	Devices []device        // of the child before, in their order; nil if unknown
	Hidden  bool            // the child sees only Devices, by CUDA_VISIBLE_DEVICES, with other numbers
	Check   bool            // the child only checks the first of Devices, see Child.Check
}

// hide returns the plan of a child that sees only the Devices, and the variable that hides the others: a driver may not
// even start because of a broken GPU. CPU devices are not hidden.
func (p Plan) hide() (hidden Plan, env []string) {
	var visible []string
	for _, d := range p.Devices {
		visible = append(visible, d.UUID)
	}
	if p.Devices == nil || slices.Contains(visible, "") {
		return p, nil
	}
	p.Hidden, p.Without = true, nil // which may have numbers that change
	return p, []string{"CUDA_VISIBLE_DEVICES=" + strings.Join(visible, ",")}
}

// reportVariable names the file in which a child reports. Its standard input has the Plan in a line, and then what
// interrupt.Pass sends.
const reportVariable = "HALOX_CHILD"

// report is what a child says about itself.
type report struct {
	Devices []device        // that it runs on; nil until they are open
	Links   []string        // between them, that failed their probes
	Without []string        // devices that it left out because of a link
	Faults  []results.Fault // of these
	Step    int64           // completed
	Ended   bool            // the command returned
	Code    command.Code    // its exit code
	Message string          // its error
	Lost    []device        // devices that it lost
	Unready bool            // the driver does not start
	None    bool            // the driver finds no device
}

// device is a device of a child.
type device struct {
	Name string // such as "cuda 1"
	Bus  string // PCI bus id; "" for CPU devices, and if unknown
	UUID string // as CUDA_VISIBLE_DEVICES takes it, a number until it is known; "" for CPU devices
}

// key identifies the device in halo.Devices.Without.
func (d device) key() string {
	if d.Bus != "" {
		return d.Bus
	}
	return d.Name
}

func names(all []device) (names []string) {
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names
}
