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

// Message is what one subdomain sends a neighbour in one exchange: points of
// every field, in one piece, for all directions in which it is the neighbour. Faces that
// travel as they lie are messages of their own, see Plan.
type Message struct {
	From, To   int              // ranks
	Dir        domain.Direction // from the sender's side; of several directions one, see domain.Leading
	Parts      []Part
	Bytes      int64    // with what aligns the parts
	Contiguous bool     // a single part, which travels as it lies, not packed
	Path       p2p.Path // between the two devices
	Why        string   // why that path
}

// isStored reports whether the sender stores the message straight into the ghosts.
func (m Message) isStored() bool { return m.Path.Traits().Stored }

// Part is what a message carries of one array in one direction.
type Part struct {
	Dir              domain.Direction // from the sender's side
	Field, Component int
	Send             domain.Box // owned by the sender
	Ghost            domain.Box // of the receiver, of the same size
	Offset, Bytes    int64      // in the message
}

// Plan lists the messages of an exchange of some fields: one from a subdomain to each neighbour,
// be it that in several directions, as around a ring of two, or its own.
//
// But what can travel as it lies, in one piece at both ends, is a message of its own if it has
// 64 KiB or more: joined, its bytes would be read and written once more at either end, and the
// launch of a copy that is spared takes no longer than to move about that many. Shorter ones are
// if they are the only ones of a pair, one or two: a joined message is packed, copied and unpacked.
// Over path direct, where nothing is packed, all of a pair is one message.
type Plan struct {
	Placement *Placement
	Specs     []Spec
	Messages  []Message
	cuts      []*domain.Decomposition // by field: of its own points
}

// Bytes returns what one exchange sends of points from device to device. What stays on a
// device does not count, nor what aligns parts in a message.
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

// partAlignment is what parts are aligned to within a message.
const partAlignment = 16

// add adds a part behind those that the message has.
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

// NewPlan plans the exchange of the ghosts of all fields of a placement together.
// Every message takes the path that is wanted. With Auto that is the Path of the placement, or where
// it has none the fastest that its link has for a message of its size, or Direct for all where one
// kernel per GPU does the whole exchange in less time. It is an error to want a path that a link cannot give,
// and to need more layers than a neighbour owns.
func NewPlan(p *Placement, links *p2p.Links, want p2p.Path, specs ...Spec) (*Plan, error) {
	plan, err := planMessages(p, specs)
	if err != nil {
		return nil, err
	}
	if links == nil {
		return nil, fmt.Errorf("halo: a plan without links: see p2p.Discover")
	}
	if err := plan.choosePaths(links, p.wanted(want)); err != nil {
		return nil, err
	}
	plan.joinDirect()
	return plan, nil
}

