package streams

// Traits is what a backend says of its devices. Who has to tell kinds of devices apart asks
// for a trait, never for the name of the backend. The zero value is that of an accelerator:
// it runs CUDA functions, in memory and on cores of its own.
type Traits struct {
	Noun  string // what a device is: "GPU", "host device"
	Label string // what a device is called before its number: "GPU", "host"

	// Kernels are Go functions, KernelSpec.Run. Nothing is compiled for the device, and it
	// loads no modules. Else they are CUDA functions, KernelSpec.Function.
	GoKernels bool

	// Work runs on cores of the host. A thread that spins takes them from the devices, and so
	// does one more thread for each neighbour.
	HostCores bool

	// Memory of a device is memory of the host. The CPU sees it (Memory.Bytes), kernels of all
	// devices of the platform reach it without EnablePeer, what is free is free for all devices
	// together, and all pairs of devices are linked alike.
	HostMemory bool
}
