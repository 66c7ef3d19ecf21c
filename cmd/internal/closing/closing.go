// Package closing closes the objects of a program that may have stopped half way through opening
// them.
//
//	err := errors.Join(closing.All(e.qps...), closing.All[io.Closer](e.cq, e.pd))
package closing

import (
	"errors"
	"io"
)

// All closes the objects that are not nil, in order, and returns the joined errors.
func All[C io.Closer](list ...C) error {
	var errs []error
	for _, c := range list {
		if any(c) != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
