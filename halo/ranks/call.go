package ranks

import "fmt"

// said is what a rank calls, in a number that ranks compare.
func said[T Numeric](what collective, n int, op Op, root int) int64 {
	kind := 0
	switch any(*new(T)).(type) {
	case float32:
		kind = 1
	case int64:
		kind = 2
	}
	return int64(n)<<24 | int64(root)<<6 | int64(kind)<<4 | min(int64(uint(op)), 3)<<2 | int64(what)
}

// describeCall names what a rank called.
func describeCall(said int64) string {
	what, op, kind, root, n := collective(said&3), Op(said>>2&3), said>>4&3, said>>6&(1<<maxLevels-1), said>>24
	numbers := fmt.Sprintf("%d %s", n, [...]string{"doubles", "floats", "64-bit integers", "numbers"}[kind])
	name := [...]string{"sum", "min", "max", "unknown operation"}[op]
	switch what {
	case broadcast:
		return fmt.Sprintf("a broadcast of %s from rank %d", numbers, root)
	case reduce:
		return fmt.Sprintf("a reduce (%s) of %s to rank %d", name, numbers, root)
	}
	return fmt.Sprintf("an allreduce (%s) of %s", name, numbers)
}
