// Package streams gives one face to the devices that halox computes on: GPUs,
// through the CUDA driver, and host devices, which are cores of the CPU that
// behave like GPUs.
//
// A Platform lists devices and opens them. A Device owns Memory, Streams and
// Events. Work on a stream runs in the order in which it was queued, and later
// than the call that queued it; work on different streams is ordered by events
// alone. Nothing here waits for a whole device.
//
// Queuing (Copy, CopyBox, Launch, Record, Wait) allocates nothing and may be done from
// any thread, one thread a stream at a time. A failed call returns an error
// that names the call, the device and what was being done. After an error that
// the device cannot recover from, the device is dead: every later call on it
// returns that first error.
//
// A Graph is work on streams of several devices that is captured once and then queued
// by one call.
//
// A Tracer finds out what the streams did, and when, in a few steps.
//
// The host threads that feed the streams are the workers of a WorkerGroup. A Signal
// orders streams that different workers feed.
package streams
