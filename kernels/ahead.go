package kernels

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/halox/halox/streams"
)

// Ahead has programs compiled, and loaded on their devices, before they are needed: in the
// background and side by side, in the order in which they are asked for. Who makes all ready on
// devices of a streams.DryRun with its compiler has told what it will need, and has waited for
// nothing. What cannot be compiled or loaded the compiler says that it is of, when that is asked.
//
// One goroutine may use the compiler. Wait or Stop must have returned before the devices are
// closed.
type Ahead struct {
	ctx      context.Context // ends all
	stopping context.Context // ends what has not begun
	stop     context.CancelFunc
	compiler *Compiler
	images   map[string]*imageAhead // by program and generation
	modules  map[string]bool        // by program and device
	asked    []*imageAhead          // since Asked
	group    sync.WaitGroup
	loading  sync.RWMutex // read while a module is being loaded
}

// imageAhead is a program that is being compiled.
type imageAhead struct {
	done chan struct{} // closed when it is, or when that failed
	ok   bool
}

// Ahead returns one. When the context ends, nothing more is begun, and what is being compiled is not
// waited for.
func (c *Compiler) Ahead(ctx context.Context) *Ahead {
	a := &Ahead{ctx: ctx, images: map[string]*imageAhead{}, modules: map[string]bool{}}
	a.stopping, a.stop = context.WithCancel(ctx)
	if c != nil { // else who uses it is told so
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

// loaded waits for modules that are being loaded, which takes a short time. After the context has ended, no more are
// loaded.
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
// results stay in the compiler.
func (a *Ahead) Stop() {
	a.stop()
	a.loaded()
}

// load begins to compile a program and to load it on the device that one of a dry run stands for.
func (a *Ahead) load(d *streams.Device, p Program, names []string) ([]streams.Function, error) {
	if !d.IsDry() {
		return nil, fmt.Errorf("kernels: ahead of a dry run, on device %v, which is a real one", d)
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
