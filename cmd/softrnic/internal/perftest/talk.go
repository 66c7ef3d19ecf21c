package perftest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// channel carries the messages of a handshake: a TCP connection, or a queue
// pair that the RDMA CM has connected.
type channel interface {
	write(b []byte, doing string) error
	read(b []byte, doing string) error  // fills b
	await(b []byte, doing string) error // the same, however long it takes
	binary() bool                       // keys travel in binary form
	peer() string
	close() error
}

// tcp is the channel of perftest without -R.
type tcp struct{ *oob.Conn }

func (c tcp) write(b []byte, doing string) error { return c.Write(b, doing) }
func (c tcp) read(b []byte, doing string) error  { return c.Read(b, doing) }
func (c tcp) await(b []byte, doing string) error { return c.Await(b, doing) }
func (c tcp) binary() bool                       { return false }
func (c tcp) peer() string                       { return c.Peer().String() }
func (c tcp) close() error                       { return c.Close() }

// talk is the conversation of the two programs: messages that go both ways,
// the client's first.
type talk struct {
	channel
	client  bool
	long    bool               // the peer's binary keys are long ones, and it wants such
	pending *ahead             // a message that is being read
	patient func(*ahead) error // waits for it, or gives up
	terms   oob.Terms          // of our test; nil are never exchanged
}

// ahead is a message that is read while the test runs.
type ahead struct {
	b    []byte
	err  error
	done chan struct{}
}

// fail is an error of the peer's.
func (t *talk) fail(doing string, err error) error {
	return &oob.PeerError{Peer: t.peer(), Doing: doing, Err: err}
}

// nonsense says what is wrong with a message.
func nonsense(format string, args ...any) error {
	return fmt.Errorf("%w: %s", oob.ErrNonsense, fmt.Sprintf(format, args...))
}

// exchange tells mine and fills theirs, of the same length.
func (t *talk) exchange(mine, theirs []byte, doing string) error {
	if t.client {
		if err := t.write(mine, doing); err != nil {
			return err
		}
		return t.hear(theirs, doing)
	}
	if err := t.hear(theirs, doing); err != nil {
		return err
	}
	return t.write(mine, doing)
}

// hear reads a message, or takes it if it has been read ahead.
func (t *talk) hear(b []byte, doing string) error {
	a := t.pending
	if a == nil {
		return t.read(b, doing)
	}
	if t.patient != nil {
		if err := t.patient(a); err != nil {
			return err
		}
	}
	<-a.done
	t.pending = nil
	if a.err != nil {
		return a.err
	}
	if n := copy(b, a.b); n < len(a.b) || n < len(b) {
		return t.fail(doing, nonsense("a message of %d bytes came instead of %d", len(a.b), len(b)))
	}
	return nil
}

// listen reads the peer's next message, of n bytes, while the test runs. It
// tells that the peer is through; an error, that it is gone. It has all the
// time it needs. Asked again before the message was heard, it is the same one.
func (t *talk) listen(n int) *ahead {
	if t.pending != nil {
		return t.pending
	}
	a := &ahead{b: make([]byte, n), done: make(chan struct{})}
	t.pending = a
	go func() {
		defer close(a.done)
		a.err = t.await(a.b, "wait for its end of the test")
	}()
	return a
}

func (t *talk) keysLen() int {
	switch {
	case !t.binary():
		return KeysTextLen
	case t.long:
		return KeysLongLen
	}
	return KeysBinaryLen
}

// keys exchanges the keys of a queue pair. Later on the same message serves to
// wait for each other.
func (t *talk) keys(mine Keys, doing string) (Keys, error) {
	theirs := make([]byte, t.keysLen())
	text := mine.AppendText
	parse := ParseKeysText
	if t.binary() {
		text, parse = mine.AppendBinary, ParseKeysBinary
	}
	if t.binary() && t.long {
		text = mine.AppendLong
	}
	if err := t.exchange(text(nil), theirs, doing); err != nil {
		return Keys{}, err
	}
	k, err := parse(theirs)
	if err != nil {
		return Keys{}, t.fail(doing, nonsense("%q: %v", theirs, err))
	}
	return k, nil
}

// float exchanges one number of a report.
func (t *talk) float(mine float64) (float64, error) {
	n, err := t.number(math.Float64bits(mine))
	return math.Float64frombits(n), err
}

func (t *talk) number(mine uint64) (uint64, error) {
	var theirs [8]byte
	err := t.exchange(binary.BigEndian.AppendUint64(nil, mine), theirs[:], "exchange reports")
	return binary.BigEndian.Uint64(theirs[:]), err
}

// int32 exchanges a number of 4 bytes.
func (t *talk) int32(mine int, doing string) (int, error) {
	var theirs [4]byte
	if err := t.exchange(binary.BigEndian.AppendUint32(nil, uint32(mine)), theirs[:], doing); err != nil {
		return 0, err
	}
	return int(int32(binary.BigEndian.Uint32(theirs[:]))), nil
}

// watchPeer returns a context that is canceled when reading a fails during the
// test, grace later: a peer that is through may close before our last message is
// acknowledged.
func (t *talk) watchPeer(ctx context.Context, a *ahead, grace time.Duration) (context.Context, func()) {
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
			cancel(fmt.Errorf("the peer gave up: %w", a.err))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
