package flags

import "testing"

// Sizes of a class are close to each other, and a class begins with a size that is its own.
func TestAlike(t *testing.T) {
	for _, c := range []struct{ size, want [3]int }{
		{[3]int{0, 1, 31}, [3]int{0, 1, 31}},
		{[3]int{32, 33, 34}, [3]int{32, 32, 34}},
		{[3]int{128, 135, 136}, [3]int{128, 128, 136}},
		{[3]int{144, 160, 255}, [3]int{144, 160, 248}},
		{[3]int{511, 512, 543}, [3]int{496, 512, 512}},
	} {
		if got := Alike(c.size); got != c.want {
			t.Errorf("%v: %v, not %v", c.size, got, c.want)
		}
	}
	for n := 1; n < 1<<17; n++ {
		low := Alike([3]int{n})[0]
		if low > n || 16*(n-low) > low || Alike([3]int{low})[0] != low {
			t.Fatalf("%d: %d", n, low)
		}
	}
}
