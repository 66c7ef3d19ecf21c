package sdp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Close resets all connections and closes the stack. For an orderly end close the connections and
// call [Stack.Shutdown] instead. Close is idempotent; concurrent calls wait and return the same error.
func (s *Stack) Close() error {
	if !s.isOpen() {
		return nil
	}
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Stack) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel() // ends listeners and handshakes, so no connection is added
	s.inUse.Wait()
	s.goroutines.Wait()
	s.mu.Lock()
	conns := slices.Collect(maps.Values(s.conns))
	packets := slices.Collect(maps.Keys(s.packets))
	s.mu.Unlock()
	for _, c := range packets {
		_ = c.Close()
	}
	for _, c := range conns {
		c.abort() // concurrently, since disconnecting from a failed peer takes long
	}
	for _, c := range conns {
		<-c.done
	}
	return s.freeResources()
}

// Shutdown closes all listeners, blocks until all closed connections have delivered their data, or
// failed to, and then closes the stack, which resets the connections that the program has not
// closed. If ctx is done first, Shutdown closes the stack as well, and the error names the first
// pending peer and the reason. Shutdown is idempotent. A nil ctx is never done.
func (s *Stack) Shutdown(ctx context.Context) error {
	if !s.isOpen() {
		return errClosedStack
	}
	s.mu.Lock()
	listeners := slices.Collect(maps.Keys(s.listeners))
	s.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close() // net.ErrClosed if the program closes it meanwhile
	}
	return errors.Join(s.drain(ctx), s.Close())
}

// drain blocks until all closed connections have delivered their data, or failed to, which the
// log reports. If ctx is done first, the error names the first pending peer and the reason. A nil
// ctx is never done.
func (s *Stack) drain(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	s.mu.Lock()
	var closed []*Conn
	for _, c := range s.conns {
		if c.isLingering.Load() {
			closed = append(closed, c)
		}
	}
	s.mu.Unlock()
	for _, c := range closed {
		select {
		case <-c.done:
		case <-ctx.Done():
			return fmt.Errorf("sdp: shutdown: connection to %v: %s: %w", c.remote, c.pendingReason(), ctx.Err())
		}
	}
	return nil
}

// pendingReason describes the event for which a closed connection waits.
func (c *Conn) pendingReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := c.core.Levels().Send; {
	case c.tornDown:
		return "disconnect not confirmed by the peer"
	case n > 0:
		return fmt.Sprintf("%d written bytes not acknowledged", n)
	}
	return "not closed by the peer"
}
