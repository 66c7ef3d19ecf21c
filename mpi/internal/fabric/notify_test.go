package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// TestNotifications checks that notifications are delivered in order, after their data, and with any
// number in flight. A net without them returns an error.
func TestNotifications(t *testing.T) {
	fabrics(t, func(t *testing.T, p *pair) {
		const n = 300 // more than the credits and the send queue allow
		sizes := []int{1, 256, 257, 5000, 20_000}
		mem := make([]byte, n*16+20_000)
		key, hide := p.register(t, mem)
		defer hide()
		all := make(chan uint32, n)
		p.e[1].Do(func(c *protocol.Core) {
			c.OnNotify = func(from int, notice uint32) error {
				if from != 0 || notice >= n {
					return errors.New("not mine")
				}
				if notice%5 == 4 && mem[int(notice)*16+sizes[4]-1] != byte(notice+1) {
					return errors.New("it is not there")
				}
				all <- notice
				return nil
			}
		})
		var puts []*protocol.Request
		heard := 0
		for i := range n {
			b := make([]byte, sizes[i%5])
			b[len(b)-1] = byte(i + 1)
			put := &protocol.Request{Dest: 1, Buf: b}
			p.do(func(c *protocol.Core) { c.PutNotify(put, offsetKey(key, 16*i), uint32(i)) })
			if _, ok := p.e[0].Fabric().(protocol.Notifier); !ok {
				require.ErrorIs(t, put.Err, errors.ErrUnsupported)
				return
			}
			if i%5 == 4 { // the last of five concurrent ones
				p.wait(t, put)
			}
			puts = append(puts, put)
			for ; i%5 == 4 && heard <= i; heard++ { // the next ones overwrite the data that OnNotify checks
				require.EqualValues(t, heard, <-all)
			}
		}
		for _, put := range puts {
			p.wait(t, put)
			require.NoError(t, put.Err)
		}
		// An unexpected notification fails the peer.
		put := &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
		p.do(func(c *protocol.Core) { c.PutNotify(put, key, n) })
		get := &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
		p.wait(t, put)
		for get.Err == nil {
			*get = protocol.Request{Dest: 1, Buf: get.Buf}
			p.do(func(c *protocol.Core) { c.Get(get, key) })
			p.wait(t, get)
		}
		require.ErrorIs(t, get.Err, protocol.ErrLost)
		p.e[1].Do(func(c *protocol.Core) { require.ErrorIs(t, c.PeerError(0), protocol.ErrProtocol) })
	})
}
