package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Courant chooses the length of each step by the largest speed on the grid. Kernels that run several steps compute it
// without the host.
type Courant struct {
	Distance float64 // covered in a step at the largest speed, as 0.4 times the distance between points
	Until    float64 // time at which the last step ends; 0 for none
}

// Next returns the length of the step that begins at a time, given the largest speed: 0 at the end, and NaN if the
// speed is infinite or NaN. It has the same bits as next_length of courant.cuh.
func (c Courant) Next(now, speed float64) (float64, error) {
	left, length := c.Until-now, c.Distance/speed
	switch {
	case c.Until > 0 && left <= 0:
		return 0, nil
	case speed <= 0 && c.Until <= 0:
		return 0, fmt.Errorf("the largest speed must be positive, got %v", speed)
	case speed <= 0:
		length = left
	case !(length > 0):
		return math.NaN(), nil
	}
	if c.Until <= 0 || length*(1+1e-9) < left {
		return length, nil
	}
	for now+left < c.Until {
		left = math.Nextafter(left, math.Inf(1))
	}
	for now+left > c.Until {
		left = math.Nextafter(left, 0)
	}
	return left, nil
}

// exact are the operations on numbers whose results have the same bits on all devices.
var exact = []string{
	"+", "-", "*", "/", "sqrt", "abs", "sign", "min", "max", "floor", "ceil", "mod", "<", "<=", ">", ">=", "==", "!=",
	"and", "or", "not", "? :",
}

// isExact reports whether GPUs compute the values with the bits of Give.
func (v *Values) isExact() bool {
	for i := range v.found {
		nodes, _ := v.scalars.Nodes(i)
		if slices.ContainsFunc(nodes, func(n stencil.Node) bool { return n.Op != "" && !slices.Contains(exact, n.Op) }) {
			return false
		}
	}
	return true
}

// Paced reports whether kernels can compute the parameters of the function themselves, for steps whose length they
// choose. changes says whether the parameters change from step to step.
func (p *Point) Paced(changes bool) bool { return !changes || p.Values != nil && p.Values.isExact() }

// giveSource is the source of a function that sets the parameters of a stage for a step.
func (n *plan) giveSource() string {
	var b strings.Builder
	fmt.Fprintf(&b, "enum { SLOT_NUMBERS = %d };\ntemplate <typename G>\n", n.totals())
	b.WriteString("__device__ inline void give(const G &given, long long step, double start, double length) {\n")
	if v := n.point.Values; n.table != nil && v != nil {
		b.WriteString("\tParameters &p = const_cast<Parameters &>(frame_of(given, step).parameters);\n")
		number := weight(domain.Float64)
		fmt.Fprintf(&b, "\tconst double t = start + ((double)(step - 1) + %s) * length;\n", number(v.part))
		for i := range v.found {
			nodes, result := v.scalars.Nodes(i)
			for k, node := range nodes {
				fmt.Fprintf(&b, "\tconst double v%d_%d = %s;\n", i, k, v.nodeSource(i, node))
			}
			fmt.Fprintf(&b, "\tp.Values[%d] = v%d_%d;\n", i, i, result)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// nodeSource is the source of a node of the i-th value.
func (v *Values) nodeSource(i int, n stencil.Node) string {
	if n.Op != "" {
		args := make([]any, len(n.Args))
		for k, a := range n.Args {
			args[k] = fmt.Sprintf("v%d_%d", i, a)
		}
		return fmt.Sprintf(operationSource(n.Op, len(args), domain.Float64), args...)
	}
	if variable := slices.Index(v.form.Variables, n.Name); variable >= 0 {
		return fmt.Sprintf("p.Variables[%d]", variable)
	}
	switch n.Name {
	case "":
		return weight(domain.Float64)(n.Number)
	case "dt":
		return "length"
	case "step":
		return "(double)step"
	}
	return n.Name
}

// A pacer is what a rank's kernel needs to choose the lengths of steps: struct Pacing of courant.cuh.
type pacer struct {
	state  *streams.Memory // struct Paced
	votes  *streams.Memory // the largest speeds of all ranks, twice
	voted  *streams.Memory // addresses of the votes of all ranks
	report *streams.Memory // pinned: struct Paced after a launch
}

// The sizes of struct Pacing, struct Paced and struct CheckPacket.
const (
	pacingBytes = 10 * 8
	pacedBytes  = 5 * 8
	packetBytes = 16
)

// newPacers makes those of the ranks of devices. Closing to frees their memory.
func newPacers(devices []*streams.Device, to *streams.Resources) (all []*pacer, err error) {
	addresses := make([]uint64, len(devices))
	for rank, d := range devices {
		p := &pacer{}
		streams.Into(to, &p.votes)(streams.Upload(d, make([]byte, 2*len(devices)*packetBytes)))
		streams.Into(to, &p.state)(streams.Upload(d, make([]byte, pacedBytes)))
		p.report = to.AllocPinned(d, pacedBytes)
		if err := to.Err(); err != nil {
			return nil, err
		}
		addresses[rank] = p.votes.Address()
		all = append(all, p)
	}
	for rank, d := range devices {
		streams.Into(to, &all[rank].voted)(streams.Upload(d, addresses))
	}
	return all, to.Err()
}

// putPacing appends struct Pacing of a rank.
func (w *words) putPacing(c Courant, pacers []*pacer, rank int) {
	p := pacers[rank]
	w.put(int64(math.Float64bits(c.Distance)), int64(math.Float64bits(c.Until)), 0, 0, int64(p.state.Address()),
		int64(p.votes.Address()), int64(p.voted.Address()), int64(p.report.Address()), int64(len(pacers)), int64(rank))
}

// pacerSpans returns the memory of a rank's pacer, and that of other ranks which it reaches.
func pacerSpans(pacers []*pacer, rank int) (uses, reaches []streams.Span) {
	for other, p := range pacers {
		if other != rank {
			reaches = append(reaches, p.votes.All())
			continue
		}
		uses = append(uses, p.state.All(), p.votes.All(), p.voted.All(), p.report.All())
	}
	return uses, reaches
}

// Paced is the state after a launch of steps whose lengths the kernel chose.
type Paced struct {
	Steps       int64   // of the launch; fewer than requested if Courant ended it
	Now, Length float64 // time after them, and length of the last
}
