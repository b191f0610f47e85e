package faults

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// Check checks a device if the parent has started this process for that: checked is true. It opens no other device, and
// returns an error unless the device keeps what is written to it and a kernel adds it up right.
func (c *Child) Check(ctx context.Context) (checked bool, err error) {
	if c == nil || !c.Plan.Check {
		return false, nil
	}
	_, number, _ := strings.Cut(c.Devices[0].Name, " ")
	id, err := strconv.Atoi(number)
	if c.Hidden {
		id = 0
	}
	if err != nil {
		return true, err
	}
	session, err := halo.Open(ctx, halo.Devices{Backend: streams.Backend(c.Backend()), IDs: []int{id}})
	if err != nil {
		return true, err
	}
	c.say(func(r *report) { r.Devices = []device{c.device(session.Devices[0])} })
	return true, errors.Join(check(ctx, session), session.Close())
}

// check writes a pattern to the device of a session, and compares its sum and what can be read.
func check(ctx context.Context, s *halo.Session) error {
	place, err := s.Cut(ctx, halo.Cutting{Size: []int{256, 256, 16}})
	if err != nil {
		return err
	}
	f, err := halo.NewField(place, halo.Spec{Name: "check", Element: halo.Int64})
	if err != nil {
		return err
	}
	const odd = 0x1e3779b97f4a7c15 // so that all products with it differ
	pattern := func(p domain.Vec) int64 { return odd * int64(p[0]+256*(p[1]+256*p[2])) }
	if err := halo.FillPoints(f, pattern); err != nil {
		return err
	}
	sum, err := halo.NewReduction(f, s.Compiler, halo.Sum)
	if err != nil {
		return err
	}
	at, err := place.NewStreams()
	if err == nil {
		err = errors.Join(sum.Queue(at), at.Sync(time.Minute))
	}
	if err != nil {
		return err
	}
	read, err := halo.ReadAll[int64](f)
	want, got := int64(0), sum.Result().Ints
	for i, v := range read {
		value := odd * int64(i)
		if want += value; v != value {
			return fmt.Errorf("value %d must be %d as written, got %d", i, value, v)
		}
	}
	if err == nil && got[0] != want {
		err = fmt.Errorf("the sum of all values must be %d, got %d", want, got[0])
	}
	return err
}
