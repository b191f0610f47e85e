package ranks

import "sync"

// hostReply is what a rank on a host device waits for of another process: bytes that it gets.
type hostReply struct {
	lock sync.Mutex
	to   []byte // nil: nothing is expected
	came bool
}

// expect has the bytes come to some memory; with nil they are dropped.
func (r *hostReply) expect(to []byte) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.to, r.came = to, false
}

func (r *hostReply) take(bytes []byte) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if len(bytes) == len(r.to) {
		copy(r.to, bytes)
		r.came = true
	}
}

func (r *hostReply) isThere() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.came
}
