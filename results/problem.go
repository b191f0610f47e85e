package results

import (
	"encoding/json"
	"strings"

	"github.com/halox/halox/results/internal/wording"
)

// problem is the few settings that name a problem.
type problem struct {
	Solver    string
	Precision string
	Grid      struct{ Size []int }
}

// problemOf reads a problem out of settings of any type, by way of their JSON form.
// Of settings without one it is empty.
func problemOf(settings any) (p problem) {
	data, err := json.Marshal(settings)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return problem{}
	}
	return p
}

func (p problem) String() string {
	return wording.Join(", ", strings.TrimSpace(p.Solver+" "+wording.Times(p.Grid.Size)), p.Precision)
}
