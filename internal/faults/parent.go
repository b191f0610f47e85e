package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Options are the options of Run.
type Options struct {
	Restarts   int                             // maximum number of restarts
	Config     []byte                          // of the run, for Plan.Config
	Checkpoint func() (step int64, whole bool) // step of the newest checkpoint; false if none is whole
	Count      int                             // maximum number of devices; 0: no maximum
	IDs        []int                           // numbers of the only devices that the run may use; nil: all
	CheckLimit time.Duration                   // of the check of a device; 0: a minute
}

// Run runs the command line of ctx in a child process, and again in another one after a fault: a lost device, a
// solution that diverges for the first time, or a process that is killed or crashes. Faults that repeat without
// progress, and those beyond o.Restarts, end it. Signals are passed on, and the child ends if this process is killed.
// After a device was lost, all are checked, each alone: a GPU that fails may take the contexts of others with it. The
// error has the exit code of the last child, which has usually printed it.
func Run(ctx context.Context, o Options) error {
	o.CheckLimit = cmp.Or(o.CheckLimit, time.Minute)
	p := &parent{call: command.Of(ctx), options: o, plan: Plan{Config: o.Config}, judge: judge{allowed: o.Restarts}}
	defer interrupt.Pass(ctx, p.send)()
	for began := time.Now(); ; p.plan.Spent = time.Since(began) {
		stdout, stderr, isJSON := p.call.Streams()
		var out bytes.Buffer // of the last child only
		if isJSON {
			stdout = &out
		}
		plan, env := p.plan, []string(nil)
		if plan.Hidden || len(plan.Without) > 0 {
			plan, env = plan.hide()
		}
		how, err := p.child(ctx, plan, env, stdout, stderr)
		if err != nil {
			return err
		}
		how.output = out.Bytes()
		if again, err := p.next(ctx, how); !again {
			return err
		}
	}
}

// parent runs the children of a command.
type parent struct {
	call    *command.Call
	options Options
	plan    Plan
	judge   judge

	mu    sync.Mutex // of what follows
	told  bool       // to stop
	stdin io.Writer  // of the child; nil while there is none
}

// send sends a message of interrupt.Pass to the child.
func (p *parent) send(message byte, stops bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told = p.told || stops; p.stdin != nil {
		_, _ = p.stdin.Write([]byte{message}) // it may have ended
	}
}

// ending is how a child ended.
type ending struct {
	report
	exit   int    // exit code; -1 after a signal
	state  string // as "signal: killed"
	output []byte // with --json
	told   bool   // this process was told to stop
}

// child runs a child to its end, or kills it when ctx ends. env is added to its environment.
func (p *parent) child(
	ctx context.Context, plan Plan, env []string, stdout, stderr io.Writer,
) (how ending, err error) {
	defer func() {
		if err != nil && !errors.Is(err, interrupt.ErrInterrupted) {
			err = fmt.Errorf("faults: run in a child process: %w", err)
		}
	}()
	self, err := os.Executable()
	if runtime.GOOS == "linux" {
		self, err = "/proc/self/exe", nil // the same program, also after its file was replaced
	}
	text, failed := json.Marshal(plan)
	if err = errors.Join(err, failed); err != nil {
		return how, err
	}
	file, err := os.CreateTemp("", "halox-child-*")
	if err != nil {
		return how, err
	}
	defer os.Remove(file.Name()) // the child has usually removed it
	defer file.Close()
	cmd := exec.Command(self, p.call.Args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(append(os.Environ(), reportVariable+"="+file.Name()), env...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return how, err
	}
	if err = p.begin(cmd, stdin, append(text, '\n')); err != nil {
		return how, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done(): // without waiting: a process may not end while its GPU hangs
		err = errors.Join(ctx.Err(), cmd.Process.Kill())
	}
	p.mu.Lock()
	p.stdin, how.told = nil, p.told
	p.mu.Unlock()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return how, err
	}
	how.exit, how.state = cmd.ProcessState.ExitCode(), cmd.ProcessState.String()
	if err = json.NewDecoder(file).Decode(&how.report); errors.Is(err, io.EOF) { // it has not come that far
		err = nil
	}
	return how, err
}

