//go:build linux

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/mpi"
)

// action is struct sigaction of Linux.
type action struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

func actions() (all [65]action, err error) {
	for n := 1; n < len(all); n++ {
		if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&all[n])), 8, 0, 0); e != 0 {
			return all, e
		}
		if h := all[n].handler; h <= 1 { // SIG_DFL or SIG_IGN, where nothing else counts: Notify and Stop of Go change that
			all[n] = action{handler: h}
		}
	}
	return all, nil
}

// signals compares what the process does on signals before and after each step, and then has
// some of them sent.
func signals() error {
	before, err := actions()
	if err != nil {
		return err
	}
	same := func(after string) error {
		now, err := actions()
		for n := range now {
			if now[n] != before[n] {
				err = errors.Join(err, fmt.Errorf("%s: %v: %+v, before %+v", after, syscall.Signal(n), now[n], before[n]))
			}
		}
		return err
	}
	l, _, err := open()
	if err := errors.Join(err, same("Open")); err != nil {
		return err
	}
	ctx := context.Background()
	c, err := l.Init(ctx, limit)
	if err := errors.Join(err, same("Init")); err != nil {
		return err
	}
	if err := errors.Join(exchanges(c), same("exchanges"), faults(), caught()); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d done, %s\n", c.Rank(), c.Size(), l.Family)
	return errors.Join(c.Free(), l.Finalize(ctx, limit), same("Finalize"))
}

// faults has Go recover from a fault, which is a signal.
func faults() (err error) {
	defer func() {
		if recover() == nil {
			err = errors.New("a fault was no panic")
		}
	}()
	var nothing *mpi.Comm
	_ = nothing.Size()
	return nil
}

// caught has signals sent that MPI libraries like to take.
func caught() error {
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD} {
		came := make(chan os.Signal, 1)
		signal.Notify(came, s)
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			return err
		}
		select {
		case <-came:
		case <-time.After(limit):
			return fmt.Errorf("%v did not come", s)
		}
		signal.Stop(came)
	}
	return nil
}
