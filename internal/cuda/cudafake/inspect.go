//go:build linux && cgo

package cudafake

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
//
// typedef struct {
// 	char name[64];
// 	int device;
// 	unsigned grid[3], block[3], shared;
// 	int early, cooperative;
// 	unsigned arg_size;
// 	unsigned char arg[4096];
// } launch;
//
// typedef struct {
// 	void (*fail)(const char *, int, long, long);
// 	void (*kill)(int, int);
// 	long (*calls)(const char *);
// 	long (*live)(int);
// 	void (*set_link)(int, int, int);
// 	long (*streams)(int);
// 	unsigned (*primary_flags)(int);
// 	long (*launches)(void);
// 	const launch *(*launch)(long);
// 	const char *(*ran)(long);
// } knobs;
//
// static int knobs_open(knobs *k, const char *path) {
// 	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
// 	if (!l) return 0;
// 	k->fail = dlsym(l, "fake_fail");
// 	k->kill = dlsym(l, "fake_kill");
// 	k->calls = dlsym(l, "fake_calls");
// 	k->live = dlsym(l, "fake_live");
// 	k->set_link = dlsym(l, "fake_set_link");
// 	k->streams = dlsym(l, "fake_streams");
// 	k->primary_flags = dlsym(l, "fake_primary_flags");
// 	k->launches = dlsym(l, "fake_launches");
// 	k->launch = dlsym(l, "fake_launch");
// 	k->ran = dlsym(l, "fake_ran");
// 	return k->fail && k->kill && k->calls && k->live &&
// 		k->set_link && k->streams && k->primary_flags && k->launches && k->launch && k->ran;
// }
//
// static void knobs_fail(knobs *k, const char *call, int code, long skip, long times) { k->fail(call, code, skip,
// times); } static void knobs_kill(knobs *k, int device, int code) { k->kill(device, code); } static long
// knobs_calls(knobs *k, const char *call) { return k->calls(call); } static long knobs_live(knobs *k, int kind) {
// return k->live(kind); } static void knobs_set_link(knobs *k, int from, int to, int link) { k->set_link(from, to,
// link); } static long knobs_streams(knobs *k, int priority) { return k->streams(priority); } static unsigned
// knobs_primary_flags(knobs *k, int device) { return k->primary_flags(device); } static long knobs_launches(knobs *k) {
// return k->launches(); } static const char *knobs_ran(knobs *k, long i) { return k->ran(i); } static const launch
// *knobs_launch(knobs *k, long i) { return k->launch(i); }
import "C"

import (
	"testing"
	"unsafe"
)

// Opens reports whether drivers can be opened: not without cgo.
const Opens = true

// Fake gives access to the controls and the memory of a fake driver.
type Fake struct{ knobs C.knobs }

// Inspect opens the library that [Build] made. It is the same driver, with the
// same state, that cuda.Open gets from that path.
func Inspect(tb testing.TB, library string) *Fake {
	tb.Helper()
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	f := new(Fake)
	if C.knobs_open(&f.knobs, path) == 0 {
		tb.Fatalf("%s: must be a fake CUDA driver", library)
	}
	return f
}

// Fail makes calls of the named function return the code and do nothing: after skip calls that succeed, the next times
// calls; if times is negative all of them, and 0 ends the failures. The name has no version suffix: cuMemAlloc.
func (f *Fake) Fail(call string, code, skip, times int) {
	name := C.CString(call)
	defer C.free(unsafe.Pointer(name))
	C.knobs_fail(&f.knobs, name, C.int(code), C.long(skip), C.long(times))
}

// Kill makes each further call in the device's context return the code, as after a sticky error. A code of 0 ends this.
func (f *Fake) Kill(device, code int) { C.knobs_kill(&f.knobs, C.int(device), C.int(code)) }

// Link is the behavior of the link from one device to another.
type Link int

// The links. Open is the default.
const (
	LinkOpen   Link = iota
	LinkClosed      // allows no peer access
	LinkLying       // allows it, and changes one bit in the middle of each peer copy
)

// SetLink sets the behavior of the link from one device to another, in that direction.
func (f *Fake) SetLink(from, to int, link Link) {
	C.knobs_set_link(&f.knobs, C.int(from), C.int(to), C.int(link))
}

// Streams returns the number of live streams with the priority.
func (f *Fake) Streams(priority int) int { return int(C.knobs_streams(&f.knobs, C.int(priority))) }

// Calls returns the number of calls of the named function.
func (f *Fake) Calls(call string) int {
	name := C.CString(call)
	defer C.free(unsafe.Pointer(name))
	return int(C.knobs_calls(&f.knobs, name))
}

// Live is the number of objects that were created and not destroyed.
type Live struct{ Memory, Host, Streams, Events, Modules, Graphs, Contexts int }

// Live returns the number of live objects on all devices, for tests of leaks.
func (f *Fake) Live() Live {
	count := func(kind C.int) int { return int(C.knobs_live(&f.knobs, kind)) }
	return Live{
		Memory: count(0), Host: count(1), Streams: count(2), Events: count(3), Modules: count(4),
		Graphs: count(6) + count(7), Contexts: count(8),
	}
}

// PrimaryFlags returns the flags last set for the device's primary context.
func (f *Fake) PrimaryFlags(device int) uint32 {
	return uint32(C.knobs_primary_flags(&f.knobs, C.int(device)))
}

// Ran returns the names of the kernels that have completed, see [Runs]. None may run meanwhile.
func Ran(tb testing.TB, library string) (kernels []string) {
	tb.Helper()
	f := Inspect(tb, library)
	for i := C.long(0); ; i++ {
		name := C.knobs_ran(&f.knobs, i)
		if name == nil {
			return kernels
		}
		kernels = append(kernels, C.GoString(name))
	}
}

// Launch is a recorded launch.
type Launch struct {
	Kernel      string
	Device      int
	Grid, Block [3]uint32
	Shared      uint32
	Early       bool // it may begin before earlier work has ended
	Cooperative bool // all its blocks run at the same time
	Arg         []byte
}

// Launches returns the last 1024 launches, the oldest first. Nothing may be launched meanwhile.
func (f *Fake) Launches() []Launch {
	n := C.knobs_launches(&f.knobs)
	var all []Launch
	for i := max(0, n-1024); i < n; i++ {
		all = append(all, goLaunch(C.knobs_launch(&f.knobs, i)))
	}
	return all
}

func goLaunch(l *C.launch) Launch {
	out := Launch{
		Kernel:      C.GoString(&l.name[0]),
		Device:      int(l.device),
		Shared:      uint32(l.shared),
		Early:       l.early != 0,
		Cooperative: l.cooperative != 0,
		Arg:         C.GoBytes(unsafe.Pointer(&l.arg[0]), C.int(l.arg_size)),
	}
	for i := range 3 {
		out.Grid[i] = uint32(l.grid[i])
		out.Block[i] = uint32(l.block[i])
	}
	return out
}
