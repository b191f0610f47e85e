// Package temporal makes several steps of a linear stencil in one pass over memory (temporal
// blocking), behind walls and ghosts of neighbours, with the bits of sweeps one after the other.
//
// A pass reads level 0 of a field from one array and stores level depth to another one: memory is
// read and written once, not once a step. The levels between them live in caches, or in registers and shared memory. Tiles overlap: what
// two of them need of a level both compute, and no tile waits for another.
package temporal
