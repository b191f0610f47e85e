package halo

// PartsAmong is how a session cuts a grid over hosts with so many devices each.
var PartsAmong = partsAmong

// ShareOf is which devices a process takes.
var ShareOf = Devices.part

// FirstPair is between which processes messages are measured.
var FirstPair = firstPair

// PlanOf returns the plan that an exchanger carries out.
func PlanOf(e *Exchanger) *Plan { return e.plan }

// LeaveOpen makes a session one whose number of devices was not asked for.
func LeaveOpen(s *Session) { s.asked.Count = 0 }
