package solve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// InFolder is the value of --restart without a folder: that of the config.
const InFolder = "the folder of the config"

// Restarted returns the newest whole checkpoint in the folder of --restart, and the config that continues from it.
// read reads the config with more overrides.
func Restarted(
	ctx context.Context, folder string, p *mpi.Processes, c *configs.Run, notes io.Writer,
	read func(set ...string) (*configs.Run, error),
) (*Restart, *configs.Run, error) {
	named := folder != InFolder
	switch {
	case folder == "":
		return nil, c, nil
	case !named && c.Checkpoint == nil:
		return nil, c, command.As(command.Usage, errors.New("--restart: must name a folder, or the config must have "+
			"checkpoint.folder"))
	case !named:
		folder = c.Checkpoint.Folder
	}
	interrupt.During(ctx, "reading the checkpoint", nil)
	interrupt.Limit(ctx, interrupt.None)
	saved, rejected, err := checkpoint.Find(ctx, p, folder)
	for _, reason := range rejected {
		fmt.Fprintln(notes, reason)
	}
	if errors.Is(err, checkpoint.ErrNone) && !named {
		fmt.Fprintf(notes, "%s has no checkpoint: the run starts from the beginning\n", folder)
		return nil, c, nil
	}
	from := &Restart{Checkpoint: saved}
	if err == nil {
		err = cmp.Or(saved.Attributes(&from.run), from.run.Check(saved.Path))
	}
	if err != nil {
		return nil, c, command.As(command.Config, fmt.Errorf("--restart: %w", err))
	}
	old, _ := from.run.Config.(map[string]any)
	stop, _ := old["stop"].(map[string]any)
	for _, section := range []string{"time", "heat"} {
		steps, _ := old[section].(map[string]any)
		if dt, ok := steps["dt"].(float64); ok && dt != c.TimeStep() && cmp.Or(stop["time"], any(0.0)) != c.Stop.Time {
			// steps of the same length, which another stop.time changes
			if c, err = read(section + ".dt=" + strconv.FormatFloat(dt, 'g', -1, 64)); err != nil {
				return nil, c, err
			}
		}
	}
	if err := differences(old, c); err != nil {
		return nil, c, command.As(command.Config, fmt.Errorf("--restart: %s: %w", saved.Path, err))
	}
	fmt.Fprintf(notes, "continuing from step %d: %s\n", saved.Step, saved.Path)
	if most := c.Stop.Iterations; saved.Step > int64(most) {
		fmt.Fprintf(notes, "stop.iterations: must be more than %d to run further steps, got %d\n", saved.Step, most)
	}
	return from, c, nil
}

// Check returns an error unless the hash of the grid is that of the config, so that both are of one run.
func (g Grid) Check(path string) error {
	want, err := gridHash(g.Config)
	if g.GridHash == "" || err == nil && g.GridHash == want {
		return nil
	}
	return cmp.Or(err, fmt.Errorf("checkpoint: %s: attributes: grid_hash: must be %s for the grid of their config, got %s: "+
		"they are of another run", path, want, g.GridHash))
}

