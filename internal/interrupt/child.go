package interrupt

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// request is the message of Pass for a request, see OnRequest. The others are numbers of signals.
const request = 0

// Pass gives the signals and requests that this process gets to send, as messages for Take in a child process, until
// stop is called. Signals to stop then do not end the command.
func Pass(ctx context.Context, send func(message byte, stops bool)) (stop func()) {
	pass := func(to func(os.Signal)) { change(ctx, func(w *Watch) { w.pass = to }) }
	pass(func(s os.Signal) {
		if n, ok := s.(syscall.Signal); ok {
			send(byte(n), true)
		}
	})
	requests := OnRequest(func() { send(request, false) })
	return func() {
		requests()
		pass(nil)
	}
}

// Take makes a command take signals and requests from its parent process, see Pass, and no others: a terminal and some
// launchers send theirs to both. The end of the parent counts as SIGTERM.
func Take(ctx context.Context, parent io.Reader) {
	ignored := make(chan os.Signal, 1) // nothing reads it
	signal.Notify(ignored, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	take := takeRequests(ignored)
	change(ctx, func(w *Watch) {
		signal.Stop(w.signals)
		go func() {
			for b := make([]byte, 1); ; {
				_, err := io.ReadFull(parent, b)
				switch {
				case err != nil:
					w.signals <- syscall.SIGTERM
					return
				case b[0] == request:
					take()
				default:
					w.signals <- syscall.Signal(b[0])
				}
			}
		}()
	})
}
