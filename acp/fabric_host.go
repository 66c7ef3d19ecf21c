package acp

import "github.com/softrnic/softrnic/acp/internal/fabric"

// fabricHost is a Process as the host of its transport. It keeps the transport's callbacks out
// of the exported type.
type fabricHost Process

var _ fabric.Host = (*fabricHost)(nil)

// DoLocked implements fabric.Host.
func (h *fabricHost) DoLocked(f func()) {
	p := (*Process)(h)
	p.mu.Lock()
	defer p.unlockAndNotify()
	f()
	p.engine.events++
}

// PeerFound implements fabric.Host.
func (h *fabricHost) PeerFound(rank int, card []byte) { (*Process)(h).onPeerFound(rank, card) }

// PeerLost implements fabric.Host.
func (h *fabricHost) PeerLost(rank int, why error) { (*Process)(h).onPeerLost(rank, why) }

// HandleSignal implements fabric.Host.
func (h *fabricHost) HandleSignal(rank int, imm uint32) { (*Process)(h).handleSignal(rank, imm) }
