package halo

import "github.com/halox/halox/domain"

// PartsAmong is how a session cuts a grid over hosts with so many devices each.
func PartsAmong(grid domain.Grid, c Cutting, byHost []int) (domain.Vec, func(domain.Subdomain) int, error) {
	sum := 0
	for _, n := range byHost {
		sum += n
	}
	return partsAmong(grid, c, sum, byHost)
}

// ShareOf is which devices a process takes.
var ShareOf = Devices.part

// FirstPair is between which processes messages are measured.
var FirstPair = firstPair

// PlanOf returns the plan that an exchanger carries out.
func PlanOf(x *Exchanger) *Plan { return x.plan }
