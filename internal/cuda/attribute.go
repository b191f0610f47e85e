package cuda

// Attribute is a property of a device, see [Device.Attribute].
type Attribute int32

// Device attributes. Sizes are in bytes, clocks in kHz, the bus width in bits.
// A driver may give 0 for the clocks of devices that change them all the time.
const (
	AttrMaxThreadsPerBlock      Attribute = 1
	AttrMaxSharedPerBlock       Attribute = 8
	AttrWarpSize                Attribute = 10
	AttrMaxPitch                Attribute = 11
	AttrClockRate               Attribute = 13
	AttrMultiprocessorCount     Attribute = 16
	AttrIntegrated              Attribute = 18
	AttrCanMapHostMemory        Attribute = 19
	AttrComputeMode             Attribute = 20
	AttrECCEnabled              Attribute = 32
	AttrMemoryClockRate         Attribute = 36
	AttrMemoryBusWidth          Attribute = 37
	AttrL2CacheSize             Attribute = 38
	AttrMaxThreadsPerSM         Attribute = 39
	AttrAsyncEngineCount        Attribute = 40
	AttrUnifiedAddressing       Attribute = 41
	AttrComputeCapabilityMajor  Attribute = 75
	AttrComputeCapabilityMinor  Attribute = 76
	AttrStreamPrioritySupported Attribute = 78
	AttrMaxSharedPerSM          Attribute = 81
	AttrMaxRegistersPerSM       Attribute = 82
	AttrHostNativeAtomics       Attribute = 86
	AttrCooperativeLaunch       Attribute = 95
	AttrMaxSharedPerBlockOptin  Attribute = 97
	AttrMaxBlocksPerSM          Attribute = 106
	AttrMaxPersistingL2         Attribute = 108
	AttrReservedSharedPerBlock  Attribute = 111
	AttrGPUDirectRDMASupported  Attribute = 116
	AttrMulticastSupported      Attribute = 132
	AttrHostNumaID              Attribute = 134
)

// P2PAttribute is a property of a pair of devices, see [Device.P2PAttribute].
type P2PAttribute int32

// The rank orders the links from one device, 0 first; the others are 0 or 1.
const (
	P2PPerformanceRank P2PAttribute = 1
	P2PAccessSupported P2PAttribute = 2
	P2PNativeAtomics   P2PAttribute = 3
)

// FuncAttribute is a property of a kernel, see [Context.FunctionAttribute].
type FuncAttribute int32

// Function attributes. Sizes are in bytes: static shared memory a block,
// local memory (where spills go) a thread, dynamic shared memory a block.
const (
	FuncMaxThreadsPerBlock FuncAttribute = 0
	FuncSharedSize         FuncAttribute = 1
	FuncConstSize          FuncAttribute = 2
	FuncLocalSize          FuncAttribute = 3
	FuncRegisters          FuncAttribute = 4
	FuncPTXVersion         FuncAttribute = 5
	FuncBinaryVersion      FuncAttribute = 6
	FuncMaxDynamicShared   FuncAttribute = 8
	FuncPreferredCarveout  FuncAttribute = 9
)
