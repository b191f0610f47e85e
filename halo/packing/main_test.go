package packing

import (
	"fmt"
	"os"
	"testing"
)

// TestMain uses a temporary cache folder.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "halox-packing")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("HALOX_CACHE", folder)
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}
