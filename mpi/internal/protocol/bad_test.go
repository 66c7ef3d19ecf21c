package protocol

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// startCopy has the core wait for 150 bytes in packets.
func startCopy(e *evil) uint64 {
	e.receive(150)
	require.NoError(e.t, e.announce(RendezvousCopy, 150))
	return e.lastCTS().ID
}

// startWrite has the core wait for 150 bytes written to its memory.
func startWrite(e *evil) uint64 {
	e.receive(150)
	require.NoError(e.t, e.announce(RendezvousWrite, 150))
	return e.lastCTS().ID
}

// violations are violations of the protocol, and the errors that they cause.
var violations = []struct {
	name  string
	as    Scheme // of the core's rendezvous sends
	do    func(e *evil) error
	cause string
}{
	{"another's packet", RendezvousCopy, func(e *evil) error { return e.handle(1, envelope.Header{Kind: envelope.Eager, Source: 2}) }, "rank 1: EAGER of rank 2"},
	{"no rank's packet", RendezvousCopy, func(e *evil) error { return e.handle(1, envelope.Header{Kind: envelope.Credit, Source: 1<<32 - 1}) }, "rank 1: CREDIT of rank 4294967295"},
	{"less payload", RendezvousCopy, func(e *evil) error {
		return e.handle(1, envelope.Header{Kind: envelope.Eager, Source: 1, Length: 5, Bytes: 5}, 1, 2, 3, 4)
	}, "with 5 bytes, payload has 4"},
	{"more payload", RendezvousCopy, func(e *evil) error {
		return e.handle(1, envelope.Header{Kind: envelope.Matched, Source: 1}, 1)
	}, "with 0 bytes, payload has 1"},
	{"a short key", RendezvousCopy, func(e *evil) error {
		return e.handle(1, envelope.Header{Kind: envelope.RTS, Source: 1, Length: 500, Bytes: envelope.KeySize}, keyOf(0)[1:]...)
	}, "RTS of rank 1 with 24 bytes, payload has 23"},

	{"a number again", RendezvousCopy, func(e *evil) error {
		require.NoError(e.t, e.handleFrom1(eager))
		return e.handle(1, envelope.Header{Kind: envelope.Eager, Source: 1})
	}, "EAGER with sequence number 0, next is 1"},
	{"an early number twice", RendezvousCopy, func(e *evil) error {
		require.NoError(e.t, e.handle(1, envelope.Header{Kind: envelope.Eager, Source: 1, Seq: 3}))
		return e.handle(1, envelope.Header{Kind: envelope.Active, Source: 1, Seq: 3})
	}, "duplicate sequence number 3"},
	{"a number far ahead", RendezvousCopy, func(e *evil) error {
		return e.handle(1, envelope.Header{Kind: envelope.Eager, Source: 1, Seq: MaxEarly + 1})
	}, "EAGER with sequence number 4097, next is 0"},
	{"too many bytes ahead", RendezvousCopy, func(e *evil) error {
		big := make([]byte, 1<<20)
		for i := uint32(1); ; i++ {
			if err := e.handle(1, envelope.Header{Kind: envelope.Eager, Source: 1, Length: 1 << 20, Bytes: 1 << 20, Seq: i}, big...); err != nil || i > 65 {
				return err
			}
		}
	}, "more than 67108864 bytes ahead of sequence number 0"},

	{"CTS for nothing", RendezvousCopy, func(e *evil) error { return e.handleFrom1(clearFor(1<<32, 0), keyOf(hers)...) }, "CTS for unknown request 0x100000000"},
	{"CTS about request 0", RendezvousCopy, func(e *evil) error { e.send(500, false); return e.handleFrom1(clearFor(0, 0), keyOf(hers)...) }, "CTS for unknown request 0x0"},
	{"CTS about a request outside", RendezvousCopy, func(e *evil) error { e.send(500, false); return e.handleFrom1(clearFor(1<<64-1, 0), keyOf(hers)...) }, "for unknown request"},
	{"CTS of another rank", RendezvousCopy, func(e *evil) error {
		_, id := e.send(500, false)
		return e.handleFrom(2, clearFor(id, 500), keyOf(hers)...)
	}, "rank 2: CTS for unknown request 0x100000000"},
	{"CTS twice", RendezvousCopy, func(e *evil) error {
		_, id := e.send(500, false)
		require.NoError(e.t, e.handleFrom1(clearFor(id, 500), keyOf(hers)...))
		return e.handleFrom1(clearFor(id, 500), keyOf(hers)...)
	}, "for unknown request"},
	{"CTS twice, while it leaves", RendezvousCopy, func(e *evil) error {
		_, id := e.send(500, false)
		e.full = true
		require.NoError(e.t, e.handleFrom1(clearFor(id, 500), keyOf(hers)...))
		return e.handleFrom1(clearFor(id, 500), keyOf(hers)...)
	}, "does not fit the state of request"},
	{"CTS twice, while it is written", RendezvousWrite, func(e *evil) error {
		_, id := e.send(500, false)
		h := clearFor(id, 500)
		h.Flags = envelope.ByWrite
		require.NoError(e.t, e.handleFrom1(h, keyOf(hers)...))
		return e.handleFrom1(h, keyOf(hers)...)
	}, "does not fit the state of request"},
	{"CTS before RTS", RendezvousCopy, func(e *evil) error {
		e.full = true
		_, id := e.send(500, false)
		return e.handleFrom1(clearFor(id, 500), keyOf(hers)...)
	}, "does not fit the state of request"},
	{"CTS for an eager message", RendezvousCopy, func(e *evil) error {
		_, id := e.send(50, true)
		return e.handleFrom1(clearFor(id, 50), keyOf(hers)...)
	}, "does not fit the state of request"},
	{"CTS for more", RendezvousCopy, func(e *evil) error {
		_, id := e.send(500, false)
		return e.handleFrom1(clearFor(id, 501), keyOf(hers)...)
	}, "CTS for 501 bytes, message has 500"},
	{"CTS with memory for what is fetched", RendezvousRead, func(e *evil) error {
		_, id := e.send(500, false)
		h := clearFor(id, 500)
		h.Flags = envelope.ByWrite
		return e.handleFrom1(h, keyOf(hers)...)
	}, "CTS with memory for 500 bytes, rendezvous is read"},
	{"CTS with memory for what is packed", RendezvousCopy, func(e *evil) error {
		_, id := e.send(500, false)
		h := clearFor(id, 500)
		h.Flags = envelope.ByWrite
		return e.handleFrom1(h, keyOf(hers)...)
	}, "rendezvous is copy"},
	{"CTS with memory for nothing", RendezvousWrite, func(e *evil) error {
		_, id := e.send(500, false)
		h := clearFor(id, 0)
		h.Flags = envelope.ByWrite
		return e.handleFrom1(h, keyOf(hers)...)
	}, "CTS with memory for 0 bytes"},

	{"FIN of nothing", RendezvousRead, func(e *evil) error { return e.handleFrom1(headerOf(envelope.FIN, 77)) }, "FIN for unknown request 0x4d"},
	{"FIN twice", RendezvousRead, func(e *evil) error {
		_, id := e.send(500, false)
		require.NoError(e.t, e.handleFrom1(headerOf(envelope.FIN, id)))
		return e.handleFrom1(headerOf(envelope.FIN, id))
	}, "for unknown request"},
	{"FIN of one before", RendezvousRead, func(e *evil) error {
		_, id := e.send(500, false)
		require.NoError(e.t, e.handleFrom1(headerOf(envelope.FIN, id)))
		e.send(500, false) // in the same slot
		return e.handleFrom1(headerOf(envelope.FIN, id))
	}, "for unknown request"},
	{"FIN before RTS", RendezvousRead, func(e *evil) error {
		e.full = true
		_, id := e.send(500, false)
		return e.handleFrom1(headerOf(envelope.FIN, id))
	}, "FIN does not fit the state of request 0x100000000"},
	{"FIN of what is not fetched", RendezvousWrite, func(e *evil) error {
		_, id := e.send(500, false)
		return e.handleFrom1(headerOf(envelope.FIN, id))
	}, "does not fit the state of request"},
	{"FIN of what is being written", RendezvousWrite, func(e *evil) error {
		_, id := e.send(500, false)
		h := clearFor(id, 500)
		h.Flags = envelope.ByWrite
		require.NoError(e.t, e.handleFrom1(h, keyOf(hers)...))
		return e.handleFrom1(headerOf(envelope.FIN, id))
	}, "does not fit the state of request"},
	{"FIN of an eager message", RendezvousRead, func(e *evil) error {
		_, id := e.send(5, true)
		return e.handleFrom1(headerOf(envelope.FIN, id))
	}, "does not fit the state of request"},
	{"FIN of what is being fetched", RendezvousRead, func(e *evil) error {
		r := e.receive(150)
		require.NoError(e.t, e.announce(RendezvousRead, 150))
		return e.handleFrom1(headerOf(envelope.FIN, r.id))
	}, "does not fit the state of request"},
	{"FIN of what comes in packets", RendezvousCopy, func(e *evil) error { return e.handleFrom1(headerOf(envelope.FIN, startCopy(e))) }, "does not fit the state of request"},
	{"FIN before CTS", RendezvousWrite, func(e *evil) error {
		r := e.receive(150)
		e.full = true
		require.NoError(e.t, e.announce(RendezvousWrite, 150))
		return e.handleFrom1(headerOf(envelope.FIN, r.id))
	}, "does not fit the state of request"},
	{"FIN after a part in a packet", RendezvousWrite, func(e *evil) error {
		id := startWrite(e)
		require.NoError(e.t, e.handleFrom1(dataHeader(id, 0), 1, 2, 3))
		return e.handleFrom1(headerOf(envelope.FIN, id))
	}, "does not fit the state of request"},
	{"FIN of one-sided communication", RendezvousWrite, func(e *evil) error {
		r := &Request{Dest: 1, Buf: make([]byte, 9)}
		e.core.Put(r, envelope.Key{})
		return e.handleFrom1(headerOf(envelope.FIN, r.id))
	}, "does not fit the state of request"},

	{"MATCHED of nothing", RendezvousCopy, func(e *evil) error { return e.handleFrom1(headerOf(envelope.Matched, 1<<32)) }, "MATCHED for unknown request 0x100000000"},
	{"MATCHED of what is announced", RendezvousRead, func(e *evil) error {
		_, id := e.send(500, true)
		return e.handleFrom1(headerOf(envelope.Matched, id))
	}, "does not fit the state of request"},
	{"MATCHED before EAGER", RendezvousCopy, func(e *evil) error {
		e.full = true
		_, id := e.send(50, true)
		return e.handleFrom1(headerOf(envelope.Matched, id))
	}, "does not fit the state of request"},
	{"MATCHED of a receive", RendezvousWrite, func(e *evil) error { return e.handleFrom1(headerOf(envelope.Matched, startWrite(e))) }, "does not fit the state of request"},

	{"DATA for nothing", RendezvousCopy, func(e *evil) error { return e.handleFrom1(dataHeader(5, 0), 1) }, "DATA for unknown request 0x5"},
	{"DATA of another rank", RendezvousCopy, func(e *evil) error { return e.handleFrom(2, dataHeader(startCopy(e), 0), 1) }, "rank 2: DATA for unknown request"},
	{"DATA to a send", RendezvousCopy, func(e *evil) error { _, id := e.send(500, false); return e.handleFrom1(dataHeader(id, 0), 1) }, "does not fit the state of request"},
	{"DATA to what is being fetched", RendezvousCopy, func(e *evil) error {
		r := e.receive(150)
		require.NoError(e.t, e.announce(RendezvousRead, 150))
		return e.handleFrom1(dataHeader(r.id, 0), 1)
	}, "does not fit the state of request"},
	{"DATA before CTS", RendezvousCopy, func(e *evil) error {
		r := e.receive(150)
		e.full = true
		require.NoError(e.t, e.announce(RendezvousCopy, 150))
		return e.handleFrom1(dataHeader(r.id, 0), 1)
	}, "does not fit the state of request"},
	{"DATA beyond the end", RendezvousCopy, func(e *evil) error { return e.handleFrom1(dataHeader(startCopy(e), 149), 1, 2) }, "DATA for range [149, 151) of 150 bytes"},
	{"DATA far beyond the end", RendezvousCopy, func(e *evil) error { return e.handleFrom1(dataHeader(startCopy(e), 1<<31-2), 1) }, "of 150 bytes"},
	{"DATA beyond the buffer", RendezvousCopy, func(e *evil) error {
		e.receive(60)
		require.NoError(e.t, e.announce(RendezvousCopy, 150))
		return e.handleFrom1(dataHeader(e.lastCTS().ID, 60), 1)
	}, "DATA for range [60, 61) of 60 bytes"},
	{"DATA twice", RendezvousCopy, func(e *evil) error {
		id := startCopy(e)
		require.NoError(e.t, e.handleFrom1(dataHeader(id, 0), make([]byte, 100)...))
		return e.handleFrom1(dataHeader(id, 0), make([]byte, 100)...)
	}, "DATA for range [0, 100) is a duplicate or exceeds the reordering limit"},
	{"DATA that overlaps", RendezvousCopy, func(e *evil) error {
		id := startCopy(e)
		require.NoError(e.t, e.handleFrom1(dataHeader(id, 50), make([]byte, 50)...))
		return e.handleFrom1(dataHeader(id, 0), make([]byte, 51)...)
	}, "DATA for range [0, 51) is a duplicate or exceeds the reordering limit"},
	{"DATA after the end", RendezvousCopy, func(e *evil) error {
		id := startCopy(e)
		require.NoError(e.t, e.handleFrom1(dataHeader(id, 0), make([]byte, 100)...))
		require.NoError(e.t, e.handleFrom1(dataHeader(id, 100), make([]byte, 50)...))
		return e.handleFrom1(dataHeader(id, 100), make([]byte, 50)...)
	}, "for unknown request"},
	{"DATA in crumbs", RendezvousCopy, func(e *evil) error {
		e.receive(10_000)
		require.NoError(e.t, e.announce(RendezvousCopy, 10_000))
		id := e.lastCTS().ID
		for at := 1; ; at += 2 {
			if err := e.handleFrom1(dataHeader(id, at), 1); err != nil {
				return err
			}
		}
	}, "DATA for range [2049, 2050) is a duplicate or exceeds the reordering limit"},

	{"an active packet that the handler does not like", RendezvousCopy, func(e *evil) error {
		e.core.Handler = func(int, *envelope.Header, []byte) error { return errors.New("no such window") }
		return e.handleFrom1(envelope.Header{Kind: envelope.Active})
	}, "rank 1: no such window"},
	{"another behind it", RendezvousCopy, func(e *evil) error {
		e.core.Handler = func(_ int, h *envelope.Header, _ []byte) error {
			if h.Seq == 1 {
				return errors.New("no such window")
			}
			return nil
		}
		require.NoError(e.t, e.handle(1, envelope.Header{Kind: envelope.Active, Source: 1, Seq: 1}))
		return e.handleFrom1(envelope.Header{Kind: envelope.Active})
	}, "rank 1: no such window"},
}

