package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// stepCase is a problem whose steps are timed, and how they are made.
type stepCase struct {
	precision string
	size      []int // of the grid
	devices   int
	parts     domain.Vec // how the grid is cut; zero where the bench's --cut says how
	scheme    scheme.Scheme
	order     scheme.Order // "" where the scheme has none
	path      p2p.Path
	norms     int // taken every so many steps; 0: never
}

// labels begins the row of a case. Alone a device sends nothing by any path.
func (c stepCase) labels() results.Row {
	row := results.NewRow().Label("scheme", c.scheme).Label("order", c.order)
	if c.devices > 1 {
		row = row.Label("path", c.path)
	}
	stencil := fmt.Sprintf("%d-point", 1+2*len(c.size))
	row = row.Label("devices", c.devices).Label("precision", c.precision).Label("stencil", stencil)
	if c.norms > 0 {
		row = row.Label("norms", cmp.Or(map[int]string{1: withNorms}[c.norms], fmt.Sprintf("every-%d", c.norms)))
	}
	return row
}

// points returns how many the grid has.
func (c stepCase) points() float64 {
	n := 1.0
	for _, side := range c.size {
		n *= float64(side)
	}
	return n
}

// flops is what the papers count for a point: a product each for the centre and for the
// sum of its neighbours, and a sum for each of these.
func (c stepCase) flops() float64 { return float64(2 + 2*len(c.size)) }

// values adds to a row what the time of a step comes to: beside it the rate of a plain
// copy, and the share of it that reading and writing every point once would have.
func (c stepCase) values(row results.Row, step, copyRate results.Sample) results.Row {
	bytes := 2 * c.points() * float64(kernels.Real(c.precision).Size()) / float64(c.devices)
	rate := step.Under(bytes / 1e3)
	return row.Value(results.Step, step).
		Value(results.Updates, step.Under(c.points()*1e6)).
		Value(results.GFLOPS, step.Under(c.points()*c.flops()/1e3)).
		Value(results.CopyRate, copyRate).Value(results.Share, rate.Scale(1/copyRate.Median))
}

// config returns the config of the problem: heat between walls whose temperature differs
// from place to place, so that the field neither fades into numbers too small to be
// computed with at full speed, nor comes to be the same everywhere.
func (c stepCase) config() (*configs.Run, error) {
	size, err := json.Marshal(c.size)
	if err != nil {
		return nil, err
	}
	axes := []string{"x", "y", "z"}[:len(c.size)]
	sum := map[int]string{2: "1 + x + 2*y", 3: "1 + x + 2*y + 3*z"}[len(c.size)]
	var walls []string
	for _, axis := range axes {
		walls = append(walls, fmt.Sprintf("%s: {dirichlet: %s}", axis, sum))
	}
	text := fmt.Sprintf("{solver: heat, grid: {size: %s, spacing: 1}, precision: %s, heat: {dt: 0.1}, boundary: {%s}, initial: %s + sin(y)}",
		size, c.precision, strings.Join(walls, ", "), sum)
	config, err := configs.Parse("the problem", []byte(text), configs.Options{CheckExpression: checkExpression})
	if err != nil {
		return nil, err
	}
	config.Exchange.Scheme, config.Exchange.Path = string(c.scheme), string(c.path)
	return config, nil
}

// chosen says what the scheme and the path came to, where halox chose them.
func (c stepCase) chosen(w *setup) string {
	var all []string
	if c.scheme == scheme.Auto {
		all = append(all, fmt.Sprintf("scheme auto is %s", w.scheme))
	}
	if c.path == p2p.Auto && len(w.plan.Messages) > 0 {
		all = append(all, fmt.Sprintf("path auto is %s", w.plan.Path()))
	}
	return strings.Join(all, ", ")
}
