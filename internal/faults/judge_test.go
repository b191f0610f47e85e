package faults

import (
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/results"
)

// A run is started again while it makes progress, and without the devices that are known to be lost.
func TestJudge(t *testing.T) {
	a, b, c := device{"cuda 0", "0:1", ""}, device{"cuda 1", "0:2", ""}, device{"cuda 2", "0:3", ""}
	all := []device{a, b, c}
	type end struct {
		code    command.Code
		step    int64
		setup   bool // no device was opened
		devices []device
		lost    []device
		without []device
		failed  []device // their checks
	}
	lost, diverged := command.DeviceLost, command.Diverged
	for _, tc := range []struct {
		name    string
		allowed int
		ends    []end
		why     string // of the last one; "" if it is started again
	}{
		{"one device", 1, []end{{lost, 40, false, all, []device{b}, []device{b}, nil}}, ""},
		{"all devices: any may have failed first", 1, []end{{lost, 40, false, all, all, nil, nil}}, ""},
		{"one of all fails its check", 1, []end{{lost, 40, false, all, all, []device{b}, []device{b}}}, ""},
		{"two fail, and not the one that was blamed", 1, []end{{lost, 40, false, all, []device{b}, []device{a, c}, []device{a, c}}}, ""},
		{"all fail", 1, []end{{lost, 40, false, all, []device{a, b}, nil, all}}, ""},
		{"of two that are blamed none fails", 1, []end{{lost, 40, false, all, []device{a, b}, nil, nil}}, ""},
		{"a name without bus id", 1, []end{{lost, 40, false, all, []device{{Name: "cuda 1"}}, []device{{Name: "cuda 1"}}, nil}}, ""},
		{"as many as are allowed", 2, []end{{killed, 40, false, all, nil, nil, nil}, {killed, 50, false, all, nil, nil, nil},
			{killed, 60, false, all, nil, nil, nil}}, "allows 2 restarts"},
		{"no progress", 3, []end{{killed, 40, false, all, nil, nil, nil}, {killed, 40, false, all, nil, nil, nil}}, "no further than step 40 before"},
		{"no progress elsewhere", 3, []end{{lost, 40, false, all, []device{b}, []device{b}, nil}, {lost, 40, false, []device{a, c}, []device{a}, []device{a}, nil}},
			"on other devices, so the problem is the cause"},
		{"progress", 3, []end{{lost, 40, false, all, []device{b}, []device{b}, nil}, {lost, 41, false, []device{a, c}, []device{a}, []device{a}, nil}}, ""},
		{"one that cannot be opened does not count", 1, []end{{killed, 40, false, all, nil, nil, nil}, {lost, 30, true, all, []device{b}, []device{b}, nil}}, ""},
		{"nor does the first", 1, []end{{lost, 0, true, nil, []device{{Name: "cuda 1"}}, []device{{Name: "cuda 1"}}, nil}, {killed, 40, false, all, nil, nil, nil}}, ""},
		{"the only one cannot be opened", 3, []end{{lost, 0, true, []device{a}, []device{a}, nil, nil}, {lost, 0, true, []device{a}, []device{a}, nil, nil}}, "no further"},
		{"diverges once", 1, []end{{diverged, 40, false, all, nil, nil, nil}}, ""},
		{"diverges again", 3, []end{{diverged, 40, false, all, nil, nil, nil}, {diverged, 60, false, all, nil, nil, nil}}, "before a restart too"},
		{"diverges after another fault", 2, []end{{killed, 40, false, all, nil, nil, nil}, {diverged, 60, false, all, nil, nil, nil}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := judge{allowed: tc.allowed}
			for i, e := range tc.ends {
				v := j.next(results.Fault{Code: int(e.code), Step: e.step, Devices: names(e.devices)}, !e.setup, e.devices, e.lost, e.failed)
				last := i == len(tc.ends)-1
				if v.again != (!last || tc.why == "") || last && !strings.Contains(v.why, tc.why) {
					t.Errorf("end %d: again %t, %q", i, v.again, v.why)
				}
				if strings.Join(names(v.without), ",") != strings.Join(names(e.without), ",") {
					t.Errorf("end %d: without %v", i, v.without)
				}
			}
		})
	}
}
