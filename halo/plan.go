package halo

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Message is the data that one subdomain sends to a neighbor in one exchange: points of every field, in one
// piece, for all directions in which it is the neighbor. Some contiguous faces are separate messages, see
// Plan.
type Message struct {
	From, To   int              // ranks
	Dir        domain.Direction // from the sender; of several directions the leading one, see domain.Leading
	Parts      []Part           // in the order of their offsets
	Bytes      int64            // including the alignment of parts
	Contiguous bool             // a single part, copied without packing
	Path       p2p.Path         // between the two devices
	Why        string           // reason for the path, for people
}

// isStored reports whether the sender stores the message directly into the ghosts.
func (m Message) isStored() bool { return m.Path.Traits().Stored }

// Part is the share of a message from one array in one direction.
type Part struct {
	Dir              domain.Direction // from the sender
	Field, Component int              // indices of the field in the plan, and of the array in the field
	Send             domain.Box       // owned by the sender
	Ghost            domain.Box       // of the receiver, of the same size
	Offset, Bytes    int64            // in the message
}

// Plan lists the messages of an exchange of some fields: one from a subdomain to each neighbor, even if it is
// the neighbor in several directions (as in a ring of two) or the subdomain itself.
//
// A part that is contiguous at both ends is a separate message if it has 64 KiB or more: packing it would
// read and write its bytes once more at either end, and the launch that packing saves takes no longer than
// moving about that many bytes. Shorter contiguous parts are separate if they are the only one or two of a
// pair, since a joined message is packed, copied and unpacked. On path direct, where nothing is packed, all
// parts of a pair are one message.
type Plan struct {
	Placement *Placement              // devices of the subdomains
	Specs     []Spec                  // one per field
	Messages  []Message               // messages of one exchange
	cuts      []*domain.Decomposition // by field: decomposition of its points
}

// Bytes returns the bytes that one exchange sends from device to device, without copies within a device and
// without alignment.
func (p *Plan) Bytes() int64 {
	sum := int64(0)
	for _, m := range p.Messages {
		if p.Placement.onOneDevice(m.From, m.To) {
			continue
		}
		for _, part := range m.Parts {
			sum += part.Bytes
		}
	}
	return sum
}

// partAlignment is the alignment of parts within a message, in bytes.
const partAlignment = 16

// add appends a part to the message.
func (m *Message) add(p Part) {
	p.Offset = (m.Bytes + partAlignment - 1) / partAlignment * partAlignment
	m.Parts = append(m.Parts, p)
	m.Bytes = p.Offset + p.Bytes
}

// hasGaps reports whether a field of the plan has values with gaps.
func (p *Plan) hasGaps() bool {
	for _, s := range p.Specs {
		if s.hasGaps() {
			return true
		}
	}
	return false
}

// NewPlan plans the exchange of the ghosts of all fields of a placement together. Every message takes path
// want. Auto or "" means the Path of the placement or, if that is empty, the fastest path of the link for the size
// of the message, or Direct for all messages if one kernel per GPU is faster for the whole exchange. It is an
// error if a link does not support the path, or if the ghosts are wider than a neighbor's subdomain.
func NewPlan(p *Placement, links *p2p.Links, want p2p.Path, specs ...Spec) (*Plan, error) {
	plan, err := planMessages(p, specs)
	if err != nil {
		return nil, err
	}
	if links == nil {
		return nil, fmt.Errorf("halo: the links of a plan are nil: see p2p.Discover")
	}
	if err := plan.choosePaths(links, p.wanted(want)); err != nil {
		return nil, err
	}
	plan.joinDirect()
	return plan, nil
}

