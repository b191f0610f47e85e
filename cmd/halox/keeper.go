package main

import "fmt"

// keeper returns what writes the record, if one is wanted, of a run that is ended by force, after
// complete has put in what it lacks.
func (j *solverRun) keeper(r *record, complete func()) func() string {
	return func() string {
		name := j.config.Output.Record
		if name == "" || !j.writes() {
			return ""
		}
		if complete != nil {
			complete()
		}
		r.Interrupted = true
		r.Add(r.RunRow())
		if err := r.Write(name); err != nil {
			return fmt.Sprintf("; there is no record: %v", err)
		}
		return fmt.Sprintf("; %s tells of the %d steps until then", name, r.run.Iterations)
	}
}
