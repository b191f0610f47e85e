//go:build !linux || !cgo

package nccl_test

import (
	"errors"
	"testing"

	"github.com/halox/halox/internal/nccl"
)

func TestUnsupported(t *testing.T) {
	if _, err := nccl.Open(""); !errors.Is(err, nccl.ErrUnsupported) {
		t.Error(err)
	}
}
