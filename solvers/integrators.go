package solvers

import (
	"math"

	"github.com/halox/halox/stencil"
)

// Integrator is a method that integrates the rates of fields over a time step. The number of stages equals the order of
// the method. The result of a stage is exchanged after the stage, with the boundary values at the time of the stage.
type Integrator string

// Integrators of Equation.
const (
	Euler  Integrator = "euler"  // explicit Euler, first order
	RK2    Integrator = "rk2"    // midpoint method; one more array per field
	SSPRK3 Integrator = "ssprk3" // Shu and Osher 1988; preserves bounds that Euler preserves; one more array
	RK4    Integrator = "rk4"    // classical Runge-Kutta method; two more arrays

	// Leapfrog is a second-order method for accelerations: u' = 2u - previous(u) + dt^2*f.
	Leapfrog Integrator = "leapfrog"
)

// A method is the list of stages of an integrator.
type method struct {
	stability stencil.Stability
	stages    []methodStage
}

// A methodStage computes w[to] = u + sum(parts[k]*(w[k] - u)) + rate*dt*f(w[from]). w[0] is u, the field before the
// step; w[1] is the field after the step; the others are intermediate arrays.
type methodStage struct {
	from, to int
	parts    [4]float64
	rate     float64
	time     float64 // time of w[to], in steps
}

var integrators = map[Integrator]method{
	Euler: {stencil.Stability{Real: 2}, []methodStage{{to: 1, rate: 1, time: 1}}},
	RK2: {stencil.Stability{Real: 2}, []methodStage{
		{to: 2, rate: 0.5, time: 0.5},
		{from: 2, to: 1, rate: 1, time: 1},
	}},
	SSPRK3: {stencil.Stability{Real: 2.512, Imaginary: math.Sqrt(3)}, []methodStage{
		{to: 1, rate: 1, time: 1},
		{from: 1, to: 2, parts: [4]float64{1: 1. / 4}, rate: 1. / 4, time: 0.5},
		{from: 2, to: 1, parts: [4]float64{2: 2. / 3}, rate: 2. / 3, time: 1},
	}},
	RK4: {stencil.Stability{Real: 2.785, Imaginary: 2.828}, []methodStage{
		{to: 1, rate: 0.5, time: 0.5},
		{from: 1, to: 2, rate: 0.5, time: 0.5},
		{from: 2, to: 3, rate: 1, time: 1},
		{from: 3, to: 1, parts: [4]float64{1: 1. / 3, 2: 2. / 3, 3: 1. / 3}, rate: 1. / 6, time: 1},
	}},
}
