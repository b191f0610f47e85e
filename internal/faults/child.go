package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Child is a process that Run has started. Methods of nil do nothing: the process is not a child.
type Child struct {
	Plan
	file *os.File

	mu     sync.Mutex // of what follows
	report report
	length int // of the longest report
}

// Join returns what the parent process says if Run has started this process, otherwise nil. From now on the parent
// passes on all signals.
func Join(ctx context.Context) (*Child, error) {
	name := os.Getenv(reportVariable)
	if name == "" {
		return nil, nil
	}
	os.Unsetenv(reportVariable)
	parent, c := bufio.NewReader(os.Stdin), &Child{}
	line, err := parent.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.Plan)
	}
	if err == nil {
		c.file, err = os.OpenFile(name, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: must be set by halox run only: %w", reportVariable, err)
	}
	_ = os.Remove(name) // the parent has it open
	interrupt.Take(ctx, parent)
	return c, nil
}

// say changes the report, and writes it. Errors are ignored: without a report the process counts as crashed.
func (c *Child) say(change func(r *report)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.report)
	text, _ := json.Marshal(c.report)
	c.length = max(c.length, len(text))
	text = append(text, bytes.Repeat([]byte(" "), c.length-len(text))...)
	_, _ = c.file.WriteAt(text, 0) // in one call: a process that is killed leaves a whole report
}

// Opened tells the parent on which devices the run is, at a step. If a link fails its probe that worked when the run
// began, one of its devices counts as lost: Opened returns it for halo.Devices.Without, and the caller opens the
// others.
func (c *Child) Opened(s *halo.Session, step int64) (without string) {
	if c == nil {
		return ""
	}
	var all, left []device
	var links []string
	fails, why := map[*streams.Device]int{}, ""
	for _, from := range s.Devices {
		all = append(all, c.device(from))
		for _, to := range s.Devices {
			l := s.Links.Between(from, to)
			if l == nil || !l.Access || l.Usable {
				continue
			}
			name := fmt.Sprintf("%s to %s", c.device(from).Name, c.device(to).Name)
			if links = append(links, name); c.Plan.Opened && !slices.Contains(c.Links, name) {
				fails[from]++
				fails[to]++
				why = l.Why
			}
		}
	}
	worst := -1
	for i, d := range s.Devices {
		if n := fails[d]; n > 0 && (worst < 0 || n >= fails[s.Devices[worst]]) {
			worst = i
		}
	}
	if worst >= 0 {
		without, left = all[worst].key(), slices.Delete(slices.Clone(all), worst, worst+1)
		c.Faults = append(c.Faults, results.Fault{Time: time.Now(), Step: step, Code: int(command.CheckFailed),
			Message: why, Devices: names(all), Left: names(left)})
	}
	c.say(func(r *report) {
		if r.Devices, r.Links, r.Step = all, links, step; worst >= 0 {
			r.Devices, r.Without = left, append(r.Without, without)
			r.Faults = append(r.Faults, c.Faults[len(c.Faults)-1])
		}
	})
	return without
}

// Backend returns that of the first child, "" if it is unknown: a run on GPUs does not continue on CPU devices.
func (c *Child) Backend() string {
	if c == nil || c.Devices == nil {
		return ""
	}
	backend, _, _ := strings.Cut(c.Devices[0].Name, " ")
	return backend
}

// device describes an open device.
func (c *Child) device(d *streams.Device) device {
	known := c.named(d.String())
	if known.Bus == "" {
		known.Bus, known.UUID = d.PCIBusID, d.UUID
	}
	return known
}

// named describes a device by its name in this process, which differs from that in the first child if others are
// hidden.
func (c *Child) named(name string) device {
	for i, known := range c.Devices {
		if c.Hidden && name == fmt.Sprintf("%s %d", c.Backend(), i) {
			return known
		}
	}
	return device{Name: name}
}

// At tells the parent that steps are completed.
func (c *Child) At(step int64) { c.say(func(r *report) { r.Step = max(r.Step, step) }) }

// Ended tells the parent how the command ended, and which of its devices are lost.
func (c *Child) Ended(err error, devices ...*streams.Device) {
	c.say(func(r *report) {
		if r.Ended && r.Code != command.OK {
			return // the first error counts
		}
		if r.Ended, r.Code = true, command.CodeOf(err); err == nil {
			return
		}
		r.Message = err.Error()
		r.None = errors.Is(err, streams.ErrNoDriver)
		r.Unready = errors.Is(err, streams.ErrNotStarted)
		for _, d := range devices {
			if lost, ok := errors.AsType[*streams.Error](d.Err()); ok && lost.Fatal {
				r.Lost = append(r.Lost, c.device(d))
			}
		}
		if lost, ok := errors.AsType[*streams.Error](err); ok && lost.Fatal && len(r.Lost) == 0 {
			r.Lost = []device{c.named(lost.Device)}
		}
	})
}
