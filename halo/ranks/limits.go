package ranks

// Tags is how many tags notifications have: 0 to Tags-1.
const Tags = 256

// Any matches every source and every tag, see Rank.WaitMatching.
const Any = -1

// Slots of windows that do not exist, and of AnyWindow.
const (
	noSlot  = -1
	anySlot = -2
)

// Limits of ranks.cuh.
const (
	MaxDevices = 16
	MaxWindows = 16 // of a communicator
	maxTimings = 1000
	lineBytes  = 128
	boardLines = 8
	runEnded   = 6 // the line RUN_ENDED
	logLines   = 256
	queued     = 64
	keptMost   = 1024
	boxSlots   = 4
	boxValues  = 32
	maxEnds    = 16
	commands   = 64
	payload    = 4032
)