// TestViolations checks that each violation returns its error and has no other effect, and that no
// request waits for the rank after it is failed.
func TestViolations(t *testing.T) {
	for _, v := range violations {
		t.Run(v.name, func(t *testing.T) {
			e := newEvil(t, v.as)
			other := &Request{Envelope: match.Envelope{Source: 3}, Buf: make([]byte, 4)}
			e.core.Receive(other)
			err := v.do(e)
			require.ErrorIs(t, err, ErrProtocol)
			require.ErrorContains(t, err, v.cause)
			e.full = false
			for rank := 1; rank < 3; rank++ {
				e.core.FailPeer(rank, err)
			}
			for _, m := range e.moves {
				e.core.TransferDone(m.id, errors.New("flushed"))
			}
			require.Empty(t, e.exposed)
			receives, _, underway := e.core.Pending()
			require.Equal(t, [2]int{1, 0}, [2]int{receives, underway})
			require.NoError(t, e.handleFrom(3, eager, 1, 2, 3, 4))
			require.True(t, other.Done)
			require.NoError(t, other.Err)
			require.Equal(t, []byte{1, 2, 3, 4}, other.Buf)
		})
	}
}

// TestNoViolations checks unusual packets that are valid.
func TestNoViolations(t *testing.T) {
	for name, do := range map[string]func(e *evil) error{
		"packets of the transport": func(e *evil) error {
			return errors.Join(e.handleFrom1(envelope.Header{Kind: envelope.Hello}, 1, 2), e.handleFrom1(envelope.Header{Kind: envelope.Credit}), e.handleFrom1(envelope.Header{Kind: envelope.Bye}))
		},
		"an active packet without a handler": func(e *evil) error {
			return e.handleFrom1(envelope.Header{Kind: envelope.Active, Tag: -9, Length: 1 << 20})
		},
		"an old THROTTLE": func(e *evil) error {
			return errors.Join(e.handleFrom1(envelope.Header{Kind: envelope.Throttle, Seq: 2}), e.handleFrom1(envelope.Header{Kind: envelope.Throttle, Length: 1, Seq: 1}))
		},
		"the last packet that may be early": func(e *evil) error { return e.handleFrom1(envelope.Header{Kind: envelope.Eager, Seq: MaxEarly}) },
		"DATA backwards": func(e *evil) error {
			id := startCopy(e)
			return errors.Join(e.handleFrom1(dataHeader(id, 100), make([]byte, 50)...), e.handleFrom1(dataHeader(id, 0), make([]byte, 100)...))
		},
		"DATA instead of a write": func(e *evil) error {
			id := startWrite(e)
			return errors.Join(e.handleFrom1(dataHeader(id, 0), make([]byte, 100)...), e.handleFrom1(dataHeader(id, 100), make([]byte, 50)...))
		},
		"CTS instead of a read": func(e *evil) error {
			r, id := e.send(500, false)
			err := e.handleFrom1(clearFor(id, 400), keyOf(hers)...)
			require.True(e.t, r.Done)
			require.Equal(e.t, 400, r.Bytes)
			return err
		},
		"an announcement of nothing": func(e *evil) error {
			r := e.receive(5)
			err := e.announce(RendezvousRead, 0)
			require.True(e.t, r.Done)
			require.Equal(e.t, envelope.FIN, e.last().h.Kind)
			return err
		},
		"of a message longer than any memory": func(e *evil) error {
			r := e.receive(5)
			err := e.announce(RendezvousCopy, envelope.MaxMessage)
			require.NoError(e.t, e.handleFrom1(dataHeader(e.lastCTS().ID, 0), 1, 2, 3, 4, 5))
			require.ErrorIs(e.t, r.Err, ErrTruncated)
			require.Equal(e.t, 5, r.Bytes)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEvil(t, RendezvousRead)
			require.NoError(t, do(e))
			_, _, underway := e.core.Pending()
			require.Zero(t, underway)
			require.False(t, e.core.peers.Get(1).announceAll)
		})
	}
}

