package option

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/halox/halox/streams"
)

// Flag sets an option.
type Flag struct {
	Name string
	// Value points to the option, which holds the default: a bool, int, float64, string or time.Duration, which must
	// be above 0, or a list of int or string. An int64 or a list of int64 is sizes in bytes, such as 64KiB.
	Value any
	Help  string // {} is replaced by the choices

	Choices  []string // valid texts; nil for any
	From, To int      // limits of whole numbers, if To is above 0
	Open     bool     // the option is zero unless the flag is given
	Repeated bool     // a list of numbers may have a number twice
}

// NoLimit is Flag.To of numbers without an upper bound.
const NoLimit = math.MaxInt

// Add adds flags to a command.
func Add(f *pflag.FlagSet, all []Flag) {
	for _, o := range all {
		help := strings.ReplaceAll(o.Help, "{}", strings.Join(o.Choices, ", "))
		switch p := o.Value.(type) {
		case *bool:
			f.BoolVar(p, o.Name, *p, help)
		case *int:
			f.IntVar(p, o.Name, *p, help)
		case *int64:
			f.Var((*byteCount)(p), o.Name, help)
		case *float64:
			f.Float64Var(p, o.Name, *p, help)
		case *string:
			f.StringVar(p, o.Name, *p, help)
		case *time.Duration:
			f.DurationVar(p, o.Name, *p, help)
		case *[]int:
			f.IntSliceVar(p, o.Name, *p, help)
		case *[]string:
			f.StringSliceVar(p, o.Name, *p, help)
		case *[]int64:
			var texts []string
			for _, bytes := range *p {
				texts = append(texts, strings.NewReplacer(" B", "", " ", "").Replace(streams.Size(bytes)))
			}
			f.StringSlice(o.Name, texts, help)
		default:
			panic(fmt.Sprintf("option: no flag sets a %T", p))
		}
	}
}

// byteCount is the value of a flag that takes a size in bytes, or 0.
type byteCount int64

func (b *byteCount) Set(text string) error {
	if text == "0" {
		*b = 0
		return nil
	}
	n, err := parseSize(text)
	*b = byteCount(n)
	return err
}

func (b *byteCount) String() string { return strconv.FormatInt(int64(*b), 10) }

func (b *byteCount) Type() string { return "bytes" }

// Settle completes the options after their flags were parsed, and rejects invalid values.
func Settle(f *pflag.FlagSet, all []Flag) error {
	for _, o := range all {
		if err := o.settle(f); err != nil {
			return err
		}
	}
	return nil
}

func (o Flag) settle(f *pflag.FlagSet) (err error) {
	flag := f.Lookup(o.Name)
	left := o.Open && !flag.Changed
	if list, ok := flag.Value.(pflag.SliceValue); ok && !left && len(list.GetSlice()) == 0 && flag.DefValue != "[]" {
		return fmt.Errorf("--%s: must not be empty%s", o.Name, o.choices())
	}
	switch p := o.Value.(type) {
	case *int:
		return o.within(*p)
	case *time.Duration:
		if *p <= 0 {
			return fmt.Errorf("--%s: must be above 0, such as 20ms, got %v", o.Name, *p)
		}
	case *string:
		if left {
			*p = ""
			return nil
		}
		return o.chosen(*p)
	case *[]string:
		if left {
			*p = nil
		}
		*p = distinct(*p)
		return o.chosen(*p...)
	case *[]int:
		if left {
			*p = nil
		}
		if !o.Repeated {
			*p = distinct(*p)
		}
		return o.within(*p...)
	case *[]int64:
		texts, _ := f.GetStringSlice(o.Name) // it is one
		*p, err = sizes(o.Name, texts)
	}
	return err
}

// choices lists the valid values for messages.
func (o Flag) choices() string {
	if o.Choices == nil {
		return ""
	}
	return "; choose from " + strings.Join(o.Choices, ", ")
}

// chosen rejects values that are not among the choices.
func (o Flag) chosen(values ...string) error {
	for _, v := range values {
		if o.Choices != nil && !slices.Contains(o.Choices, v) {
			return fmt.Errorf("--%s: must be one of %s, got %q", o.Name, strings.Join(o.Choices, ", "), v)
		}
	}
	return nil
}

// within rejects numbers outside the limits.
func (o Flag) within(values ...int) error {
	for _, n := range values {
		switch {
		case o.To == 0 || n >= o.From && n <= o.To:
		case o.To == NoLimit:
			return fmt.Errorf("--%s: must be at least %d, got %d", o.Name, o.From, n)
		default:
			return fmt.Errorf("--%s: must be between %d and %d, got %d", o.Name, o.From, o.To, n)
		}
	}
	return nil
}

// distinct removes repeated values.
func distinct[T comparable](all []T) (some []T) {
	for _, v := range all {
		if !slices.Contains(some, v) {
			some = append(some, v)
		}
	}
	return some
}
