package solvers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// A stageMaker adds the stages of a step to a system.
type stageMaker struct {
	sheet   *stencil.Sheet
	system  *system
	element domain.Element
	dt      float64
	paced   bool  // the length of a step may change: it is not dt
	next    []int // array that holds each field after a step
	before  []int // array that holds each field one step before, with accelerations
	stored  []storedFormula
	failed  error // first error of a stage
}

// A storedFormula is computed before the stages that read its array.
type storedFormula struct {
	array, formula int
	reads          []int // indices of the stored formulas that it reads, all before it
	depth          int   // length of the longest chain of stored formulas that it reads
}

// integrate adds the stages of an integrator, given the rate of each field.
func (m *stageMaker) integrate(name Integrator, rates []int) {
	var slots [4][]int   // arrays by field
	var times [4]float64 // times of slots, in steps
	for i := range rates {
		slots[0], slots[1] = append(slots[0], i), append(slots[1], m.next[i])
	}
	for _, st := range integrators[name].stages {
		if slots[st.to] == nil {
			slots[st.to] = m.stageArrays(st.to)
		}
		from := map[int]int{}
		for i, array := range slots[st.from] {
			from[i] = array
		}
		var formulas []int
		for i, rate := range rates {
			u := m.sheet.Read(i)
			all := u
			for k, part := range st.parts {
				if part != 0 {
					all = m.sheet.Plus(all, part, m.sheet.Minus(m.sheet.Read(slots[k][i]), u))
				}
			}
			if rate = m.sheet.Replace(rate, from); m.paced {
				formulas = append(formulas, m.sheet.Plus(all, 1, m.sheet.Lengths(st.rate, rate)))
			} else {
				formulas = append(formulas, m.sheet.Plus(all, st.rate*m.dt, rate))
			}
		}
		m.stage(formulas, slots[st.to], from, times[st.from], st.time)
		times[st.to] = st.time
	}
}

// leapfrog adds the stages of the leapfrog method, given the acceleration of each field. It also adds the start stages,
// which compute the fields one step before the start from the rates stored there: u - dt*rate + dt^2/2*f. This makes
// the first step second order as well.
func (m *stageMaker) leapfrog(accelerations []int) {
	dt, s := m.dt, m.system
	var steps, starts []int
	for i, f := range accelerations {
		u, before := m.sheet.Read(i), m.sheet.Read(m.before[i])
		steps = append(steps, m.sheet.Plus(u, 1, m.sheet.Plus(m.sheet.Minus(u, before), dt*dt, f)))
		starts = append(starts, m.sheet.Plus(m.sheet.Plus(u, -dt, before), dt*dt/2, f))
	}
	m.stage(starts, m.next, nil, 0, 1)
	s.start, s.stages = s.stages, nil
	m.stage(steps, m.next, nil, 0, 1)
}

// update adds stages that compute new values of fields; each stage maps fields to formulas. A stage reads what earlier
// stages wrote and never writes to an array that it reads. The last stage that writes a field writes to its array for
// the end of the step.
func (m *stageMaker) update(stages []map[int]int) {
	now, left := map[int]int{}, map[int]int{} // current array of a field, and number of remaining stages that write it
	for _, formulas := range stages {
		for field := range formulas {
			left[field]++
		}
	}
	others := map[int]int{}
	for _, byField := range stages {
		var formulas, to []int
		next := maps.Clone(now)
		for _, field := range slices.Sorted(maps.Keys(byField)) {
			left[field]--
			array := m.next[field]
			if left[field]%2 == 1 {
				if _, ok := others[field]; !ok {
					others[field] = m.stageArray(field, 2)
				}
				array = others[field]
			}
			next[field] = array
			formulas, to = append(formulas, m.sheet.Replace(byField[field], now)), append(to, array)
		}
		m.stage(formulas, to, now, 0, 1)
		now = next
	}
}

