package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// TestKinds checks that a datatype mismatch is an error of the receive, for every send mode,
// length, order of arrival and net, without Options.Check.
func TestKinds(t *testing.T) {
	type pair struct {
		A int32
		B float64
	}
	type other struct {
		A float64
		B int32
	}
	for name, o := range map[string]mpi.Options{"rdma": {}, "ud": {Net: mpi.UD}, "tcp": {Net: mpi.TCP}} {
		t.Run(name, func(t *testing.T) {
			job(t, 2, o, func(w mpi.World) error {
				for _, n := range []int{1, 20_000} {
					for _, c := range []struct {
						send, recv mpi.Buffer
						want       string // "" is no error
					}{
						{mpi.Of(make([]float64, n)), mpi.Of(make([]float64, n)), ""},
						{mpi.Of(make([]byte, n)), mpi.Bytes(make([]byte, n)), ""},
						{mpi.Of(make([]int, n)), mpi.Of(make([]int64, n)), ""},
						{mpi.Of(make([]float64, n)), mpi.Of(make([]int64, n)), "rank 0 sent float64 elements with tag 3 to a buffer of int64 elements"},
						{mpi.Of(make([]uint32, n)), mpi.Of(make([]int32, n)), "uint32 elements"},
						{mpi.Bytes(make([]byte, 8*n)), mpi.Of(make([]float64, n)), "uint8 elements"},
						{mpi.Structs(make([]pair, n)), mpi.Structs(make([]pair, n)), ""},
						{mpi.Structs(make([]pair, n)), mpi.Structs(make([]other, n)), "structs of fields"},
						{mpi.Structs(make([]pair, n)), mpi.Bytes(make([]byte, 12*n)), "structs"},
					} {
						for way, send := range []func() error{
							func() error { return w.Send(c.send, 1, 3) },
							func() error { return w.Ssend(c.send, 1, 3) },
						} {
							for late := range 2 {
								if w.Rank() == 0 {
									if late == 0 { // the receive is posted
										_, err := w.Recv(mpi.Buffer{}, 1, 4)
										require.NoError(t, err)
									}
									require.NoError(t, send())
									continue
								}
								if late == 1 {
									_, err := w.Probe(0, 3)
									require.NoError(t, err)
								}
								r, err := w.Irecv(c.recv, mpi.AnySource, 3)
								if err == nil && late == 0 {
									err = w.Send(mpi.Buffer{}, 0, 4)
								}
								require.NoError(t, err)
								_, err = r.Wait()
								if c.want == "" || way == 1 && n == 1 && c.want == "structs of fields" { // only the element type is sent
									require.NoError(t, err, "%v to %v", c.send, c.recv)
									continue
								}
								require.ErrorIs(t, err, mpi.ErrType, "%v to %v", c.send, c.recv)
								require.ErrorContains(t, err, c.want)
							}
						}
					}
				}
				return nil
			})
		})
	}
}

// TestShortSignature checks that a synchronous message carries the element kind, for which its
// header has a few bits only.
func TestShortSignature(t *testing.T) {
	require.EqualValues(t, datatype.MessageKindMask, envelope.MaxShortSignature)
}