// begin starts a child, unless this process was told to stop.
func (p *parent) begin(cmd *exec.Cmd, stdin io.Writer, plan []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told {
		return interrupt.ErrInterrupted
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.stdin = stdin
	_, _ = stdin.Write(plan) // it may have ended
	return nil
}

// fault returns the fault with which a child ended, and what it was; nil if it ended otherwise.
func (p *parent) fault(how ending) (f *results.Fault, what string) {
	f = &results.Fault{Time: time.Now(), Code: int(how.Code), Message: how.Message, Step: how.Step}
	switch {
	case how.told, how.exit == int(command.Interrupted):
		return nil, ""
	case !how.Ended:
		f.Code, f.Message, what = int(killed), how.state, "the process ended ("+how.state+")"
	case how.Code == command.DeviceLost:
		what = "a device was lost"
	case how.Unready:
		what = "the driver does not start"
	case how.Code == command.Diverged:
		what = "the solution diverged"
	default:
		return nil, ""
	}
	return f, what
}

// maxGPUs is how many GPUs of a host are looked for by their numbers.
const maxGPUs = 16

// candidates returns the GPUs that the run may use, by their numbers: a driver that does not start tells no more.
func (o Options) candidates() (all []device) {
	visible := strings.Split(os.Getenv("CUDA_VISIBLE_DEVICES"), ",")
	for id := range maxGPUs {
		d := device{Name: fmt.Sprint(streams.CUDA, " ", id), UUID: strconv.Itoa(id)}
		if visible[0] != "" {
			d.UUID = strings.Join(visible[min(id, len(visible)):min(id+1, len(visible))], "")
		}
		if d.UUID != "" && (o.IDs == nil || slices.Contains(o.IDs, id)) {
			all = append(all, d)
		}
	}
	return all
}

// check checks each device of the last child in a process of its own, and returns those that fail. Without a child that
// opened devices, it finds them first.
func (p *parent) check(ctx context.Context) (failed []device, found map[string]string, err error) {
	devices := p.plan.Devices
	if devices == nil {
		devices, p.plan.Hidden = p.options.candidates(), true
	}
	p.plan.Devices, found = nil, map[string]string{}
	for _, d := range devices {
		limited, end := context.WithTimeout(ctx, p.options.CheckLimit)
		plan, env := Plan{Check: true, Devices: []device{d}}.hide()
		how, err := p.child(limited, plan, env, nil, nil)
		end()
		if how.Devices != nil {
			d = how.Devices[0]
		}
		if how.None && d.Bus == "" { // there are not as many
			continue
		}
		p.plan.Devices = append(p.plan.Devices, d)
		switch {
		case how.told || errors.Is(err, interrupt.ErrInterrupted):
			return nil, nil, interrupt.ErrInterrupted
		case errors.Is(err, context.DeadlineExceeded):
			found[d.Name] = fmt.Sprintf("it does not end within %v", p.options.CheckLimit)
		case err != nil:
			return nil, nil, err
		case !how.Ended:
			found[d.Name] = how.state
		case how.Code != command.OK:
			found[d.Name] = how.Message
		default:
			found[d.Name] = "ok"
			continue
		}
		failed = append(failed, d)
	}
	return failed, found, nil
}

// next prepares a restart after the end of a child. If there is none, it returns the error of the command.
func (p *parent) next(ctx context.Context, how ending) (again bool, err error) {
	if how.Devices != nil {
		p.plan.Devices = how.Devices
	}
	if !p.plan.Opened {
		p.plan.Links, p.plan.Opened = how.Links, how.Devices != nil
	}
	p.plan.Without = append(p.plan.Without, how.Without...)
	p.plan.Faults = append(p.plan.Faults, how.Faults...)
	fault, what := p.fault(how)
	if fault == nil {
		return false, p.end(how)
	}
	var failed []device
	if how.Unready ||
		fault.Code == int(command.DeviceLost) && len(how.Devices) > 1 && p.judge.used < p.judge.allowed {
		if failed, fault.Checks, err = p.check(ctx); err != nil {
			return false, err
		}
		if how.Unready && len(failed) == len(p.plan.Devices) { // no device is the cause
			return false, p.end(how)
		}
	}
	for _, d := range failed {
		p.call.Warn(fmt.Sprintf("%s fails its check: %s", d.Name, fault.Checks[d.Name]))
	}
	step, whole := p.options.Checkpoint()
	fault.Step, fault.Devices = max(step, fault.Step), names(p.plan.Devices)
	v := p.judge.next(*fault, how.Devices != nil, p.plan.Devices, how.Lost, failed)
	what = fmt.Sprintf("%s at step %d", what, fault.Step)
	if !v.again {
		p.call.PrintError("", fmt.Errorf("%s: the run is not started again: %s", what, v.why))
		return false, p.end(how)
	}
	if what = fmt.Sprintf("%s: restart %d of %d from step %d", what, p.judge.used, p.judge.allowed, step); how.Devices == nil {
		what = fmt.Sprintf("a device cannot be opened: restart from step %d", step)
	}
	for i, d := range v.without {
		what += []string{" without ", ", "}[min(i, 1)] + d.Name
		p.plan.Without = append(p.plan.Without, d.key())
	}
	p.call.Warn(what)
	p.plan.Devices = without(p.plan.Devices, v.without)
	if n := p.options.Count; n > 0 {
		p.plan.Devices = p.plan.Devices[:min(n, len(p.plan.Devices))]
	}
	fault.Left = names(p.plan.Devices)
	p.plan.Faults, p.plan.Restart = append(p.plan.Faults, *fault), whole
	return true, nil
}

// end returns the error of the command after its last child.
func (p *parent) end(how ending) error {
	stdout, _, isJSON := p.call.Streams()
	if isJSON {
		if _, err := stdout.Write(how.output); err != nil {
			return err
		}
	}
	switch {
	case how.Ended && how.exit <= 0: // killed while it was ending
		return command.Printed(how.Code)
	case how.exit < 0 && how.told:
		return interrupt.ErrInterrupted
	case how.exit < 0 || !how.Ended && how.exit != int(command.Interrupted):
		return command.Printed(command.Failed)
	}
	return command.Printed(command.Code(how.exit))
}
