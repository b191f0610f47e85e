package ranks

import "testing"

// Two who come one after the other to two barriers, one of them early, are not taken for three.
func TestArrivals(t *testing.T) {
	var a arrivals
	a.begin()
	for i, step := range []struct {
		comes        uint64 // to which barrier
		first, other bool   // whether both have come to this barrier, and to the next
	}{
		{1, false, false}, {2, false, false}, {1, true, false}, {2, true, true},
	} {
		a.add(step.comes)
		if first, second := a.haveCome(1, 2), a.haveCome(2, 2); first != step.first || second != step.other {
			t.Errorf("after %d arrivals: at the first barrier %t, at the second %t", i+1, first, second)
		}
	}
	a.add(3)
	if a.haveCome(3, 2) {
		t.Error("one of two has come to the third barrier")
	}
	if a.add(3); !a.haveCome(3, 2) || a.haveCome(4, 2) {
		t.Error("both have come to the third barrier")
	}
}
