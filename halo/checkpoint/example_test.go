package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/streams"
)

// A program writes checkpoints while it counts in all points of a field, and continues from the newest one, here on
// another number of devices.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "checkpoints-*")
	if err != nil {
		fmt.Println(err)
	}
	defer os.RemoveAll(folder)
	count := func(devices int) error {
		session, err := halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: devices})
		if err != nil {
			return err
		}
		defer session.Close()
		spec := halo.Spec{Name: "u", Element: halo.Float64}
		place, err := session.Cut(ctx, halo.Cutting{Size: []int{40, 30}, Fields: []halo.Spec{spec}})
		if err != nil {
			return err
		}
		field, err := halo.NewField(place, spec)
		if err != nil {
			return err
		}
		u := checkpoint.Array{Name: "u", Field: field}

		step, options := int64(0), checkpoint.Options{Folder: folder, Keep: 2}
		var state struct { // needed in addition to the field
			Time float64 `json:"time"`
		}
		switch c, rejected, err := checkpoint.Find(ctx, place.Processes, folder); {
		case errors.Is(err, checkpoint.ErrNone):
		case err != nil:
			return err
		default:
			for _, why := range rejected {
				fmt.Println("warning:", why)
			}
			if err := errors.Join(c.Read(ctx, u.Name, u.Field), c.Attributes(&state)); err != nil {
				return err
			}
			step, options.Run = c.Step, c.Run
		}
		w, err := checkpoint.NewWriter(ctx, options, u)
		if errors.Is(err, checkpoint.ErrOtherRun) {
			return fmt.Errorf("must be a folder without checkpoints: %w", err)
		}
		if err != nil {
			return err
		}
		first := step + 1
		for range 20 {
			step, state.Time = step+1, state.Time+0.5
			if err := halo.FillPoints(field, func(domain.Vec) float64 { return float64(step) }); err != nil {
				return err
			}
			if step%5 == 0 {
				if err := w.Write(ctx, step, state, u); err != nil { // returns while it is written
					return err
				}
			}
		}
		if err := errors.Join(w.Wait(ctx), w.Status().Err, w.Write(ctx, step, state, u), w.Close(ctx)); err != nil {
			return err
		}
		fmt.Printf("%d devices: steps %d to %d, time %g\n", devices, first, w.Status().Step, state.Time)
		return nil
	}
	for _, devices := range []int{2, 3} {
		if err := count(devices); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 2 devices: steps 1 to 20, time 10
	// 3 devices: steps 21 to 40, time 20
}
