package ranks

import (
	"context"
	"fmt"
)

// agree has all processes fail where one does.
func (w *World) agree(what string, err error) error {
	if w.remote == nil {
		return err
	}
	return w.remote.processes.Agree(context.Background(), fmt.Sprintf("ranks: %s: %s", w.program.Name, what), err)
}

// gather returns what each process has given, by rank, unless one has failed.
func (w *World) gather(what string, mine []byte, err error) ([][]byte, error) {
	if w.remote == nil {
		return [][]byte{mine}, err
	}
	if err := w.agree(what, err); err != nil {
		return nil, err
	}
	return w.remote.processes.Gather(context.Background(), fmt.Sprintf("ranks: %s: %s", w.program.Name, what), mine)
}
