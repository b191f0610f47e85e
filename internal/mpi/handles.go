package mpi

// Handle is a handle of MPI as an argument: an int in MPICH, a pointer elsewhere. Both take
// one register.
type Handle uintptr

// handles are the constants of a family.
type handles struct {
	world, null   Handle // MPI_COMM_WORLD, MPI_COMM_NULL
	byteType      Handle // MPI_BYTE
	errorsReturn  Handle // MPI_ERRORS_RETURN
	multiple      int32  // MPI_THREAD_MULTIPLE
	tagBound      int32  // MPI_TAG_UB
	handleIs32Bit bool   // a handle has 4 bytes in memory, else 8
}

// mpichHandles are the handles of MPICH's mpi.h, fixed by its ABI initiative.
var mpichHandles = handles{
	world: 0x44000000, null: 0x04000000, byteType: 0x4c00010d, errorsReturn: 0x54000001,
	multiple: 3, tagBound: 0x64400001, handleIs32Bit: true,
}

// standardHandles are the handles of the standard ABI, MPI 5.0, chapter 20.
var standardHandles = handles{
	world: 0x101, null: 0x100, byteType: 0x247, errorsReturn: 0x143,
	multiple: 4096, tagBound: 501,
}

// openMPIHandles returns the handles of Open MPI, the addresses of its variables.
func openMPIHandles(symbol func(string) uintptr) handles {
	address := func(name string) Handle { return Handle(symbol(name)) }
	return handles{
		world: address("ompi_mpi_comm_world"), null: address("ompi_mpi_comm_null"), byteType: address("ompi_mpi_byte"),
		errorsReturn: address("ompi_mpi_errors_return"),
		multiple:     3, tagBound: 0,
	}
}

// complete reports whether all variables of Open MPI were found. Handles of other families are never zero.
func (h handles) complete() bool {
	return h.world != 0 && h.null != 0 && h.byteType != 0 && h.errorsReturn != 0
}
