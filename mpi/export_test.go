package mpi

import (
	"context"

	"github.com/softrnic/softrnic/mpi/coll"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// LimitContexts makes room for few communicators.
func (w *World) LimitContexts(n uint64) { w.contexts = newContexts(n) }

// Algorithms are those that were chosen.
func (w *World) Algorithms() coll.Choices { return w.o.Algorithms }

// Vanish ends the rank's communication without a word to the others.
func (w *World) Vanish() {
	w.windows.stop(w)
	if w.dev != nil {
		_ = w.dev.Close()
		return
	}
	_ = w.eng.Close(context.Background())
}

// What a rank may ask for, and how.
const (
	MaxReplies = maxReplies
	PacketSend = int32(packetSend)
)

// WinPacket hands a window a packet as if a rank had sent it.
func (w *Win) WinPacket(from int, h envelope.Header, payload []byte) (err error) {
	h.Context = w.comm.id
	w.eng.Do(func(*protocol.Core) { err = w.comm.world.windows.handle(w.comm.job(from), &h, payload) })
	return err
}