// gridHash returns the start of the SHA-256 of the sizes, the spacing, the periodic axes and the precision of a config,
// or of its tree.
func gridHash(config any) (string, error) {
	type faces map[string]any
	var c struct {
		Grid struct {
			Size    []int
			Spacing []float64
		}
		Precision string
		Boundary  faces
		Fields    map[string]struct{ Boundary faces }
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	periodic := make([]bool, len(c.Grid.Size))
	for axis := range periodic {
		face := "xyz"[axis:axis+1] + "-"
		periodic[axis] = c.Boundary[face] == "periodic"
		for _, f := range c.Fields { // all alike
			periodic[axis] = f.Boundary[face] == "periodic"
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %v %v %s", c.Grid.Size, c.Grid.Spacing, periodic, c.Precision))
	return hex.EncodeToString(sum[:8]), err
}

// mayDiffer are the sections of a config that a restart may change.
var mayDiffer = []string{"stop", "output", "devices", "decomposition", "exchange", "checkpoint", "faults"}

// differences returns an error that names the keys of a config which a restart must not change, but has changed.
func differences(saved map[string]any, now *configs.Run) error {
	var tree map[string]any
	text, err := json.Marshal(now)
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err != nil {
		return err
	}
	for _, section := range mayDiffer {
		delete(saved, section)
		delete(tree, section)
	}
	names := different(saved, tree)
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: must be as in the checkpoint: only %s may change", strings.Join(names, ", "),
		strings.Join(mayDiffer, ", "))
}

// different returns the paths of the keys with different values in two trees, sorted.
func different(a, b map[string]any) (names []string) {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		below, tree := a[key].(map[string]any)
		other, both := b[key].(map[string]any)
		switch {
		case tree && both:
			for _, name := range different(below, other) {
				names = append(names, key+"."+name)
			}
		case !reflect.DeepEqual(a[key], b[key]):
			names = append(names, key)
		}
	}
	return names
}

// saver writes the checkpoints of a run; nil for a run without them.
type saver struct {
	*checkpoint.Writer
	run    *Run
	event  *scheme.Event
	record *results.Run
	keep   func() string // writes the record as it is
	stops  []func()
	every  time.Duration // between checkpoints
	due    *time.Timer   // of the next one; nil without checkpoint.every.minutes
}

// newSaver prepares the checkpoints of a run. close ends them.
func (s *Run) newSaver(ctx context.Context, record *results.Record) (*saver, error) {
	c := s.config.Checkpoint
	if c == nil {
		return nil, nil
	}
	o := checkpoint.Options{
		Folder: c.Folder, Keep: c.Keep, Compress: checkpoint.Compression(c.Compress), Fatal: c.OnError == "stop",
		Report: func(status checkpoint.Status) {
			switch {
			case !s.writes():
			case status.Err != nil:
				command.Of(ctx).Warn(fmt.Errorf("checkpoint: %w", status.Err))
			default:
				s.log(ctx).Info("checkpoint", "step", status.Step, "path", status.Path, "bytes", status.Bytes)
			}
		},
	}
	if s.from != nil {
		o.Run = s.from.Run
	}
	w, err := checkpoint.NewWriter(ctx, o, s.solver.State()...)
	if errors.Is(err, checkpoint.ErrOtherRun) {
		err = fmt.Errorf("checkpoint.folder: %w; halox run --restart continues from them", err)
	}
	if err != nil {
		return nil, command.As(command.Config, err)
	}
	v := &saver{Writer: w, run: s, record: record.Run, keep: s.recordWriter(record, nil)}
	v.event = &scheme.Event{Name: "write a checkpoint"}
	v.event.Do = v.write
	s.also = func() string {
		if status := w.Status(); status.Step >= 0 {
			return fmt.Sprintf("last checkpoint at step %d", status.Step)
		}
		return ""
	}
	if c.Every.Steps > 0 {
		v.event.Next = scheme.Every(int64(c.Every.Steps))
	}
	if c.Every.Minutes > 0 {
		v.every = time.Duration(c.Every.Minutes * float64(time.Minute))
		v.due = time.AfterFunc(v.every, v.event.Request)
		v.stops = append(v.stops, func() { v.due.Stop() })
	}
	v.stops = append(v.stops, interrupt.OnRequest(v.event.Request))
	return v, nil
}

// events returns the event of checkpoints.
func (v *saver) events() []*scheme.Event {
	if v == nil {
		return nil
	}
	return []*scheme.Event{v.event}
}

// write begins a checkpoint of the steps so far.
func (v *saver) write(ctx context.Context, so scheme.Result) error {
	s := v.run
	if v.due != nil {
		v.due.Reset(v.every)
	}
	hash, err := gridHash(s.config)
	if err != nil {
		return err
	}
	saved := savedRun{Grid: Grid{s.config, hash}, Halox: Program(), Step: so.Step, Length: so.Length,
		StartMeasures: v.record.StartMeasures, History: s.history(so.History)}
	if s.config.Solver != configs.SolverLaplace {
		saved.Time = s.solver.Time()
	}
	if all := s.solver.Statistics; all != nil {
		saved.Samples = all.Samples()
	}
	err = v.Write(ctx, so.Step, saved, s.solver.State()...)
	v.note()
	return err
}

// note adds the checkpoints so far to the record.
func (v *saver) note() {
	status := v.Status()
	v.record.Checkpoints = &results.Checkpoints{Folder: v.run.config.Checkpoint.Folder, Written: status.Written,
		Skipped: status.Skipped, Failed: status.Failed, Waited: status.Waited, Bytes: status.Bytes,
		Seconds: results.Number(status.Took.Seconds())}
	if status.Step >= 0 {
		v.record.Checkpoints.Step = &status.Step
	}
}

// last writes a checkpoint of the last step, unless there is one, and waits for it; for an interrupted run no longer
// than checkpoint.grace.
func (v *saver) last(ctx context.Context, so scheme.Result) (err error) {
	if v == nil {
		return nil
	}
	interrupt.During(ctx, "writing the last checkpoint", v.keep)
	interrupt.Limit(ctx, interrupt.None)
	limited, grace := context.WithoutCancel(ctx), v.run.config.Checkpoint.Limit()
	if ctx.Err() != nil || so.Stopped == scheme.Stopped(results.StopWallTime) {
		var ended context.CancelFunc
		limited, ended = context.WithTimeout(limited, grace)
		defer ended()
	}
	place, step := v.run.Place, v.run.solver.Done()
	for _, next := range []func() error{
		func() error { return v.Wait(limited) },
		func() error {
			if so.Step = step; v.Status().Step == step {
				return nil
			}
			return v.write(limited, so)
		},
		func() error { return v.Wait(limited) },
	} {
		if err = place.Agree(context.WithoutCancel(ctx), "write the last checkpoint", next()); err != nil {
			break
		}
	}
	v.note()
	if errors.Is(err, context.DeadlineExceeded) || limited.Err() != nil && err != nil {
		err = command.As(command.NotSaved, fmt.Errorf("checkpoint.grace: the last checkpoint was not written within %v; "+
			"the newest whole one is %s", grace, cmp.Or(v.Status().Path, "an older one, or none")))
	}
	return err
}

// close waits for a checkpoint that is being written.
func (v *saver) close(ctx context.Context) error {
	if v == nil {
		return nil
	}
	for _, stop := range v.stops {
		stop()
	}
	err := v.Close(context.WithoutCancel(ctx)) // last has waited for it
	v.note()
	return err
}
