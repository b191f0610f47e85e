package sweep

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// keywords are the words of C++ and CUDA that a source cannot use as names.
var keywords = strings.Fields(`alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
	compl concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double
	dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
	nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert
	static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
	wchar_t while xor xor_eq
	threadIdx blockIdx blockDim gridDim warpSize NULL NAN INFINITY assert errno`)

// taken are the macros of kernels/cu and of source.go, and the function call that source.go writes.
var taken = strings.Fields(`call ADD ALL ALL_READ_ONLY ARGUMENTS ARRAY_OF BYTES_OF CLASS_OF DIMS EACH_PART FEW_ARRAYS FIELDS FILL FORWARD FRAME_BYTES GHOSTS GHOSTS_DEPTH GHOSTS_X GHOSTS_Y
	HEIGHT IDENTITY INITIAL INNER_STORES LAYERED LAYERS LAYERS_ LOAD MAKE MEASURES MEMBER NEVER_LINKED NEXT NORM NORMS NUMBER ONE_LAYER ONE_MORE
	OPERATIONS PLANES POINTER PREFETCH RANK_BLOCKS RANK_CALLED RANK_COPY RANK_LAYERS RANK_STEPS_BYTES RANK_TAGS RANK_THREADS RANK_WORDS READS REAL REDUCED REDUCTIONS REFLECTS REG_LAYERS SCARCE SEVERAL_LAYERS SLOT_PLACES STAGE STAGES STAGE_BYTES STEP
	STEPS STEPS_BYTES STEPS_THREADS STOP STORE STREAMS SWEEP_BYTES TARGETS TOTAL TOTALS WIDTH WRITES WRITTEN`)

// checkName returns an error unless a source can use a name.
func checkName(name string) error {
	switch {
	case !identifier.MatchString(name):
		return fmt.Errorf("%q is no identifier of C", name)
	case slices.Contains(keywords, name) || strings.HasPrefix(name, "__"):
		return fmt.Errorf("%q is a word of C++ or CUDA, which no source can use as a name", name)
	case slices.Contains(taken, name):
		return fmt.Errorf("%q is a name that the kernels around the source have: take another, or write it small", name)
	}
	return nil
}
