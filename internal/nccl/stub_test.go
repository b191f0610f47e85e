//go:build !linux || !cgo

package nccl_test

import (
	"testing"

	"github.com/halox/halox/internal/nccl"
	"github.com/halox/halox/internal/test"
)

func TestUnsupported(t *testing.T) {
	test.Is(t, test.ErrorOf(nccl.Open("")), nccl.ErrUnsupported)
}
