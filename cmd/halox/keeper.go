package main

import (
	"context"
	"fmt"
	"os"

	"github.com/halox/halox/results"
)

// keeper returns what writes the record of a run as it is, if one is wanted, after complete has put in what it lacks.
func (j *solverRun) keeper(of *record, complete func(run *results.Run)) func() string {
	return func() string {
		name := j.config.Output.Record
		if name == "" || !j.writes() {
			return ""
		}
		r := of.clone()
		if complete != nil {
			complete(r.run)
		}
		r.Interrupted = true
		r.Add(r.RunRow())
		if err := r.Write(name); err != nil {
			return fmt.Sprintf("; there is no record: %v", err)
		}
		return fmt.Sprintf("; %s tells of the %d steps until then", name, r.run.Iterations)
	}
}

// keepEarly has a run of several processes keep what there is as soon as its context ends, until the function is called that it returns:
// their launcher may kill them soon after the signal, mpirun of Open MPI 5 after a quarter of a second. A pipe gets one record, at the end.
func (j *solverRun) keepEarly(ctx context.Context, keep func() string) (end func()) {
	if j.place.Processes.IsAlone() {
		return func() {}
	}
	if info, err := os.Stat(j.config.Output.Record); err == nil && !info.Mode().IsRegular() {
		return func() {}
	}
	kept := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		keep()
		close(kept)
	})
	return func() {
		if !stop() {
			<-kept
		}
	}
}