// planMessages plans messages without paths. It does not use any device.
func planMessages(p *Placement, specs []Spec) (*Plan, error) {
	if err := p.usable(); err != nil {
		return nil, err
	}
	plan := &Plan{Placement: p}
	if len(specs) == 0 {
		return nil, fmt.Errorf("halo: a plan must have at least one field")
	}
	for _, s := range specs {
		s = s.filled()
		if err := s.check(p.Decomposition); err != nil {
			return nil, err
		}
		plan.Specs = append(plan.Specs, s)
		plan.cuts = append(plan.cuts, p.Staggered(s.Stagger))
	}
	if err := plan.checkSize(); err != nil {
		return nil, err
	}
	for _, s := range p.Subdomains {
		if err := plan.addFrom(s.Rank); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// maxPlanBytes is the limit for the bytes of all fields of a plan: each point goes in at most 26 directions,
// so sums over messages fit in 64 bits.
const maxPlanBytes = 1 << 58

// checkSize returns an error if the fields exceed maxPlanBytes.
func (p *Plan) checkSize() error {
	sum := 0.0
	for i, s := range p.Specs {
		count, _ := s.Arrays()
		for _, sub := range p.cuts[i].Subdomains {
			l, err := s.layout(sub.Box)
			if err != nil {
				return err
			}
			sum += float64(count) * float64(l.Bytes())
		}
	}
	if sum > maxPlanBytes {
		return fmt.Errorf("halo: the fields of a plan must have at most 2^58 bytes, got %g", sum)
	}
	return nil
}

// addFrom adds the messages sent by a subdomain.
func (p *Plan) addFrom(rank int) error {
	var all []Message // one per direction
	for _, dir := range domain.Directions(p.Placement.Grid.Dims) {
		to, ok := p.Placement.Neighbor(rank, dir)
		if !ok {
			continue
		}
		m := p.message(rank, to, dir)
		if len(m.Parts) == 0 {
			continue // no field needs it
		}
		var err error
		if m.Contiguous, err = p.contiguous(m); err != nil {
			return err
		}
		all = append(all, m)
	}
	p.Messages = append(p.Messages, joinPacked(all)...)
	return nil
}

// message returns the message from one subdomain to its neighbor in a direction; it has no parts if no field
// needs any.
func (p *Plan) message(from, to int, dir domain.Direction) Message {
	m := Message{From: from, To: to, Dir: dir}
	for i, s := range p.Specs {
		if !reaches(s, dir) || s.IsConstant() {
			continue
		}
		cut := p.cuts[i]
		count, _ := s.Arrays()
		for c := range count {
			send := domain.SendBox(cut.Subdomains[from].Box, dir, s.WidthOf(c))
			if send.Empty() {
				continue
			}
			ghost := domain.GhostBox(cut.Subdomains[to].Box, dir.Opposite(), s.WidthOf(c))
			m.add(Part{Dir: dir, Field: i, Component: c, Send: send, Ghost: ghost, Bytes: send.Points() * s.moved()})
		}
	}
	return m
}

// reaches reports whether the field needs the neighbor in that direction.
func reaches(s Spec, dir domain.Direction) bool {
	return dir[0]*dir[0]+dir[1]*dir[1]+dir[2]*dir[2] <= int(s.Connectivity)+1
}

// contiguous reports whether the message is contiguous at both ends.
func (p *Plan) contiguous(m Message) (bool, error) {
	if len(m.Parts) != 1 {
		return false, nil
	}
	part := m.Parts[0]
	s := p.Specs[part.Field]
	if s.hasGaps() {
		return false, nil
	}
	cut := p.cuts[part.Field]
	idle := p.idleAxes()
	var length [2]int64
	for i, end := range []struct {
		rank int
		box  domain.Box
	}{{m.From, part.Send}, {m.To, part.Ghost}} {
		l, err := s.layout(cut.Subdomains[end.rank].Box)
		if err != nil {
			return false, err
		}
		if !l.Contiguous(end.box, idle) {
			return false, nil
		}
		_, length[i] = l.Range(end.box)
	}
	return length[0] == length[1], nil
}

// idleAxes returns the axes along which nothing is exchanged.
func (p *Plan) idleAxes() (idle [3]bool) {
	for a := range idle {
		idle[a] = p.Placement.Parts[a] == 1 && !p.Placement.Grid.Periodic[a]
	}
	return idle
}

// minContiguous is the minimum size in bytes of a contiguous message that is sent separately, see Plan.
const minContiguous = 64 << 10

// oneOf joins several messages from one subdomain to another into one, with the parts field by field.
func oneOf(all []Message) Message {
	m := all[0]
	if len(all) == 1 {
		return m
	}
	m.Parts, m.Bytes, m.Contiguous = nil, 0, false
	var directions []domain.Direction
	var parts []Part
	for _, one := range all {
		parts = append(parts, one.Parts...)
	}
	slices.SortStableFunc(parts, func(p, q Part) int { return cmp.Compare(p.Field, q.Field) })
	for _, p := range parts {
		directions = append(directions, p.Dir)
		m.add(p)
	}
	m.Dir = domain.Leading(m.From, m.To, directions)
	return m
}

// joinPacked joins the messages of a subdomain, one per direction, into one per neighbor, except for
// contiguous ones that are better sent separately.
func joinPacked(all []Message) []Message {
	isLong := func(m Message) bool { return m.Contiguous && m.Bytes >= minContiguous }
	worth := map[int]bool{}
	short := map[int]int{} // by neighbor: contiguous messages below minContiguous
	for _, m := range all {
		if m.Contiguous && !isLong(m) {
			short[m.To]++
		}
		worth[m.To] = worth[m.To] || !m.Contiguous || short[m.To] > copiesOfPacked
	}
	return joinWhere(all, func(m Message) bool { return !isLong(m) && worth[m.To] })
}

// copiesOfPacked is the maximum number of separate copies that replace packing, sending and unpacking.
const copiesOfPacked = 2

// joinDirect joins the messages of each pair that are stored into ghosts.
func (p *Plan) joinDirect() {
	p.Messages = joinWhere(p.Messages, Message.isStored)
}

// joinWhere joins the messages between the same two subdomains for which join returns true. The joined
// message takes the place of the first.
func joinWhere(all []Message, join func(Message) bool) (left []Message) {
	groups := map[[2]int][]Message{}
	for _, m := range all {
		if join(m) {
			groups[[2]int{m.From, m.To}] = append(groups[[2]int{m.From, m.To}], m)
		}
	}
	for _, m := range all {
		if !join(m) {
			left = append(left, m)
			continue
		}
		if group := groups[[2]int{m.From, m.To}]; len(group) > 0 {
			left = append(left, oneOf(group))
			groups[[2]int{m.From, m.To}] = nil
		}
	}
	return left
}

// choosePaths sets the path of every message.
func (p *Plan) choosePaths(links *p2p.Links, want p2p.Path) (err error) {
	devices := p.Placement.Devices
	for i := range p.Messages {
		m := &p.Messages[i]
		if p.setProcessPath(m) {
			continue
		}
		if m.Path, m.Why, err = links.Choose(want, devices[m.From], devices[m.To], shapeOf(*m)); err != nil {
			return err
		}
	}
	if want == p2p.Auto && p.Path() != string(p2p.Direct) {
		p.preferDirect(links)
	}
	return nil
}

// setProcessPath sets the path of a message unless this process has both of its ends.
func (p *Plan) setProcessPath(m *Message) bool {
	from, to := p.Placement.Owners[m.From], p.Placement.Owners[m.To]
	switch {
	case from != to:
		m.Path, m.Why = p2p.MPI, p.Placement.whyMPI(from, to)
	case !p.Placement.IsLocal(m.From):
		m.Path, m.Why = "", fmt.Sprintf("within %s", p.Placement.Processes.Name(from))
	default:
		return false
	}
	return true
}

// whyMPI explains why a message between two processes takes path mpi.
func (p *Placement) whyMPI(from, to int) string {
	all := p.Processes
	switch {
	case all.Maps(from, to):
		return fmt.Sprintf("from rank %d to rank %d of host %s: into its memory", from, to, all.Hosts[from])
	case all.Nodes[from] == all.Nodes[to]:
		return fmt.Sprintf("from rank %d to rank %d of host %s: processes do not share memory", from, to,
			all.Hosts[from])
	}
	return fmt.Sprintf("from %s to %s: another host", all.Name(from), all.Name(to))
}

func shapeOf(m Message) p2p.MessageShape {
	return p2p.MessageShape{Bytes: m.Bytes, Packed: !m.Contiguous}
}

// preferDirect sets path direct for all messages if it is possible and, according to measurements, one kernel
// per GPU is faster than the fastest path of each message. Without measurements it is preferred, since it
// needs one launch per GPU.
func (p *Plan) preferDirect(links *p2p.Links) {
	if !p.canBeDirect(links) {
		return
	}
	why := "one kernel per GPU does the whole exchange"
	together, each, ok := p.forecast(links.Model)
	if ok {
		if together > each {
			return
		}
		why = fmt.Sprintf("%s: %s; message by message %s", why, p2p.Microseconds(together), p2p.Microseconds(each))
	}
	for i := range p.Messages {
		if m := &p.Messages[i]; m.From != m.To {
			m.Path, m.Why = p2p.Direct, why
		}
	}
}

// canBeDirect reports whether one kernel per GPU can do the whole exchange: every subdomain has its own GPU,
// all links are usable, and no values have gaps.
func (p *Plan) canBeDirect(links *p2p.Links) bool {
	devices := p.Placement.Devices
	if !p.Placement.Processes.IsAlone() || !haveOwnGPUs(devices) || p.hasGaps() {
		return false
	}
	for _, m := range p.Messages {
		if m.From == m.To {
			continue
		}
		if link := links.Between(devices[m.From], devices[m.To]); link == nil || !link.Usable {
			return false
		}
	}
	return true
}

// haveOwnGPUs reports whether the devices of the subdomains are different GPUs.
func haveOwnGPUs(devices []*streams.Device) bool {
	seen := map[*streams.Device]bool{}
	for _, d := range devices {
		if seen[d] || d.GoKernels {
			return false
		}
		seen[d] = true
	}
	return true
}

// forecast returns how long the device with the longest sends is busy: with one kernel for all messages, and
// with the current path of each. ok is false if that was not measured.
func (p *Plan) forecast(model *p2p.LinkModel) (together, each time.Duration, ok bool) {
	for rank := range p.Placement.Devices {
		out := p.outgoing(rank)
		var sum, slowest time.Duration
		total := p2p.MessageShape{}
		for _, m := range out {
			total.Bytes += m.Bytes
		}
		for _, m := range out {
			t, known := p.time(model, m, m.Path, shapeOf(m))
			d, knownDirect := p.time(model, m, p2p.Direct, total)
			if !known || !knownDirect {
				return 0, 0, false
			}
			sum, slowest = sum+t, max(slowest, d)
		}
		together, each = max(together, slowest), max(each, sum)
	}
	return together, each, true
}

// outgoing returns the messages of a rank to other ranks.
func (p *Plan) outgoing(rank int) (out []Message) {
	for _, m := range p.Messages {
		if m.From == rank && m.To != rank {
			out = append(out, m)
		}
	}
	return out
}

// time returns the time of a message over a path.
func (p *Plan) time(model *p2p.LinkModel, m Message, path p2p.Path, shape p2p.MessageShape) (time.Duration, bool) {
	return model.Time(p.Placement.Devices[m.From], p.Placement.Devices[m.To], path, shape)
}

// Path returns the path of all messages between different devices, "" if there are none, and "mixed" if they
// differ. Messages within other processes are ignored.
func (p *Plan) Path() string {
	path := ""
	for _, m := range p.Messages {
		switch {
		case p.Placement.onOneDevice(m.From, m.To) || m.Path == "":
		case path == "":
			path = string(m.Path)
		case path != string(m.Path):
			return "mixed"
		}
	}
	return path
}

// crossesProcesses reports whether a message goes from one process to another.
func (p *Placement) crossesProcesses(m Message) bool {
	return p.Owners[m.From] != p.Owners[m.To]
}

// mostBetween returns the maximum number of messages from one process to another.
func (p *Plan) mostBetween() (most int) {
	count := map[[2]int]int{}
	for _, m := range p.Messages {
		if p.Placement.crossesProcesses(m) {
			ends := [2]int{p.Placement.Owners[m.From], p.Placement.Owners[m.To]}
			count[ends]++
			most = max(most, count[ends])
		}
	}
	return most
}

// agree returns the error or, if processes share the grid of the plan, an error if any of them has one. All
// processes call it.
func (p *Plan) agree(what string, err error) error {
	if p == nil {
		return err
	}
	return p.Placement.Agree(context.Background(), what, err)
}

// compare returns an error, on all processes, unless they plan the same messages between each other.
// Otherwise messages would be received into wrong places.
func (p *Plan) compare() error {
	processes := p.Placement.Processes
	mine := p.fingerprint()
	all, err := mpi.Gather(context.Background(), processes, "compare plans of an exchange", mine)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if string(other) != string(mine) {
			return fmt.Errorf(
				"halo: %s plans a different exchange than %s: all must plan the same exchanges in the same order",
				processes.Name(rank), processes.Name(processes.Rank))
		}
	}
	return nil
}

// fingerprint is equal for plans with the same messages between processes.
func (p *Plan) fingerprint() []byte {
	hash := fnv.New128a()
	fmt.Fprintln(hash, p.Placement.Grid, p.Placement.Parts, p.Placement.Owners)
	for _, m := range p.Messages {
		if p.Placement.crossesProcesses(m) {
			fmt.Fprintln(hash, m.From, m.To, m.Bytes, m.Parts)
		}
	}
	return hash.Sum(nil)
}
