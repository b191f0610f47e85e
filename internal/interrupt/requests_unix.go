//go:build unix

package interrupt

import (
	"os"
	"os/signal"
	"syscall"
)

// OnRequest calls do, from another goroutine, at each signal SIGUSR1 until stop is called.
func OnRequest(do func()) (stop func()) {
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for {
			select {
			case <-signals:
				do()
			case <-ended:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(ended)
	}
}

// takeRequests makes all signals for requests go to ignored, except those that the returned function sends.
func takeRequests(ignored chan os.Signal) (take func()) {
	signal.Notify(ignored, syscall.SIGUSR1)
	return func() { _ = syscall.Kill(os.Getpid(), syscall.SIGUSR1) }
}
