//go:build !unix

package interrupt

import "os"

// OnRequest does nothing: these systems have no signal for requests.
func OnRequest(func()) (stop func()) { return func() {} }

// takeRequests does nothing.
func takeRequests(chan os.Signal) (take func()) { return func() {} }