// planMessages plans messages that have no paths yet. It looks at no device.
func planMessages(p *Placement, specs []Spec) (*Plan, error) {
	if err := p.usable(); err != nil {
		return nil, err
	}
	plan := &Plan{Placement: p}
	if len(specs) == 0 {
		return nil, fmt.Errorf("halo: a plan for no field")
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

// maxPlanBytes is how many bytes the fields of a plan have together: each point goes in 26 directions at most, so
// that sums over messages stay within 64 bits.
const maxPlanBytes = 1 << 58

// checkSize returns an error if the fields have more.
func (p *Plan) checkSize() error {
	sum := 0.0
	for i, s := range p.Specs {
		count, bytes := s.Arrays()
		for _, sub := range p.cuts[i].Subdomains {
			l, err := domain.NewLayout(sub.Box, s.Width, bytes)
			if err != nil {
				return err
			}
			sum += float64(count) * float64(l.Bytes())
		}
	}
	if sum > maxPlanBytes {
		return fmt.Errorf("halo: a plan for fields of %g bytes; must be at most 2^58", sum)
	}
	return nil
}

// addFrom adds the messages of a subdomain.
func (p *Plan) addFrom(rank int) error {
	var all []Message // one per direction
	for _, dir := range domain.Directions(p.Placement.Grid.Dims) {
		to, ok := p.Placement.Neighbour(rank, dir)
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

// message returns what goes from one subdomain to its neighbour in a direction;
// it has no parts if no field needs any.
func (p *Plan) message(from, to int, dir domain.Direction) Message {
	m := Message{From: from, To: to, Dir: dir}
	for i, s := range p.Specs {
		if !reaches(s, dir) {
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

// reaches reports whether the field has neighbours in that direction.
func reaches(s Spec, dir domain.Direction) bool {
	return dir[0]*dir[0]+dir[1]*dir[1]+dir[2]*dir[2] <= int(s.Connectivity)+1
}

// contiguous reports whether the message can travel as it lies at both ends.
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
	_, bytes := s.Arrays()
	idle := p.idleAxes()
	var length [2]int64
	for i, end := range []struct {
		rank int
		box  domain.Box
	}{{m.From, part.Send}, {m.To, part.Ghost}} {
		l, err := domain.NewLayout(cut.Subdomains[end.rank].Box, s.Width, bytes)
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

// minAsItLies is how many bytes a message that can travel as it lies has at least to do so beside
// one that is packed, see Plan.
const minAsItLies = 64 << 10

// oneOf returns one message of several from one subdomain to another, with the parts field by field.
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

// joinPacked joins the messages of a subdomain, one per direction, to one for each neighbour, except
// for those that are better sent as they lie.
func joinPacked(all []Message) []Message {
	isLong := func(m Message) bool { return m.Contiguous && m.Bytes >= minAsItLies }
	worth := map[int]bool{}
	short := map[int]int{} // to a neighbour, that could travel as they lie
	for _, m := range all {
		if m.Contiguous && !isLong(m) {
			short[m.To]++
		}
		worth[m.To] = worth[m.To] || !m.Contiguous || short[m.To] > copiesOfPacked
	}
	return joinWhere(all, func(m Message) bool { return !isLong(m) && worth[m.To] })
}

// copiesOfPacked is how many copies a message may have in place of being packed, sent and
// unpacked.
const copiesOfPacked = 2

// joinDirect joins the messages of each pair that are stored into ghosts.
func (p *Plan) joinDirect() {
	p.Messages = joinWhere(p.Messages, Message.isStored)
}

// joinWhere joins the messages from one subdomain to another of which join is true. What is
// joined takes the place of the first.
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

// choosePaths gives every message its path.
func (p *Plan) choosePaths(links *p2p.Links, want p2p.Path) (err error) {
	devices := p.Placement.Devices
	for i := range p.Messages {
		m := &p.Messages[i]
		if p.acrossProcesses(m) {
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

// acrossProcesses gives a message its path if this process does not have both of its ends.
func (p *Plan) acrossProcesses(m *Message) bool {
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

// whyMPI says why a message between two processes takes path mpi.
func (p *Placement) whyMPI(from, to int) string {
	all := p.Processes
	if all.Nodes[from] == all.Nodes[to] {
		return fmt.Sprintf("from rank %d to rank %d of host %s: a process reaches no other's memory", from, to,
			all.Hosts[from])
	}
	return fmt.Sprintf("from %s to %s: another host", all.Name(from), all.Name(to))
}

func shapeOf(m Message) p2p.MessageShape {
	return p2p.MessageShape{Bytes: m.Bytes, Packed: !m.Contiguous}
}

// preferDirect takes path direct for all messages, where that is possible and one
// kernel a GPU brings them all sooner than each its own fastest path, by what was
// measured. Where nothing was, it does: it spares all but one launch a GPU.
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

// canBeDirect reports whether one kernel a GPU can do the whole exchange: every
// subdomain has a GPU of its own, all links are usable, and no values have gaps.
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

// haveOwnGPUs reports whether the subdomains, one for each device, lie on GPUs, and
// each on another.
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

// forecast returns how long the device that sends longest is busy: with one kernel
// for all messages, and with each over the path that it has. ok is false where that
// was not measured.
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

// outgoing returns the messages of a rank to others.
func (p *Plan) outgoing(rank int) (out []Message) {
	for _, m := range p.Messages {
		if m.From == rank && m.To != rank {
			out = append(out, m)
		}
	}
	return out
}

// time returns how long a message takes between the ends of a message.
func (p *Plan) time(model *p2p.LinkModel, m Message, path p2p.Path, shape p2p.MessageShape) (time.Duration, bool) {
	return model.Time(p.Placement.Devices[m.From], p.Placement.Devices[m.To], path, shape)
}

// Path returns the path that all messages between different devices take, ""
// if there are none, and "mixed" where they differ. Those within other processes do not count.
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

// mostBetween returns how many messages go from one process to another, at most.
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

// agree returns the error, or where processes share the grid of the plan an error if any of them has one. All call it.
func (p *Plan) agree(what string, err error) error {
	if p == nil {
		return err
	}
	return p.Placement.Agree(context.Background(), what, err)
}

// compare returns an error, on all processes, unless they plan the same messages between each
// other: else their bytes would end up anywhere.
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
				"halo: %s plans another exchange than %s: all processes must make the same ones in the same order",
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
