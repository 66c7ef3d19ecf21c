package sdpproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/verbs"
)

// link is a connection that came in, with the one that it is passed on by.
type link struct {
	*proxy
	number  uint64
	in, out sockets.Conn

	once sync.Once
	why  error // it ended before its time
}

// errCut is why a link ends when there is no time left.
var errCut = errors.New("cut off, because the proxy ends")

// run passes everything on, both ways, to the end.
func (k *link) run(ctx context.Context) {
	defer k.in.Close()
	dialing, cancel := context.WithTimeout(ctx, k.Patience)
	out, err := k.sockets.Dial(dialing, k.To)
	cancel()
	if err != nil {
		_ = k.in.SetLinger(0) // the client is refused, too
		k.fail(err)
		return
	}
	k.out = out
	defer out.Close()
	if !k.enter(k) {
		k.end(errCut)
	}
	defer k.leave(k)

	var both sync.WaitGroup
	both.Go(func() { k.pass(k.out, k.in, &k.bytesTo) })
	both.Go(func() { k.pass(k.in, k.out, &k.bytesFrom) })
	both.Wait()
	if k.why != nil {
		k.fail(k.why)
	}
}

// pass copies one direction, and passes on its end.
func (k *link) pass(to, from sockets.Conn, bytes *atomic.Uint64) {
	n, err := io.Copy(to, from)
	bytes.Add(uint64(n))
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		k.end(err) // what is missing must not look like an end
	}
}

// end resets both connections. The first cause counts.
func (k *link) end(why error) {
	k.once.Do(func() {
		k.why = why
		for _, c := range []sockets.Conn{k.in, k.out} {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	})
}

// fail counts a link that has not ended well, and logs it unless its client has gone.
func (k *link) fail(err error) {
	k.failed.Add(1)
	if err == errCut {
		k.cut.Add(1)
	}
	if k.isClientGone(err) && !k.Verbose {
		return
	}
	k.say("connection %d of %v: %v", k.number, sockets.Name(k.in.RemoteAddr()), err)
}

// isClientGone reports whether err says that the client has closed or reset its
// connection, as clients do that have seen enough. A client whose host or process has
// vanished is not one of these.
func (k *link) isClientGone(err error) bool {
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return false
	}
	var vanished *verbs.CompletionError
	if errors.As(err, &vanished) {
		return false
	}
	// A copy between two connections wraps the error of one in that of the other.
	var inner *net.OpError
	for e := (*net.OpError)(nil); errors.As(err, &e); err = e.Err {
		inner = e
	}
	return inner != nil && equalAddr(inner.Source, k.in.LocalAddr()) && equalAddr(inner.Addr, k.in.RemoteAddr())
}

func equalAddr(a, b net.Addr) bool { return a != nil && b != nil && sockets.Name(a) == sockets.Name(b) }
