package scheme

import "fmt"

// checkNorms returns an error unless the norms that are asked for are taken of a step.
func (o Options) checkNorms(s *Step) error {
	switch {
	case o.Norm != "" && o.Norm != MaxNorm && o.Norm != L2Norm:
		return fmt.Errorf("scheme: Options.Norm %q: it is %q or %q", o.Norm, MaxNorm, L2Norm)
	case !(o.Tolerance >= 0):
		return fmt.Errorf("scheme: Options.Tolerance is %v: it is 0, for none, or more", o.Tolerance)
	case o.CheckEvery < 0:
		return fmt.Errorf("scheme: Options.CheckEvery is %d steps: it is 1 or more, or 0 for no look at norms before the end", o.CheckEvery)
	case o.Tolerance > 0 && len(s.Measured) == 0:
		return fmt.Errorf("scheme: Options.Tolerance is %v, and no norms are taken: name variables in Step.Measured", o.Tolerance)
	case o.Tolerance > 0 && o.CheckEvery == 0:
		return fmt.Errorf("scheme: Options.Tolerance is %v, and nobody looks before the end: set Options.CheckEvery", o.Tolerance)
	case o.History && len(s.Measured) == 0 && len(s.Reductions()) == 0:
		return fmt.Errorf("scheme: Options.History without norms or reductions: name variables in Step.Measured")
	}
	return nil
}
