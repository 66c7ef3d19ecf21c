package onesided

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// newTable returns the table of the windows of a rank that is alone in its job.
func newTable(t testing.TB) *Table {
	e, err := engine.New(0, 1, nil)
	require.NoError(t, err)
	table := NewTable(Config{Engine: e, Direct: true})
	e.Do(func(core *protocol.Core) { core.Handler = table.HandlePacket })
	t.Cleanup(func() {
		table.Stop()
		require.NoError(t, e.Close(t.Context()))
	})
	return table
}

// newWindow makes a window of a rank that is alone in its job.
func newWindow(t testing.TB, table *Table, id uint32, m Memory) *Window {
	var c comm.Comm
	c.Init(table.Engine, id, "self.win", nil, 0, 1)
	w, err := table.CreateWindow(&c, m, func(mine, theirs []byte) error {
		copy(theirs, mine)
		return nil
	})
	require.NoError(t, err)
	return w
}

// deliver passes a packet of a rank to a window.
func (t *Table) deliver(w *Window, from int, h envelope.Header, payload []byte) (err error) {
	h.Context = w.comm.ContextID
	w.eng.Do(func(*protocol.Core) { err = t.HandlePacket(w.comm.WorldRank(from), &h, payload) })
	return err
}