// TestPacketsOfLostRank checks that all packets of a lost rank are ignored.
func TestPacketsOfLostRank(t *testing.T) {
	e := newEvil(t, RendezvousCopy)
	_, id := e.send(500, false)
	in := startCopy(e)
	e.core.FailPeer(1, errors.New("cut"))
	r := &Request{Envelope: match.Envelope{Source: match.Any}, Sources: []int{0, 2}, Buf: make([]byte, 9)}
	e.core.Receive(r)
	for _, h := range []envelope.Header{eager, clearFor(id, 500), dataHeader(in, 0), headerOf(envelope.FIN, 1), {Kind: envelope.Throttle, Length: 1}} {
		payload := []byte(nil)
		switch h.Kind {
		case envelope.CTS:
			payload = keyOf(hers)
		case envelope.Data:
			payload = []byte{1}
		}
		require.NoError(t, e.handleFrom1(h, payload...))
	}
	require.EqualValues(t, 5, e.core.Stats.Dropped)
	require.False(t, r.Done)
	require.False(t, e.core.peers.Get(1).announceAll)
}

// TestUnknownScheme checks that the name of an invalid scheme contains its number.
func TestUnknownScheme(t *testing.T) {
	require.Equal(t, "Scheme(200)", Scheme(200).String())
	require.Equal(t, "copy", RendezvousCopy.String())
}
