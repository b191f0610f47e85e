// Package cuda binds the part of the CUDA driver API that halox uses: devices
// and their primary contexts, memory, streams, events, copies, modules,
// launches and graphs.
//
// The driver library is opened at run time, so building needs no CUDA headers and a program without a driver still
// starts. There is no package state: start with [Open].
//
// CUDA binds contexts to OS threads and Go moves goroutines between them. Every method of [Context] therefore makes its
// context current and calls the driver within one crossing into C; no goroutine has to be locked to its thread. Methods
// may be called from several goroutines at once, except Close, Release, Free and Destroy, which must come after the
// last use of their object.
//
// Sizes are in bytes. Streams are created so that they do not synchronize with CUDA's default stream, and the zero
// [Stream], which would mean that stream, is rejected.
//
// The binding needs Linux and cgo; its types and errors are there without them.
package cuda
