package halo

// PartsAmong is the decomposition of a grid by a session over hosts with the given numbers of devices.
var PartsAmong = partsAmong

// ShareOf returns the devices that a process takes.
var ShareOf = Devices.part

// FirstPair returns the processes between which messages are measured.
var FirstPair = firstPair

// PlanOf returns the plan of an exchanger.
func PlanOf(e *Exchanger) *Plan { return e.plan }

// LeaveOpen makes a session behave as if no number of devices was requested.
func LeaveOpen(s *Session) { s.asked.Count = 0 }
