package mpi

// Family is a binary interface of MPI.
type Family string

// The families.
const (
	Unknown  Family = ""
	MPICH    Family = "MPICH"        // and Intel MPI, MVAPICH and others of MPICH's ABI
	OpenMPI  Family = "Open MPI"     // versions 4 and 5
	Standard Family = "standard ABI" // of MPI 5, which MPICH 5 and Open MPI 6 have
)

// Handle is a handle of MPI as an argument: an int in MPICH, a pointer elsewhere. Both take
// one register.
type Handle uintptr

// handles are the constants of a family that the binding needs.
type handles struct {
	world, null   Handle // MPI_COMM_WORLD, MPI_COMM_NULL
	byteType      Handle // MPI_BYTE
	noInfo        Handle // MPI_INFO_NULL
	errorsReturn  Handle // MPI_ERRORS_RETURN
	multiple      int32  // MPI_THREAD_MULTIPLE
	shared        int32  // MPI_COMM_TYPE_SHARED
	anySource     int32  // MPI_ANY_SOURCE
	anyTag        int32  // MPI_ANY_TAG
	tagBound      int32  // MPI_TAG_UB
	sourceAt      int    // where MPI_SOURCE lies in an MPI_Status, in bytes; MPI_TAG follows it
	handleIs32Bit bool   // a handle has 4 bytes in memory, else 8
}

// mpichHandles are those of MPICH's mpi.h, fixed by its ABI initiative.
var mpichHandles = handles{
	world: 0x44000000, null: 0x04000000, byteType: 0x4c00010d, noInfo: 0x1c000000, errorsReturn: 0x54000001,
	multiple: 3, shared: 1, anySource: -2, anyTag: -1, tagBound: 0x64400001, sourceAt: 8, handleIs32Bit: true,
}

// standardHandles are those of chapter 20 of MPI 5.0.
var standardHandles = handles{
	world: 0x101, null: 0x100, byteType: 0x247, noInfo: 0x130, errorsReturn: 0x143,
	multiple: 4096, shared: 221, anySource: -1, anyTag: -2, tagBound: 501,
}

// openMPIHandles returns those of Open MPI, whose handles are addresses of its variables.
func openMPIHandles(symbol func(string) uintptr) handles {
	address := func(name string) Handle { return Handle(symbol(name)) }
	return handles{
		world: address("ompi_mpi_comm_world"), null: address("ompi_mpi_comm_null"), byteType: address("ompi_mpi_byte"),
		noInfo: address("ompi_mpi_info_null"), errorsReturn: address("ompi_mpi_errors_return"),
		multiple: 3, shared: 0, anySource: -1, anyTag: -1, tagBound: 0,
	}
}

// complete reports whether all variables of Open MPI were found. Of other families no handle
// is zero.
func (h handles) complete() bool {
	return h.world != 0 && h.null != 0 && h.byteType != 0 && h.noInfo != 0 && h.errorsReturn != 0
}