// stageArrays adds one array per field.
func (m *stageMaker) stageArrays(slot int) (all []int) {
	for field := range m.system.named {
		all = append(all, m.stageArray(field, slot))
	}
	return all
}

// stageArray adds a variable for the result of a stage for a field, with the walls of the field.
func (m *stageMaker) stageArray(field, slot int) int {
	s, of := m.system, m.system.fields[field]
	s.fields = append(s.fields, systemField{name: fmt.Sprintf("%s.%d", of.name, slot), initial: zero, walls: of.walls})
	return m.array(len(s.fields)-1, 0)
}

var zero, _ = stencil.Parse("0")

// array declares an array.
func (m *stageMaker) array(variable, level int) int {
	m.system.arrays = append(m.system.arrays, array{variable, level})
	return m.sheet.Array()
}

// store declares a stored formula with a name and walls.
func (m *stageMaker) store(name string, walls [6]Condition) error {
	array := m.array(len(m.system.fields), 0)
	m.system.fields = append(m.system.fields, systemField{name: name, initial: zero, walls: walls})
	m.stored = append(m.stored, storedFormula{array: array})
	return m.sheet.Name(name, array)
}

// define sets the formula of a stored name. The formula may read stored names declared before it.
func (m *stageMaker) define(which, formula int) error {
	to := &m.stored[which]
	to.formula, to.reads = formula, m.storedIn(formula)
	for _, other := range to.reads {
		if other >= which {
			return fmt.Errorf("must not use %s, which is defined by it or after it",
				m.system.fields[m.system.arrays[m.stored[other].array].variable].name)
		}
		to.depth = max(to.depth, m.stored[other].depth+1)
	}
	return nil
}

// storedIn returns the indices of the stored formulas that the given formulas read.
func (m *stageMaker) storedIn(formulas ...int) (all []int) {
	fields := m.sheet.Form(formulas...).Fields
	for i, of := range m.stored {
		if len(fields[of.array]) > 0 {
			all = append(all, i)
		}
	}
	return all
}

// stage adds a stage that evaluates formulas at time begins of the step and stores them in arrays at a later time.
// Before it, stage adds stages for the stored formulas that it reads. replaced maps arrays to the arrays that are read
// instead.
func (m *stageMaker) stage(formulas, arrays []int, replaced map[int]int, begins, time float64) {
	needed := map[int]bool{}
	for _, i := range m.storedIn(formulas...) {
		needed[i] = true
	}
	for i, of := range slices.Backward(m.stored) { // each formula reads only those before it
		for _, other := range of.reads {
			needed[other] = needed[other] || needed[i]
		}
	}
	for depth := range m.stored {
		var stored, to []int
		for i, of := range m.stored {
			if needed[i] && of.depth == depth {
				stored, to = append(stored, m.sheet.Replace(of.formula, replaced)), append(to, of.array)
			}
		}
		if len(stored) > 0 {
			m.addStage(stored, to, begins, cmp.Or(begins, scheme.Beginning))
		}
	}
	m.addStage(formulas, arrays, begins, time)
}

func (m *stageMaker) addStage(formulas, arrays []int, begins, time float64) {
	s := m.system
	form := m.sheet.Form(formulas...)
	form.Stage = len(s.stages)
	m.failed = errors.Join(m.failed, sweep.CheckFormula(form, m.element))
	for i, number := range arrays {
		form.InPlace = append(form.InPlace, -1)
		if len(form.Fields[number]) > 0 {
			form.InPlace[i] = number
		}
		if to := s.arrays[number]; to.level > 0 {
			form.Fields[to.variable] = form.Fields[to.variable].Join(stencil.Point()) // for norms
		}
	}
	for _, g := range form.Given {
		if !slices.Contains(s.given, g.Expression) {
			s.given = append(s.given, g.Expression)
		}
	}
	s.stages = append(s.stages, systemStage{form: form, writes: arrays, time: time, begins: begins})
}
