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

// A relay forwards an accepted connection over a second one.
type relay struct {
	*proxy
	number  uint64
	in, out sockets.Conn

	once  sync.Once
	cause error // of an abnormal end
}

// errAborted is the cause of relays that the end of the proxy aborts.
var errAborted = errors.New("aborted at the end of the proxy")

// runRelay forwards both directions to their ends.
func (k *relay) runRelay(ctx context.Context) {
	defer k.in.Close()
	dialing, cancel := context.WithTimeout(ctx, k.DialTimeout)
	out, err := k.sockets.Dial(dialing, k.To)
	cancel()
	if err != nil {
		_ = k.in.SetLinger(0) // resets the client's connection
		k.recordFailure(err)
		return
	}
	k.out = out
	defer out.Close()
	if !k.addRelay(k) {
		k.reset(errAborted)
	}
	defer k.removeRelay(k)

	var both sync.WaitGroup
	both.Go(func() { k.copyDirection(k.out, k.in, &k.bytesTo) })
	both.Go(func() { k.copyDirection(k.in, k.out, &k.bytesFrom) })
	both.Wait()
	if k.cause != nil {
		k.recordFailure(k.cause)
	}
}

// copyDirection copies one direction and half-closes its destination at the end.
func (k *relay) copyDirection(to, from sockets.Conn, bytes *atomic.Uint64) {
	n, err := io.Copy(to, from)
	bytes.Add(uint64(n))
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		k.reset(err) // a truncated stream must not look complete
	}
}

// reset resets both connections. The first cause is kept.
func (k *relay) reset(cause error) {
	k.once.Do(func() {
		k.cause = cause
		for _, c := range []sockets.Conn{k.in, k.out} {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	})
}

// recordFailure counts an abnormal end, and logs it unless the client has disconnected.
func (k *relay) recordFailure(err error) {
	k.failed.Add(1)
	if err == errAborted {
		k.aborted.Add(1)
	}
	if k.isClientGone(err) && !k.Verbose {
		return
	}
	k.logf("connection %d of %v: %v", k.number, sockets.FormatAddr(k.in.RemoteAddr()), err)
}

// isClientGone reports whether err means that the client has closed or reset its connection, as
// clients do that have read enough. A client whose host or process has vanished does not count.
func (k *relay) isClientGone(err error) bool {
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

func equalAddr(a, b net.Addr) bool {
	return a != nil && b != nil && sockets.FormatAddr(a) == sockets.FormatAddr(b)
}
