package field

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sbinet/npyio/npy"
)

// header is the head of a .npy file of version 1.0: magic, version, length
// and a Python dictionary, padded so that the numbers begin at a multiple of 64.
// It is made here because npyio writes whole arrays only.
func header(shape []int, dtype DType) []byte {
	const prefix = 10 // bytes before the dictionary
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype, tuple(shape))
	padding := 63 - (prefix+len(dict))%64
	dict += strings.Repeat(" ", padding) + "\n"
	header := append(npy.Magic[:], 1, 0)
	header = binary.LittleEndian.AppendUint16(header, uint16(len(dict)))
	return append(header, dict...)
}

// tuple writes a shape as Python does: (4, 3), and (4,) for one axis.
func tuple(shape []int) string {
	axes := strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ")
	if len(shape) == 1 {
		axes += ","
	}
	return "(" + axes + ")"
}

// volume is the number of values of a shape.
func volume(shape []int) (int, error) {
	if len(shape) == 0 {
		return 0, errors.New("the shape has no axes")
	}
	total := 1
	for _, n := range shape {
		if n < 1 || total > math.MaxInt/8/n {
			return 0, fmt.Errorf("the shape %v cannot be stored", shape)
		}
		total *= n
	}
	return total, nil
}
