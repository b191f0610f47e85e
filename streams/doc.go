// Package streams provides one interface to the devices that halox computes on: GPUs, through the CUDA driver, and
// CPU devices, which are CPU cores that behave like GPUs.
//
// A Platform lists devices and opens them. A Device owns Memory, Streams and Events. Work on a stream runs
// asynchronously, in the order in which it was queued. Only events order work on different streams. No function
// waits for a whole device.
//
// Queuing work (Copy, CopyBox, Launch, Record, Wait) does not allocate and may be done from any thread, but from
// only one thread per stream at a time. Errors name the call, the device and the operation. After a fatal error
// the device is dead: every later call on it returns that first error.
//
// A Graph is work on streams of several devices that is captured once and then queued by one call.
//
// A Tracer records which operations the streams ran, and when, for a few steps.
//
// The host threads that feed the streams are the workers of a WorkerGroup. A Signal orders streams that different
// workers feed.
package streams
