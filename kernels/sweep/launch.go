package sweep

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/halox/halox/streams"
)

// Launch is a sweep made ready. It is launched any number of times; each takes the moment and the
// parameters that were set last, by the thread that launches.
type Launch struct {
	*streams.Kernel
	plan  *plan
	frame []byte // in the argument
}

// SetMoment sets that of launches to come. It allocates nothing.
func (l *Launch) SetMoment(m Moment) { putMoment(l.frame, m) }

// putMoment puts struct Moment of site.cuh.
func putMoment(frame []byte, m Moment) {
	binary.NativeEndian.PutUint64(frame, uint64(m.Step))
	binary.NativeEndian.PutUint64(frame[8:], math.Float64bits(m.Start))
	binary.NativeEndian.PutUint64(frame[16:], math.Float64bits(m.Length))
}

// SetParameters sets those of launches to come: p points to a struct of the type of
// Point.Parameters. It allocates nothing.
func (l *Launch) SetParameters(p any) error {
	t := parametersType(l.plan.point.Parameters)
	if given := reflect.TypeOf(p); t == nil || given == nil || given.Kind() != reflect.Pointer || given.Elem() != t {
		return fmt.Errorf("sweep: point function %q takes parameters by a pointer to %v, not %T", l.plan.point.Name, t, p)
	}
	if reflect.ValueOf(p).IsNil() {
		return fmt.Errorf("sweep: point function %q: the pointer to its parameters, a %T, is nil", l.plan.point.Name, p)
	}
	copy(l.frame[frameNumbers*8:], unsafe.Slice((*byte)(reflect.ValueOf(p).UnsafePointer()), t.Size()))
	return nil
}
