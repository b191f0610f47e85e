// Package nccl binds NVIDIA's NCCL, which is opened at run time: nothing of it is needed to build.
//
// Of NCCL it has messages between the two ranks of a communicator. Communicators do not block: what Begin, Send and Receive have
// begun is under way until Ready says otherwise, so that every wait can have a limit. Whoever waited too long calls Abort, which
// also ends what runs on the device.
//
// NCCL finds the device by the CUDA context of the calling thread, see streams.Device.Within. It needs cgo and Linux; elsewhere
// Open returns [ErrUnsupported].
package nccl
