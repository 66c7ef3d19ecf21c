package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// BenchmarkPingPong measures half a round trip of 8 bytes between two ranks of one process.
func BenchmarkPingPong(b *testing.B) {
	for name, o := range variants {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			require.NoError(b, acptest.Run(2, func(p *acp.Process) error {
				out, err := p.NewChannel(p.Rank(), 1-p.Rank(), o)
				if err != nil {
					return err
				}
				in, err := p.NewChannel(1-p.Rank(), p.Rank(), o)
				if err != nil {
					return err
				}
				buf := make([]byte, 8)
				for i := range b.N {
					if i%2 == p.Rank() {
						if _, err := out.Send(buf).Wait(ctx); err != nil {
							return err
						}
					} else if _, err := in.Recv(buf).Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			}))
		})
	}
}
