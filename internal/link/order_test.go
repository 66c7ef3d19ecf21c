package link

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrder is for the race detector: writes of the sender before WriteBatch happen before
// ReadBatch of the receiver returns the packet.
func TestOrder(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		from, to := open(t, o), open(t, o)
		var done int
		go func() {
			b := NewBatch(4096)
			done = 1
			fill(b.Next(pathTo(to), 64), 1)
			_ = from.WriteBatch(b)
		}()
		receive(t, to, NewDatagrams(1), 1)
		require.Equal(t, 1, done)
	})
}
