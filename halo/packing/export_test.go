package packing

import "testing"

// For the tests of package packing_test.

// TreeOptions and Serialise make the trees of engine Tree.
type TreeOptions = treeOptions

// Serialise is serialise.
var Serialise = serialise

// Must returns what gives v, or ends the test if that could not be made.
func Must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
