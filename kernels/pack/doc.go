// Package pack moves what lies apart in memory, by kernels of one device: into a buffer without gaps,
// back, or to where it lies apart elsewhere, also in the memory of a peer. A BoxCopier takes boxes of
// fields, whose numbers it can add too, and strided blocks, a BlockPacker and a UnitPacker lists of
// blocks, and a TreePacker datatypes as trees. A DirectExchange is the copies that devices store into
// each other's memory, with the flags by which they wait for each other. A Reflector sets ghosts from
// the points before a wall.
package pack
