package packing

// For the tests of package packing_test.

// TreeOptions and Serialise make the trees of engine Tree.
type TreeOptions = treeOptions

// Serialise is serialise.
var Serialise = serialise
