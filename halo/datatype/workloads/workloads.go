// Package workloads has the layouts that benchmarks of MPI datatypes use, with their published parameters:
// DDTBench (Schneider, Gerstenberger and Hoefler 2012), TEMPI (Pearson et al. 2021), and the figures of
// Jenkins et al. (2014), of Shi et al.'s HAND (2014) and of Wu et al. (2016). Comments mark choices that a
// paper leaves open.
//
// Index lists are shuffled with a fixed seed: they are the same in every process.
package workloads

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/halox/halox/halo/datatype"
)

// A Side is the elements that one end of a message reads from, or writes to, its own array.
type Side struct {
	Type   *datatype.Type // element type
	Count  int            // number of elements
	Origin int64          // offset of displacement 0 in the array, in bytes
	Array  int64          // size of the array in bytes
}

// A Workload is one message: a layout with one set of parameters.
type Workload struct {
	Suite  string // ddtbench, tempi, jenkins, hand, wu, shoc or hacc
	Name   string // name of the layout in its suite
	Params string // key=value, comma-separated
	Send   Side   // both ends; their packed sizes are equal
	Recv   Side   // both ends; their packed sizes are equal
	Bytes  int64  // packed size
}

// String returns suite/name/params, usable as the name of a benchmark.
func (w Workload) String() string { return w.Suite + "/" + w.Name + "/" + w.Params }

// Sizes of predefined types in bytes.
const (
	float        = 4
	double       = 8
	complexBytes = 16
)

// A maker makes types and collects workloads. It keeps the first error, and continues with an empty type.
type maker struct {
	suite     string
	workloads []Workload
	err       error
}

// result returns the collected workloads.
func (m *maker) result() ([]Workload, error) {
	if m.err != nil {
		return nil, fmt.Errorf("workloads: %s: %w", m.suite, m.err)
	}
	return m.workloads, nil
}

// add collects a workload.
func (m *maker) add(name, params string, send, recv Side) {
	bytes := send.Type.Size() * int64(send.Count)
	m.workloads = append(m.workloads, Workload{m.suite, name, params, send, recv, bytes})
}

// both collects a workload with equal sides, except for the origin in bytes.
func (m *maker) both(name, params string, send Side, recvOrigin int64) {
	recv := send
	recv.Origin = recvOrigin
	m.add(name, params, send, recv)
}

func (m *maker) made(t *datatype.Type, err error) *datatype.Type {
	if err != nil {
		m.err = err
		return datatype.Byte
	}
	return t
}

func (m *maker) contiguous(count int, t *datatype.Type) *datatype.Type {
	return m.made(datatype.Contiguous(count, t))
}

func (m *maker) vector(count, length, stride int, t *datatype.Type) *datatype.Type {
	return m.made(datatype.Vector(count, length, stride, t))
}

func (m *maker) hvector(count, length int, stride int64, t *datatype.Type) *datatype.Type {
	return m.made(datatype.HVector(count, length, stride, t))
}

func (m *maker) indexedBlock(length int, places []int, t *datatype.Type) *datatype.Type {
	return m.made(datatype.IndexedBlock(length, places, t))
}

func (m *maker) resized(t *datatype.Type, extent int64) *datatype.Type {
	return m.made(datatype.Resized(t, 0, extent))
}

// subarray takes its arguments x-fastest.
func (m *maker) subarray(sizes, subsizes, starts []int, t *datatype.Type) *datatype.Type {
	return m.made(datatype.Subarray(sizes, subsizes, starts, datatype.FortranOrder, t))
}

// structure puts one element of each type at its displacement.
func (m *maker) structure(displacements []int64, types []*datatype.Type) *datatype.Type {
	return m.made(datatype.Struct(slices.Repeat([]int{1}, len(types)), displacements, types))
}

// packed returns the side with as many contiguous predefined elements.
func (m *maker) packed(count int, t *datatype.Type) Side {
	return Side{Type: m.contiguous(count, t), Count: 1, Array: int64(count) * t.Size()}
}

// filled returns the side with count elements from an array that ends where they do.
func filled(t *datatype.Type, count int) Side {
	return Side{Type: t, Count: count, Array: int64(max(0, count-1))*t.Extent() + t.TrueUB()}
}

// seed is the seed of all index lists. DDTBench seeds by the time.
const seed = 2012

// shuffled returns the first n of the numbers 0 to all-1 in a random order, the same for the same arguments.
func shuffled(all, n int) []int {
	r := rand.New(rand.NewPCG(seed, uint64(all)))
	return r.Perm(all)[:n]
}

// scaled returns the numbers times a factor.
func scaled(numbers []int, factor int) []int {
	products := make([]int, len(numbers))
	for i, n := range numbers {
		products[i] = n * factor
	}
	return products
}
