package mutation

// fault is a mistake seeded into one file: old, which must occur once, becomes new.
type fault struct {
	name     string
	file     string // from the root of the module
	old, new string
}

// faults are likely mistakes: in senders and receivers, in offsets and boxes, and in the order of waits.
var faults = []fault{
	// Neighbors and directions.
	{"a swapped neighbor", "domain/decomposition.go",
		`c[a] += dir[a]`, `c[a] -= dir[a]`},
	{"a periodic axis that does not wrap", "domain/decomposition.go",
		`if !d.Grid.Periodic[a] {`, `if true {`},
	{"a missing edge", "domain/box.go",
		`if inside && kind > 1 {`, `if inside && kind > 1 && d != (Direction{0, 1, -1}) {`},
	{"a missing corner", "domain/box.go",
		`if inside && kind > 1 {`, `if inside && kind > 1 && d != (Direction{1, -1, 1}) {`},
	{"a message to the wrong subdomain", "halo/plan.go",
		`p.message(rank, to, dir)`, `p.message(rank, (to+1)%len(p.Placement.Subdomains), dir)`},
	{"faces alone, whatever the connectivity", "halo/plan.go",
		`<= int(s.Connectivity)+1`, `<= 1`},

	// Boxes.
	{"a send box one layer off", "domain/exchange.go",
		`box.Lo[a] = max(box.Lo[a], box.Hi[a]-layers)`, `box.Lo[a], box.Hi[a] = box.Hi[a]-layers-1, box.Hi[a]-1`},
	{"a send box of the other side's width", "domain/exchange.go",
		`return w.Minus[a]`, `return w.Plus[a]`},
	{"a ghost box on the wrong side", "domain/exchange.go",
		`box.Lo[a], box.Hi[a] = box.Hi[a], box.Hi[a]+w.Plus[a]`, `box.Lo[a], box.Hi[a] = box.Lo[a]-w.Plus[a], box.Lo[a]`},
	{"boxes of the grid for a staggered field", "halo/plan.go",
		`p.Staggered(s.Stagger))`, `p.Decomposition)`},

	// Messages and memory.
	{"all fields but the first left out", "halo/plan.go",
		"range p.Specs {\n\t\tif !reaches", "range p.Specs[:1] {\n\t\tif !reaches"},
	{"the last component left out", "halo/plan.go",
		`for c := range count {`, `for c := range max(1, count-1) {`},
	{"components a stride of elements apart, not of bytes", "halo/field.go",
		`int64(component) * a.Layout.Bytes()`, `int64(component) * a.Layout.Length`},
	{"a message unpacked from its start", "halo/exchanger.go",
		`pack.Unpack(dst, p.Ghost, in.Part(p.Offset,`, `pack.Unpack(dst, p.Ghost, in.Part(0,`},
	{"rows as far apart as they are long", "kernels/pack/box_copier.go",
		`a.Layout.Offset(box.Lo), a.Layout.Pitch,`, `a.Layout.Offset(box.Lo), int64(box.Size()[0]),`},
	{"planes of a message that overlap", "kernels/pack/box_copier.go",
		`int64(size[0]) * int64(size[1])}`, `int64(size[0])}`},
	{"contiguous across ghosts that are exchanged", "domain/layout.go",
		`return idle[a] && b.Lo[a]`, `return b.Lo[a]`},
	{"a periodic axis taken for idle", "halo/plan.go",
		`p.Placement.Parts[a] == 1 && !p.Placement.Grid.Periodic[a]`, `p.Placement.Parts[a] == 1`},
	{"staged, but never taken from the host", "p2p/path.go",
		`[]leg{{host, r.src}}, []leg{{r.dst, host}}`, `[]leg{{host, r.src}}, nil`},

	// Order.
	{"Start: no wait for the producer", "halo/transfer.go",
		`c.sendStream.Wait(c.ready)`, `error(nil)`},
	{"Start: no wait for the receiver to be ready", "halo/transfer.go",
		`range c.to {`, `range c.to[:0] {`},
	{"Start: no wait for the message", "halo/transfer.go",
		`range c.from {`, `range c.from[:0] {`},
	{"Receive: no wait for the message", "streams/worker_group.go",
		"\treturn on.Wait(s.event(n))", "\treturn nil"},
	{"Wait: not for what arrives", "halo/start.go",
		`done := c.received`, `done := c.sent`},
	{"Wait: not for what leaves", "halo/transfer.go",
		`c.receiveStream.Wait(c.sent)`, `error(nil)`},
}
