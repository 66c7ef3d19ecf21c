package mpi_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/softrnic/softrnic/mpi"
)

// TestWaitSome checks that WaitSome and TestSome return each completed request once.
func TestWaitSome(t *testing.T) {
	for name, some := range map[string]func(...*mpi.Request) ([]int, []mpi.Status, error){"wait": mpi.WaitSome, "test": mpi.TestSome} {
		job(t, 2, mpi.Options{}, func(w mpi.World) error {
			const n = 6
			if w.Rank() == 1 {
				for _, tag := range []int{3, 0, 5, 1, 2, 4} {
					if err := w.Send(mpi.Of([]int64{int64(tag)}), 0, tag); err != nil {
						return err
					}
				}
				return nil
			}
			if done, list, err := some(nil, nil); done != nil || list != nil || err != nil {
				return fmt.Errorf("%s of none: %v, %v, %w", name, done, list, err)
			}
			in := make([]int64, n)
			var rs []*mpi.Request
			for tag := range n {
				r, err := w.Irecv(mpi.Of(in[tag:tag+1]), 1, tag)
				if err != nil {
					return err
				}
				rs = append(rs, r)
			}
			var all []int
			for len(all) < n {
				done, list, err := some(rs...)
				if err != nil || len(done) != len(list) || name == "wait" && len(done) == 0 {
					return fmt.Errorf("%s: %v, %v, %w", name, done, list, err)
				}
				for i, d := range done {
					if list[i].Tag != d {
						return fmt.Errorf("%s: tag %d of request %d", name, list[i].Tag, d)
					}
					rs[d] = nil
				}
				all = append(all, done...)
			}
			if slices.Sort(all); !slices.Equal(all, []int{0, 1, 2, 3, 4, 5}) || !slices.Equal(in, []int64{0, 1, 2, 3, 4, 5}) {
				return fmt.Errorf("%s: %v with %v", name, all, in)
			}
			return nil
		})
	}
}
