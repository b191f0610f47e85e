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
	asked    []*imageAhead          // since Ready
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

// Wait waits until all is compiled and loaded, or until something comes over a channel, such as that of time.After. It
// reports whether all is.
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
		a.loading.Lock() // what is being loaded is loaded soon, and nothing is after that
		a.loading.Unlock()
	}
	return false
}

// Ready reports whether all programs are compiled, or failed to, that were asked for since it was called last. Who uses
// the compiler may call it.
func (a *Ahead) Ready() bool {
	asked := a.asked
	a.asked = nil
	return !slices.ContainsFunc(asked, func(image *imageAhead) bool {
		select {
		case <-image.done:
			return false
		default:
			return true
		}
	})
}

// Stop begins nothing more, and waits for what has begun.
func (a *Ahead) Stop() {
	a.stop()
	a.Wait(nil)
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
