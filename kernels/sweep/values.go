package sweep

import (
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// maxParameters is the largest number of bytes of parameters, which are in the argument of a launch.
const maxParameters = 1024

// Values computes the parameters of a Formula, Form.Values, in float64, and rounds them once to the type of the fields.
// It is safe for concurrent use.
type Values struct {
	form   *stencil.Form
	layout reflect.Type
	part   float64

	mutex   sync.Mutex
	scalars *stencil.Scalars
	found   []float64
}

// NewValues prepares the values of a form that is evaluated at the given fraction of the step, from 0 to 1.
func NewValues(f *stencil.Form, real domain.Element, c stencil.Coordinates, part float64) *Values {
	return &Values{form: f, layout: valuesType(f, real), part: part, scalars: f.NewScalars(c),
		found: make([]float64, len(f.Values))}
}

// Give sets the values for a step. It has type Give.
func (v *Values) Give(m Moment, p any) error {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	to := reflect.ValueOf(p).Elem()
	v.scalars.Set("dt", m.Length)
	v.scalars.Set("step", float64(m.Step))
	for i, name := range v.form.Variables {
		v.scalars.Set(name, to.Field(1).Index(i).Float())
	}
	v.scalars.Compute(v.found, m.Time(v.part))
	for i, x := range v.found {
		to.Field(0).Index(i).SetFloat(x)
	}
	return nil
}

// Parameters returns the parameters of a Formula, given values for Form.Variables by name.
func (v *Values) Parameters(variables map[string]float64) any {
	p := reflect.New(v.layout)
	for i, name := range v.form.Variables {
		p.Elem().Field(1).Index(i).SetFloat(variables[name])
	}
	_ = v.Give(Moment{Step: 1}, p.Interface())
	return p.Interface()
}

// valuesType returns the struct type of the parameters of a Formula.
func valuesType(f *stencil.Form, real domain.Element) reflect.Type {
	number, wide := reflect.TypeFor[float64](), reflect.TypeFor[float64]()
	if real == domain.Float32 {
		number = reflect.TypeFor[float32]()
	}
	fields := []reflect.StructField{{Name: "Values", Type: reflect.ArrayOf(len(f.Values), number)}}
	if n := len(f.Variables); n > 0 {
		fields = append(fields, reflect.StructField{Name: "Variables", Type: reflect.ArrayOf(n, wide)})
	}
	return reflect.StructOf(fields)
}

// CheckFormula returns an error if a form has more values than a launch can be passed.
func CheckFormula(f *stencil.Form, real domain.Element) error {
	if n := len(f.Values); n > 0 && valuesType(f, real).Size() > maxParameters {
		return fmt.Errorf("must have at most %d different expressions of the time or of variable parameters, "+
			"minus the number of these parameters, got %d", maxParameters/real.Size(), n)
	}
	return nil
}

// bits returns the bits of v, which distinguish 0 from -0.
func bits[T rows.Float](v T) uint64 { return math.Float64bits(float64(v)) }
