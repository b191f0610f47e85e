package ranks

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/halox/halox/p2p/mpi"
)

// ending is how a run has ended at a process, as it tells the others.
type ending struct {
	Text              string // of the error; "" where there is none
	Timeout, Argument bool
	Code              *codeEnding
}

// codeEnding is a CodeError.
type codeEnding struct {
	Rank         int
	Device       string
	Code, Detail int64
}

// deviceName names a device of another process.
type deviceName string

func (d deviceName) String() string { return string(d) }

// elsewhereError is the error of a run at another process. It wraps what errors of runs here wrap.
type elsewhereError struct {
	*mpi.RemoteError
	is []error
}

func (e *elsewhereError) Unwrap() []error { return append([]error{e.RemoteError}, e.is...) }

// endTogether returns the errors that a run has ended with on all processes, nil where all went well.
func (w *World) endTogether(mine error) error {
	if w.remote == nil {
		return mine
	}
	p := w.remote.processes
	if first := p.Err(); first != nil {
		if errors.Is(mine, first) {
			return mine
		}
		return errors.Join(ofHere(mine), first)
	}
	var sent bytes.Buffer
	if err := gob.NewEncoder(&sent).Encode(endingOf(mine)); err != nil {
		return errors.Join(ofHere(mine), p.Fail(err))
	}
	all, err := p.Gather(context.Background(), fmt.Sprintf("ranks: %s: end a run", w.program.Name), sent.Bytes())
	if err != nil {
		return errors.Join(ofHere(mine), err)
	}
	errs := []error{ofHere(mine)}
	for rank, one := range all {
		if rank == p.Rank {
			continue
		}
		var e ending
		if err := gob.NewDecoder(bytes.NewReader(one)).Decode(&e); err != nil {
			return errors.Join(ofHere(mine), p.Fail(err))
		}
		if e.Text != "" {
			errs = append(errs, w.elsewhere(rank, e))
		}
	}
	if err := errors.Join(errs...); err != nil || mine == nil {
		return err
	}
	return mine
}

// ofHere returns an error, or nil if it only says that another process has one.
func ofHere(err error) error {
	if err == errElsewhere {
		return nil
	}
	return err
}

func endingOf(err error) (e ending) {
	if err == nil || err == errElsewhere {
		return e
	}
	e = ending{Text: err.Error(), Timeout: errors.Is(err, ErrTimeout), Argument: errors.Is(err, ErrArgument)}
	if code, ok := errors.AsType[*CodeError](err); ok {
		e.Code = &codeEnding{code.Rank, code.Device.String(), code.Code, code.Detail}
	}
	return e
}

// elsewhere is the error of another process.
func (w *World) elsewhere(rank int, e ending) error {
	err := &elsewhereError{RemoteError: &mpi.RemoteError{Rank: rank, Host: w.remote.processes.Hosts[rank], Text: e.Text}}
	if e.Timeout {
		err.is = append(err.is, ErrTimeout)
	}
	if e.Argument {
		err.is = append(err.is, ErrArgument)
	}
	if c := e.Code; c != nil {
		err.is = append(err.is, &CodeError{c.Rank, deviceName(c.Device), c.Code, c.Detail, w.program.Errors[c.Code]})
	}
	return err
}
