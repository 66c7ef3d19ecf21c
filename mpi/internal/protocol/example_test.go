package protocol_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// wire is a network of two ranks that prints its packets. A real one would encode packets and post
// work requests.
type wire struct {
	cores   [2]*protocol.Core
	rank    int
	packets *[]func() // in flight
	shown   *[][]byte // memory that a rank has registered for the other
}

func (w wire) Limits(int) protocol.Limits {
	return protocol.Limits{Eager: 64, Rendezvous: protocol.RendezvousRead}
}

func (w wire) Send(to int, h *envelope.Header, payload []byte) bool {
	fmt.Printf("%d > %d  %v, payload of %d\n", w.rank, to, h.Kind, h.Bytes)
	copied, data := *h, append([]byte(nil), payload...)
	*w.packets = append(*w.packets, func() {
		if err := w.cores[to].HandlePacket(w.rank, &copied, data); err != nil {
			w.cores[to].FailPeer(w.rank, err)
		}
	})
	return true
}

func (w wire) RegisterMemory(_ int, b []byte, _ bool) (envelope.Key, protocol.Registration, error) {
	*w.shown = append(*w.shown, b)
	return envelope.Key{RKey: uint32(len(*w.shown) - 1)}, b, nil
}

func (w wire) DeregisterMemory(protocol.Registration) {}

func (w wire) RDMARead(from int, b []byte, key envelope.Key, move uint64) error {
	fmt.Printf("%d < %d  %d bytes are read\n", w.rank, from, len(b))
	*w.packets = append(*w.packets, func() {
		copy(b, (*w.shown)[key.RKey])
		w.cores[w.rank].TransferDone(move, nil)
	})
	return nil
}

func (w wire) RDMAWrite(int, []byte, envelope.Key, uint64) error { return protocol.ErrNoRoom }

// A short message and a long one, which the receiver reads.
func Example() {
	cores := [2]*protocol.Core{protocol.New(0, 2), protocol.New(1, 2)}
	var packets []func()
	var shown [][]byte
	for rank, c := range cores {
		c.Attach(wire{cores, rank, &packets, &shown})
	}
	settle := func() {
		for len(packets) > 0 {
			next := packets[0]
			packets = packets[1:]
			next()
		}
	}

	short := protocol.Request{Dest: 1, Buf: []byte("hello"), Envelope: match.Envelope{Tag: 5}}
	cores[0].Send(&short)
	fmt.Println("short:", short.Done)
	long := protocol.Request{Dest: 1, Buf: make([]byte, 1000), Envelope: match.Envelope{Tag: 6}}
	cores[0].Send(&long)
	fmt.Println("long:", long.Done)
	settle()

	in := protocol.Request{Envelope: match.Envelope{Source: match.Any, Tag: match.Any}, Buf: make([]byte, 100)}
	cores[1].Receive(&in)
	fmt.Printf("%q from %d\n", in.Buf[:in.Bytes], in.Received.Source)
	in = protocol.Request{Envelope: match.Envelope{Source: 0, Tag: 6}, Buf: make([]byte, 100)}
	cores[1].Receive(&in)
	settle()
	fmt.Println(in.Bytes, in.Err)
	fmt.Println("long:", long.Done)

	// Output:
	// 0 > 1  EAGER, payload of 5
	// short: true
	// 0 > 1  RTS, payload of 24
	// long: false
	// "hello" from 0
	// 1 < 0  100 bytes are read
	// 1 > 0  FIN, payload of 0
	// 100 mpi: message truncated: 1000 bytes came from rank 0 with tag 6, buffer has 100
	// long: true
}
