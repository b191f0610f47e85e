//go:build linux

package rows

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns the memory of a page between two inaccessible pages, as a slice. A read beyond its ends kills
// the test.
func guarded[T Float](t *testing.T) []T {
	t.Helper()
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal("mmap:", err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error("munmap:", err)
		}
	})
	for _, guard := range [][]byte{memory[:page], memory[2*page:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal("mprotect:", err)
		}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[page])), page/int(unsafe.Sizeof(T(0))))
}

func TestNothingElseIsRead(t *testing.T) {
	t.Run("type=float64", testGuarded[float64])
	t.Run("type=float32", testGuarded[float32])
}

func testGuarded[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	sides := map[string]func(whole, row []T) []T{
		"first": func(whole, row []T) []T { return whole[:copy(whole, row)] },
		"last": func(whole, row []T) []T {
			end := whole[len(whole)-len(row):]
			copy(end, row)
			return end
		},
	}
	var pages [6][]T
	for i := range pages {
		pages[i] = guarded[T](t)
	}
	for name, place := range sides {
		for _, assembly := range variants() {
			t.Run(fmt.Sprintf("side=%s/assembly=%v", name, assembly), func(t *testing.T) {
				for n := 1; n <= 70; n++ {
					b := Band{Points: n, Count: 3, Pitch: n + 2}
					in, w := draw[T](r, b.span("guarded"), 0)
					in = inputs[T]{
						place(pages[1], in.center), place(pages[2], in.south), place(pages[3], in.north),
						place(pages[4], in.below), place(pages[5], in.above),
					}
					dst := place(pages[0], blank[T](b.span("guarded")))
					for _, s := range stencils[T]() {
						s.in(assembly, dst, in, b, w)
						verify(t, s, dst, in, b, w)
					}
					var l lanes
					accumulate(assembly, &l, dst, in.south)
				}
			})
		}
	}
}
