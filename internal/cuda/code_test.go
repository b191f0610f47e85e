package cuda_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/internal/cuda"
)

func TestErrorMatchesItsCode(t *testing.T) {
	cause := &cuda.Error{Call: "cuMemAlloc", Code: cuda.CodeOutOfMemory, Name: "CUDA_ERROR_OUT_OF_MEMORY", Text: "out of memory", Device: 1}
	err := fmt.Errorf("allocate the halo: %w", cause)
	if !errors.Is(err, cuda.CodeOutOfMemory) || errors.Is(err, cuda.CodeInvalidValue) {
		t.Error("errors.Is does not go by the code")
	}
	const want = "allocate the halo: device 1: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestErrorOfNoDevice(t *testing.T) {
	err := &cuda.Error{Call: "cuInit", Code: 3, Name: "N", Text: "t", Device: cuda.NoDevice}
	if got, want := err.Error(), "cuInit: N (3): t"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStickyCodes(t *testing.T) {
	sticky := []cuda.Code{214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 807, 999}
	passing := []cuda.Code{0, 1, 2, 100, 200, 201, 400, 500, 600, 701, 704, 705, 720, 801}
	for _, c := range sticky {
		if err := fmt.Errorf("sweep: %w", &cuda.Error{Code: c}); !c.Sticky() || !cuda.IsSticky(err) {
			t.Errorf("%v is not sticky", c)
		}
	}
	for _, c := range passing {
		if c.Sticky() || cuda.IsSticky(&cuda.Error{Code: c}) {
			t.Errorf("%v is sticky", c)
		}
	}
	if cuda.IsSticky(errors.New("other")) || cuda.IsSticky(nil) {
		t.Error("an error without a code is sticky")
	}
}

func TestCheckGeometry(t *testing.T) {
	one := cuda.Dim3{X: 1, Y: 1, Z: 1}
	for _, tc := range []struct {
		name        string
		grid, block cuda.Dim3
		arg         int
		want        string // empty when possible
	}{
		{"all at the limits", cuda.Dim3{X: 1<<31 - 1, Y: 65535, Z: 65535}, cuda.Dim3{X: 4, Y: 4, Z: 64}, 4096, ""},
		{"no blocks along y", cuda.Dim3{X: 7, Z: 1}, one, 0,
			"launch: grid and block must not be empty, got 7x0x1 blocks of 1x1x1 threads"},
		{"no threads", one, cuda.Dim3{}, 0, "launch: grid and block must not be empty, got 1x1x1 blocks of 0x0x0 threads"},
		{"too many blocks along x", cuda.Dim3{X: 1 << 31, Y: 1, Z: 1}, one, 0,
			"launch of a grid of 2147483648x1x1 blocks: must be at most 2147483647x65535x65535"},
		{"too many blocks along z", cuda.Dim3{X: 1, Y: 1, Z: 65536}, one, 0,
			"launch of a grid of 1x1x65536 blocks: must be at most 2147483647x65535x65535"},
		{"a block too deep", one, cuda.Dim3{X: 1, Y: 1, Z: 65}, 0,
			"launch of blocks of 1x1x65 threads: must be at most 1024x1024x64"},
		{"a block too large", one, cuda.Dim3{X: 32, Y: 33, Z: 1}, 0,
			"launch of blocks of 32x33x1 = 1056 threads: must be at most 1024"},
		{"a block whose size overflows 32 bits", one, cuda.Dim3{X: 1 << 31, Y: 2, Z: 1}, 0,
			"launch of blocks of 2147483648x2x1 threads: must be at most 1024x1024x64"},
		{"an argument too large", one, one, 4097, "launch with an argument of 4097 bytes: must be at most 4096"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := cuda.CheckGeometry(tc.grid, tc.block, tc.arg); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
