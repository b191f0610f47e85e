package kernels

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/halox/halox/streams"
)

// Ahead compiles programs, and loads them on their devices, before they are needed: in the background,
// concurrently, in the order of the requests. Code that prepares everything on devices of a streams.DryRun with
// the compiler of an Ahead requests all programs without waiting. Errors of compilation and loading are returned
// when the compiler itself is asked for the program.
//
// Only one goroutine may use the compiler. Wait or Stop must return before the devices are closed.
type Ahead struct {
	ctx      context.Context // ends everything
	stopping context.Context // ends what has not begun
	stop     context.CancelFunc
	compiler *Compiler
	images   map[string]*imageAhead // by program and generation
	modules  map[string]bool        // by program and device
	asked    []*imageAhead          // requested since Asked
	group    sync.WaitGroup
	loading  sync.RWMutex // read-locked while a module is being loaded
}

// imageAhead is a program that is being compiled.
type imageAhead struct {
	done chan struct{} // closed when it is compiled, or has failed
	ok   bool
}

// Ahead returns an Ahead of the compiler. When the context ends, nothing more is begun, and compilations in
// progress are not waited for.
func (c *Compiler) Ahead(ctx context.Context) *Ahead {
	a := &Ahead{ctx: ctx, images: map[string]*imageAhead{}, modules: map[string]bool{}}
	a.stopping, a.stop = context.WithCancel(ctx)
	if c != nil { // a nil compiler returns an error when used
		a.compiler = &Compiler{c.compiled, a.load}
	}
	return a
}

// Compiler returns the compiler for the dry run. Its functions are those of streams.DryFunction.
func (a *Ahead) Compiler() *Compiler { return a.compiler }

// Wait waits until all programs are compiled and loaded, or until it receives from late, for example the channel of
// time.After. It reports whether all are loaded.
func (a *Ahead) Wait(late <-chan time.Time) bool {
	ended := make(chan struct{})
	go func() {
		a.group.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-late:
	case <-a.ctx.Done():
		a.loaded()
	}
	return false
}

// loaded waits for modules that are being loaded, which takes a short time. After the context has ended, no more
// modules are loaded.
func (a *Ahead) loaded() {
	a.loading.Lock()
	defer a.loading.Unlock()
}

// Asked returns a function that reports whether the programs requested since the last call of Asked are all compiled or
// have failed. Only the goroutine that uses the compiler may call Asked.
func (a *Ahead) Asked() (ready func() bool) {
	asked := a.asked
	a.asked = nil
	return func() bool {
		return !slices.ContainsFunc(asked, func(image *imageAhead) bool {
			select {
			case <-image.done:
				return false
			default:
				return true
			}
		})
	}
}

// Stop starts no more compilations and loads no more modules. It does not wait for compilations in progress: their
// results stay in the compiler, see Compiler.Close.
func (a *Ahead) Stop() {
	a.stop()
	a.loaded()
}

// load begins to compile a program and to load it on the real device of a device of a dry run.
func (a *Ahead) load(d *streams.Device, p Program, names []string) ([]streams.Function, error) {
	if !d.IsDry() {
		return nil, fmt.Errorf("kernels: ahead: device must be one of a dry run, got %v", d)
	}
	d = d.Real()
	key := d.Arch + " " + p.key()
	image := a.images[key]
	if image == nil {
		image = &imageAhead{done: make(chan struct{})}
		a.images[key] = image
		a.group.Go(func() {
			defer close(image.done)
			select {
			case a.compiler.cores <- struct{}{}:
				defer func() { <-a.compiler.cores }()
			case <-a.stopping.Done():
			}
			if a.stopping.Err() == nil {
				_, err := a.compiler.image(p, d.Arch)
				image.ok = err == nil
			}
		})
	}
	a.asked = append(a.asked, image)
	if place := fmt.Sprintf("%p %s", d, key); !a.modules[place] {
		a.modules[place] = true
		a.group.Go(func() {
			<-image.done
			a.loading.RLock()
			defer a.loading.RUnlock()
			if image.ok && a.stopping.Err() == nil {
				_, _ = a.compiler.module(d, p)
			}
		})
	}
	found := make([]streams.Function, len(names))
	for i := range found {
		found[i] = streams.DryFunction()
	}
	return found, nil
}
