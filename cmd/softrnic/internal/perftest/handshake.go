package perftest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// A channel carries the control messages of a handshake: a TCP connection, or a queue pair
// connected by RDMA-CM.
type channel interface {
	write(b []byte, doing string) error
	read(b []byte, doing string) error  // fills b
	await(b []byte, doing string) error // read without a timeout
	binary() bool                       // keys have the binary form
	peer() string
	close() error
}

// A tcpChannel is the channel of a test without -R and -z.
type tcpChannel struct{ *oob.Conn }

func (c tcpChannel) write(b []byte, doing string) error { return c.Write(b, doing) }
func (c tcpChannel) read(b []byte, doing string) error  { return c.Read(b, doing) }
func (c tcpChannel) await(b []byte, doing string) error { return c.ReadNoTimeout(b, doing) }
func (c tcpChannel) binary() bool                       { return false }
func (c tcpChannel) peer() string                       { return c.Peer().String() }
func (c tcpChannel) close() error                       { return c.Close() }

// A handshake exchanges control messages with the peer, the client's first.
type handshake struct {
	channel
	client    bool
	longKeys  bool                     // binary keys have the long form
	pending   *pendingRead             // a message read ahead, or nil
	waitAhead func(*pendingRead) error // waits for a message read ahead, or fails
	params    oob.Params               // of this side; nil are never exchanged
}

// A pendingRead is a message that is read while the test runs.
type pendingRead struct {
	b    []byte
	err  error
	done chan struct{}
}

// peerError returns an error of the peer.
func (t *handshake) peerError(doing string, err error) error {
	return &oob.PeerError{Peer: t.peer(), Op: doing, Err: err}
}

// protocolErrorf returns an error that wraps oob.ErrProtocol.
func protocolErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", oob.ErrProtocol, fmt.Sprintf(format, args...))
}

// exchange sends mine and fills theirs, which have the same length.
func (t *handshake) exchange(mine, theirs []byte, doing string) error {
	if t.client {
		if err := t.write(mine, doing); err != nil {
			return err
		}
		return t.readMessage(theirs, doing)
	}
	if err := t.readMessage(theirs, doing); err != nil {
		return err
	}
	return t.write(mine, doing)
}

// readMessage reads a message, or takes the one read ahead.
func (t *handshake) readMessage(b []byte, doing string) error {
	a := t.pending
	if a == nil {
		return t.read(b, doing)
	}
	if t.waitAhead != nil {
		if err := t.waitAhead(a); err != nil {
			return err
		}
	}
	<-a.done
	t.pending = nil
	if a.err != nil {
		return a.err
	}
	if n := copy(b, a.b); n < len(a.b) || n < len(b) {
		return t.peerError(doing, protocolErrorf("message of %d bytes, want %d", len(a.b), len(b)))
	}
	return nil
}

// readAhead starts to read the peer's next message, of n bytes, without a timeout. Its arrival
// shows that the peer has finished, an error that the peer has failed. A second call before
// readMessage returns the same message.
func (t *handshake) readAhead(n int) *pendingRead {
	if t.pending != nil {
		return t.pending
	}
	a := &pendingRead{b: make([]byte, n), done: make(chan struct{})}
	t.pending = a
	go func() {
		defer close(a.done)
		a.err = t.await(a.b, "wait for its end of the test")
	}()
	return a
}

// keysLen returns the length of encoded keys.
func (t *handshake) keysLen() int {
	switch {
	case !t.binary():
		return KeysTextLen
	case t.longKeys:
		return KeysLongLen
	}
	return KeysBinaryLen
}

// exchangeKeys exchanges the keys of a queue pair. The same message serves as barrier.
func (t *handshake) exchangeKeys(mine Keys, doing string) (Keys, error) {
	theirs := make([]byte, t.keysLen())
	text := mine.AppendText
	parse := ParseKeysText
	if t.binary() {
		text, parse = mine.AppendBinary, ParseKeysBinary
	}
	if t.binary() && t.longKeys {
		text = mine.AppendLong
	}
	if err := t.exchange(text(nil), theirs, doing); err != nil {
		return Keys{}, err
	}
	k, err := parse(theirs)
	if err != nil {
		return Keys{}, t.peerError(doing, protocolErrorf("%q: %v", theirs, err))
	}
	return k, nil
}

// exchangeFloat exchanges one number of a report.
func (t *handshake) exchangeFloat(mine float64) (float64, error) {
	n, err := t.exchangeUint64(math.Float64bits(mine))
	return math.Float64frombits(n), err
}

// exchangeUint64 exchanges 8 bytes of a report.
func (t *handshake) exchangeUint64(mine uint64) (uint64, error) {
	var theirs [8]byte
	err := t.exchange(binary.BigEndian.AppendUint64(nil, mine), theirs[:], "exchange reports")
	return binary.BigEndian.Uint64(theirs[:]), err
}

// exchangeInt32 exchanges a number of 4 bytes.
func (t *handshake) exchangeInt32(mine int, doing string) (int, error) {
	var theirs [4]byte
	if err := t.exchange(binary.BigEndian.AppendUint32(nil, uint32(mine)), theirs[:], doing); err != nil {
		return 0, err
	}
	return int(int32(binary.BigEndian.Uint32(theirs[:]))), nil
}

// watchPeer returns a context that is canceled grace after reading a fails during the test. A peer
// that has finished may close before this side's last message is acknowledged.
func (t *handshake) watchPeer(ctx context.Context, a *pendingRead, grace time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-a.done:
		case <-ctx.Done():
		}
		if ctx.Err() != nil || a.err == nil {
			return
		}
		select {
		case <-time.After(grace):
			cancel(fmt.Errorf("peer closed the connection: %w", a.err))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
