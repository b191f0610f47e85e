package compare

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// measured is what came out on some devices.
type measured struct {
	what, report   string
	devices, ranks int
	us             [][]float64 // by method: what an iteration took in each sample, in order of size
	model          float64     // us; 0: there is none
	sum            uint32
}

// table prints what an iteration takes by each method on each number of devices, in microseconds: the median, the least
// and the most of all samples, and how many times as long as by ranks. Two columns are there where they have numbers:
// what the model says of ranks, and the efficiency of weak scaling.
func table(out io.Writer, o Options, all []measured) error {
	head := []string{"method", "devices", "ranks a device", "iteration [us]", "least", "most", "over ranks"}
	modelled := all[0].model > 0
	if modelled {
		head = append(head, "model [us]")
	}
	if o.Scaling {
		head = append(head, "efficiency")
	}
	rows := [][]string{head}
	for _, m := range all {
		byRanks := slices.Index(o.Methods, Ranks)
		for i, name := range o.Methods {
			count, ratio, model := "-", "-", "-"
			if name == Ranks {
				count, model = strconv.Itoa(m.ranks), digits(m.model)
			}
			if byRanks >= 0 {
				ratio = fmt.Sprintf("%.2f", median(m.us[i])/median(m.us[byRanks]))
			}
			row := []string{name, strconv.Itoa(m.devices), count, digits(median(m.us[i])), digits(m.us[i][0]), digits(m.us[i][len(m.us[i])-1]), ratio}
			if modelled {
				row = append(row, model)
			}
			if o.Scaling {
				row = append(row, fmt.Sprintf("%.2f", median(all[0].us[i])/median(m.us[i])))
			}
			rows = append(rows, row)
		}
	}
	if o.CSV {
		return csv.NewWriter(out).WriteAll(rows)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// digits writes a time with three or more digits.
func digits(us float64) string { return fmt.Sprintf("%.*f", max(0, 2-int(math.Log10(max(1, us)))), us) }

// median of numbers in order of size.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
