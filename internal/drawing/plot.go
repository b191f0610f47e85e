// Package drawing has the commands that draw and print what other commands wrote: halox plot and halox results.
package drawing

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/results/plot"
)

// NewPlotCommand returns the command halox plot.
func NewPlotCommand() *cobra.Command {
	var f plotFlags
	cmd := &cobra.Command{
		Use:   "plot FILE...",
		Short: "Draw fields, probes, records and traces",
		Long: `Draw fields (.npy, .vti, .pvti, .pvd, Zarr groups, checkpoints), tables (.csv), records
and traces (.json).

Of a 3-D field a plane is drawn: the middle of z, or --slice. --line draws values along a
line. Several fields make an animation, or with --line one chart. Their order is that of the
last number in their names, the step; all have the same range of colors and axes. A .pvd
file, a Zarr series and a folder of checkpoints contain several fields. --run takes
coordinates, the time and the boundary values from the record of the run that wrote the
fields, and colors, range and label from its config. Without --run, the axes of a .npy file
are indices.

The columns of a table, such as that of probes, are drawn over its column time, or else
step. --x and --y choose columns.

Each kind of record has a default plot; --kind selects another plot, or a figure of a
paper. A plot has at most six curves, one per scheme with its best value at each point;
--by names labels whose values get curves instead. Several records share a plot: curves with
equal names get the machine, commit or file that distinguishes them. Records of different
machines never share a curve. Error bars are quartiles of repeated measurements. --x, --y
and --by choose the axes and curves, and --where the rows, by the names that halox results
prints. Traces are drawn only without records.`,
		Example: `  halox plot u.npy -o u.png --run run.json --slice z=0.25 --label "temperature (K)"
  halox plot u-*.npy -o u.gif --range 0:1
  halox plot u.pvd -o u.apng --frames-per-second 20
  halox plot u.npy -o profile.svg --line y=0.5,z=16
  halox plot probes.csv -o probes.svg
  halox plot exchange.json -o exchange.svg
  halox plot trace.json -o trace.svg
  halox plot before.json after.json -o both.png --where radius=2 --where fields=4
  halox plot pack.json -o blocks.pdf --where layout=vector --x block --y time --by engine
  halox plot pack.json -o wu-6.svg --kind wu-6`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, files []string) error {
			if f.kind == "list" {
				return listPlots(cmd)
			}
			if err := f.draw(files, cmd.Flags(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "wrote", f.out)
			return command.Of(cmd.Context()).PrintJSON(map[string]string{"wrote": f.out})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "out", "o", "", "draw to this `file` (.png, .svg, .pdf; animations: .gif, .apng)")
	flags.IntVar(&f.size, "size", 0, "width of a .png, .gif or .apng file in `pixels`")
	flags.StringVar(&f.field, "field", "", "`name` of the field in a file with several; default the first")
	flags.StringVar(&f.slice, "slice", "", "`plane` of a field, an index such as z=16 or a coordinate such as z=0.5")
	flags.StringVar(&f.line, "line", "",
		"draw a field along this `line`: an axis; y=0.5,z=16, where it is; or 0,0,0:1,1,1, from point to point")
	flags.StringVar(&f.run, "run", "", "`file` with the record of the run that wrote the fields")
	flags.StringVar(&f.title, "title", "", "title of a field or a table")
	flags.StringVar(&f.label, "label", "", "`name` of the values of a field or a table, with their unit")
	flags.StringVar(&f.colors, "colors", "", "color map of fields: "+strings.Join(plot.ColorMaps(), ", "))
	flags.StringVar(&f.span, "range", "", "range of values of fields, as `min:max`; either may be left out")
	flags.Float64Var(&f.perSecond, "frames-per-second", 10, "speed of an animation")
	flags.StringVar(&f.kind, "kind", "", "`name` of the plot; list prints all")
	flags.StringVar(&f.x, "x", "", "label, parameter, metric or column on the x axis")
	flags.StringVar(&f.y, "y", "", "metric or label on the y axis; columns of a table, separated by commas")
	flags.StringSliceVar(&f.by, "by", nil, "labels that distinguish curves")
	flags.StringArrayVar(&f.where, "where", nil, "only rows with this `label=value`; may be repeated")
	flags.StringToStringVar(&f.peaks, "peak", nil,
		"for a roofline: peak GFLOP/s of the device, as `name=number`; may be repeated")
	names := []string{"list"}
	for name := range allPlots() {
		names = append(names, name)
	}
	command.Complete(cmd, "kind", names)
	command.Complete(cmd, "colors", plot.ColorMaps())
	return cmd
}

// A class is a class of files that are drawn alike.
type class struct {
	name  string   // in errors
	ends  []string // of files; nil for others
	flags []string // flags that it takes, besides those of all
	draw  func(f *plotFlags, names []string, notes io.Writer) error
}

// classes returns the classes of files. The last takes all other files.
func classes() []class {
	return []class{
		{"fields", fieldEnds, []string{
			"field", "slice", "line", "run", "title", "label", "colors", "range", "frames-per-second",
		}, (*plotFlags).drawFields},
		{"tables", []string{".csv"}, []string{"x", "y", "title", "label", "range"}, (*plotFlags).drawTable},
		{"records", nil, []string{"kind", "x", "y", "by", "where", "peak"}, (*plotFlags).drawRecords},
	}
}

// check rejects flags that only other classes take.
func (c *class) check(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(flag *pflag.Flag) {
		var takers []string
		for _, other := range classes() {
			if slices.Contains(other.flags, flag.Name) {
				takers = append(takers, other.name)
			}
		}
		if len(takers) > 0 && !slices.Contains(takers, c.name) {
			err = fmt.Errorf("--%s: must not be set for %s, only for %s", flag.Name, c.name,
				strings.Join(takers, " and "))
		}
	})
	return err
}

// draw draws the files, which must be of one class.
func (f *plotFlags) draw(names []string, flags *pflag.FlagSet, notes io.Writer) error {
	usage := func(err error) error { return command.As(command.Usage, err) }
	if len(names) == 0 {
		return usage(errors.New("FILE: must be at least one file, got none: halox plot FILE... -o OUT.svg"))
	}
	if f.out == "" {
		return usage(errors.New("-o: must name a file, such as -o plot.svg"))
	}
	if f.size != 0 && (f.size < 64 || f.size > 16384) {
		return usage(fmt.Errorf("--size: must be between 64 and 16384, got %d", f.size))
	}
	read := []option.File{{Name: "the record", Path: f.run}}
	var of *class
	all := classes()
	for _, name := range names {
		read = append(read, option.File{Name: "one of the files to draw", Path: name})
		i := slices.IndexFunc(all, func(c class) bool {
			return c.ends == nil || slices.Contains(c.ends, strings.ToLower(filepath.Ext(name))) ||
				c.name == "fields" && isFolder(name)
		})
		if of != nil && of.name != all[i].name {
			return usage(fmt.Errorf("FILE: must be fields, tables or records alone, got %s and %s", names[0], name))
		}
		of = &all[i]
	}
	if err := of.check(flags); err != nil {
		return usage(err)
	}
	out := option.Drawing("-o", f.out)
	if of.name == "fields" {
		out.Ends = append(out.Ends, plot.FilmExtensions()...)
	}
	if err := option.CheckFiles([]option.File{out}, read...); err != nil {
		return usage(err)
	}
	return of.draw(f, names, notes)
}
