package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/results"
)

// Options are the options of Run.
type Options struct {
	Restarts   int                             // maximum number of restarts
	Config     []byte                          // of the run, for Plan.Config
	Checkpoint func() (step int64, whole bool) // step of the newest checkpoint; false if none is whole
}

// Run runs the command line of ctx in a child process, and again in another one after a fault: a lost device, a
// solution that diverges for the first time, or a process that is killed or crashes. Faults that repeat without
// progress, and those beyond o.Restarts, end it. Signals are passed on, and the child ends if this process is killed.
// The error has the exit code of the last child, which has usually printed it.
func Run(ctx context.Context, o Options) error {
	p := &parent{call: command.Of(ctx), options: o, plan: Plan{Config: o.Config}, judge: judge{allowed: o.Restarts}}
	defer interrupt.Pass(ctx, p.send)()
	for began := time.Now(); ; p.plan.Spent = time.Since(began) {
		how, err := p.child()
		if err != nil {
			return err
		}
		if again, err := p.next(how); !again {
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
	devices []device // of the last child; nil if unknown

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

// child runs a child to its end.
func (p *parent) child() (how ending, err error) {
	defer func() {
		if err != nil && !errors.Is(err, interrupt.ErrInterrupted) {
			err = fmt.Errorf("faults: run in a child process: %w", err)
		}
	}()
	self, err := os.Executable()
	if runtime.GOOS == "linux" {
		self, err = "/proc/self/exe", nil // the same program, also after its file was replaced
	}
	plan, failed := json.Marshal(p.plan)
	if err = errors.Join(err, failed); err != nil {
		return how, err
	}
	file, err := os.CreateTemp("", "halox-child-*")
	if err != nil {
		return how, err
	}
	defer os.Remove(file.Name()) // the child has usually removed it
	defer file.Close()
	var out bytes.Buffer
	cmd := exec.Command(self, p.call.Args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), reportVariable+"="+file.Name())
	stdout, stderr, isJSON := p.call.Streams()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if isJSON { // of the last child only
		cmd.Stdout = &out
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return how, err
	}
	if err = p.begin(cmd, stdin, append(plan, '\n')); err != nil {
		return how, err
	}
	err = cmd.Wait()
	p.mu.Lock()
	p.stdin, how.told = nil, p.told
	p.mu.Unlock()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return how, err
	}
	how.exit, how.state, how.output = cmd.ProcessState.ExitCode(), cmd.ProcessState.String(), out.Bytes()
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
	case how.Code == command.Diverged:
		what = "the solution diverged"
	default:
		return nil, ""
	}
	return f, what
}

// next prepares a restart after the end of a child. If there is none, it returns the error of the command.
func (p *parent) next(how ending) (again bool, err error) {
	if how.Devices != nil {
		p.devices = how.Devices
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
	step, whole := p.options.Checkpoint()
	fault.Step, fault.Devices = max(step, fault.Step), names(p.devices)
	v := p.judge.next(*fault, how.Devices != nil, p.devices, how.Lost)
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
	p.devices = without(p.devices, v.without)
	fault.Left = names(p.devices)
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
