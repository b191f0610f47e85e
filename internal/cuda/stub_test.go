//go:build !linux || !cgo

package cuda_test

import (
	"errors"
	"testing"

	"github.com/halox/halox/internal/cuda"
)

func TestOpenIsUnsupported(t *testing.T) {
	if _, err := cuda.Open(""); !errors.Is(err, cuda.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
