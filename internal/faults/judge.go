package faults

import (
	"fmt"
	"slices"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/results"
)

// killed is results.Fault.Code of a process that was killed or crashed.
const killed command.Code = -1

// judge decides whether a run is started again.
type judge struct {
	allowed, used int
	last          *results.Fault // the one before, among those that count
	diverged      bool           // once
}

// verdict is what follows a fault.
type verdict struct {
	again   bool
	without []device // devices that are left out from now on
	why     string   // why the run is not started again
}

// next decides what follows a fault. devices are those of the child, or of the one before if it opened none. lost are
// those that it blames, and failed those that fail their checks. These are left out, unless that is all of them. If
// none fails, one that is blamed alone is left out: of several, any may have failed first. A device that cannot even be
// opened does not count as one of the allowed restarts.
func (j *judge) next(fault results.Fault, opened bool, devices, lost, failed []device) verdict {
	v := verdict{again: true}
	if len(failed) > 0 || len(lost) > 1 {
		lost = failed
	}
	if left := without(devices, lost); len(left) > 0 || devices == nil {
		v.without = lost
	}
	last, diverged := j.last, fault.Code == int(command.Diverged)
	switch {
	case !opened && len(v.without) > 0:
		return v
	case diverged && j.diverged:
		v.why = "it diverged before a restart too, so the problem is the cause and not a device"
	case j.used == j.allowed:
		v.why = fmt.Sprintf("faults.restarts allows %d restarts", j.allowed)
	case last != nil && fault.Step <= last.Step && slices.Equal(fault.Devices, last.Devices):
		v.why = fmt.Sprintf("it got no further than step %d before the last restart", last.Step)
	case last != nil && fault.Step <= last.Step:
		v.why = fmt.Sprintf("it got no further than step %d on other devices, so the problem is the cause and not a device",
			last.Step)
	}
	v.again = v.why == ""
	j.used++
	j.last, j.diverged = &fault, j.diverged || diverged
	return v
}

// without returns the devices that are not in another list. Names count if a bus id is unknown.
func without(all, others []device) []device {
	return slices.DeleteFunc(slices.Clone(all), func(d device) bool {
		return slices.ContainsFunc(others, func(o device) bool {
			return o == d || o.Bus == "" && o.Name == d.Name
		})
	})
}
