package halo

import (
	"context"
	"fmt"
	"hash/fnv"
)

// crossesProcesses reports whether a message goes from one process to another.
func (p *Placement) crossesProcesses(m Message) bool {
	return p.Owners[m.From] != p.Owners[m.To]
}

// mostBetween returns how many messages go from one process to another, at most.
func (p *Plan) mostBetween() (most int) {
	count := map[[2]int]int{}
	for _, m := range p.Messages {
		if p.Placement.crossesProcesses(m) {
			ends := [2]int{p.Placement.Owners[m.From], p.Placement.Owners[m.To]}
			count[ends]++
			most = max(most, count[ends])
		}
	}
	return most
}

// agree returns the error, or where processes share the grid of the plan an error if any of them has one. All call it.
func (p *Plan) agree(what string, err error) error {
	if p == nil {
		return err
	}
	return p.Placement.Agree(context.Background(), what, err)
}

// compare returns an error, on all processes, unless they plan the same messages between each
// other: else their bytes would end up anywhere.
func (p *Plan) compare() error {
	processes := p.Placement.Processes
	mine := p.fingerprint()
	all, err := processes.Gather(context.Background(), "compare plans of an exchange", mine)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if string(other) != string(mine) {
			return fmt.Errorf("halo: %s plans another exchange than %s: all processes must make the same ones in the same order", processes.Name(rank), processes.Name(processes.Rank))
		}
	}
	return nil
}

// fingerprint is equal for plans with the same messages between processes.
func (p *Plan) fingerprint() []byte {
	hash := fnv.New128a()
	fmt.Fprintln(hash, p.Placement.Grid, p.Placement.Parts, p.Placement.Owners)
	for _, m := range p.Messages {
		if p.Placement.crossesProcesses(m) {
			fmt.Fprintln(hash, m.From, m.To, m.Bytes, m.Parts)
		}
	}
	return hash.Sum(nil)
}
