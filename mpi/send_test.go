package mpi_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

func TestPingPong(t *testing.T) { pingPong(t, mpi.Options{}) }

func TestPingPongChecked(t *testing.T) { pingPong(t, checked) }

func pingPong(t *testing.T, o mpi.Options) {
	job(t, 2, o, func(w mpi.World) error {
		for _, n := range []int{0, 1, 100, 5000, 100_000, 3_000_000} {
			b, sent := make([]byte, n), make([]byte, n)
			for i := range sent {
				sent[i] = byte(i * 7)
			}
			for range 3 {
				if w.Rank() == 0 {
					copy(b, sent)
					if err := w.Send(mpi.Of(b), 1, 5); err != nil {
						return err
					}
					clear(b)
					s, err := w.Recv(mpi.Of(b), 1, 6)
					if err != nil {
						return err
					}
					require.Equal(t, mpi.Status{Source: 1, Tag: 6, Bytes: n}, s)
					require.True(t, bytes.Equal(sent, b), "%d bytes", n)
				} else {
					if _, err := w.Recv(mpi.Of(b), mpi.AnySource, mpi.AnyTag); err != nil {
						return err
					}
					if err := w.Send(mpi.Of(b), 0, 6); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

func TestAllreduce(t *testing.T) {
	for _, n := range []int{1, 2, 5, 8} {
		job(t, n, mpi.Options{}, func(w mpi.World) error {
			x := []float64{float64(w.Rank()), 1}
			sum := make([]float64, 2)
			if err := w.Allreduce(mpi.Of(x), mpi.Of(sum), mpi.Sum); err != nil {
				return err
			}
			require.Equal(t, []float64{float64(n * (n - 1) / 2), float64(n)}, sum)
			return nil
		})
	}
}
