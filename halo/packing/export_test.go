package packing

// For the tests of package packing_test.

// TreeOptions and Serialize make the trees of engine Tree.
type TreeOptions = treeOptions

// Serialize is serialize.
var Serialize = serialize
