package dl_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/halox/halox/internal/dl"
)

func TestCall(t *testing.T) {
	libc, err := dl.Open("libc.so.6", dl.Now)
	if errors.Is(err, dl.ErrUnsupported) {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	at, missing := libc.Table([]string{"abs", "halox_nowhere", "toupper"})
	if len(at) != 3 || !slices.Equal(missing, []string{"halox_nowhere"}) {
		t.Fatalf("found %x, missing %q", at, missing)
	}
	minus7 := -7
	if got := dl.Call(at[0], dl.Args{uintptr(minus7)}); got != 7 {
		t.Errorf("abs(-7) = %d", got)
	}
	if got := dl.Call(at[2], dl.Args{'h'}); got != 'H' {
		t.Errorf("toupper('h') = %c", got)
	}
	if _, err := dl.Open("/nowhere/lib.so", dl.Now); err == nil || errors.Is(err, dl.ErrUnsupported) {
		t.Errorf("a library that does not exist: %v", err)
	}
}
