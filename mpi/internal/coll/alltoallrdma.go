package coll

import (
	"encoding/binary"
	"fmt"
)

// alltoallRDMA writes each block by RDMA directly to the receive buffers of the other
// ranks, starting with the next rank: no copies, and no ordering between ranks, because
// each block has its own target. The immediate data of the write notifies the receiver.
//
// Since a rank may write only after the target rank has called, a synchronization
// precedes the writes. In it ranks exchange the addresses of buffers that changed since
// the previous call.
//
// Mamidala and others 2007, section 4.1.
func alltoallRDMA(c *Call, send, recv blocks) error {
	n, size := c.size, len(recv.block(0))
	if size == 0 {
		return nil
	}
	p := c.Net.(RDMANet)
	if err := p.RegisterSource(send.mem); err != nil {
		return err
	}
	if err := c.exchangeAddresses(p, recv.mem); err != nil {
		return err
	}
	for i := 1; i < n; i++ {
		to, from := (c.rank+i)%n, (c.rank-i+n)%n
		c.pending = append(c.pending, p.Write(to, c.rank*size, send.block(to)), p.WriteArrived(from))
	}
	copyUnlessSame(recv.block(c.rank), send.block(c.rank))
	return c.waitAll()
}

// entrySize is the length in bytes of an entry of exchangeAddresses: a rank and its
// address.
const entrySize = 4 + len(Address{})

// exchangeAddresses returns when all ranks have called it and this rank knows the
// buffer addresses of all others. It is a dissemination barrier: in round k a rank
// sends the rank 2^k further on the entries it has. If no address is new, it sends only
// a count of 0.
func (c *Call) exchangeAddresses(p RDMANet, b []byte) error {
	n := c.size
	mine, known, err := p.RegisterTarget(b)
	if err != nil {
		return err
	}
	// list has entries in order of increasing distance back from this rank. It has room for
	// all, after the two counts of a round.
	room := c.allocScratch(16 + n*entrySize)
	out, in, list := room[:8], room[8:16], room[16:16]
	if !known {
		list = append(binary.LittleEndian.AppendUint32(list, uint32(c.rank)), mine[:]...)
	}
	for d := 1; d < n; d *= 2 {
		to, from := (c.rank+d)%n, (c.rank-d+n)%n
		entries := c.unknownTo(list, d)
		binary.LittleEndian.PutUint64(out, uint64(len(entries)/entrySize))
		if err := c.exchange(to, out, from, in); err != nil {
			return err
		}
		count := binary.LittleEndian.Uint64(in)
		if count > uint64((cap(list)-len(list))/entrySize) {
			return fmt.Errorf("rank %d: address exchange: %d entries exceed the number of ranks", from, count)
		}
		received := list[len(list):][:int(count)*entrySize]
		if err := c.exchange(to, entries, from, received); err != nil {
			return err
		}
		list = list[:len(list)+len(received)]
		for e := received; len(e) > 0; e = e[entrySize:] {
			rank := int(binary.LittleEndian.Uint32(e))
			if rank >= n || rank == c.rank {
				return fmt.Errorf("rank %d: address exchange: entry of rank %d", from, rank)
			}
			if err := p.SetRemoteAddress(rank, Address(e[4:entrySize])); err != nil {
				return fmt.Errorf("address of rank %d from rank %d: %w", rank, from, err)
			}
		}
	}
	return nil
}

// unknownTo returns the entries that the rank d further on does not have: all except
// those of ranks n-d or more back.
func (c *Call) unknownTo(list []byte, d int) []byte {
	end := 0
	for ; end < len(list); end += entrySize {
		if before := (c.rank - int(binary.LittleEndian.Uint32(list[end:])) + c.size) % c.size; before+d >= c.size {
			break
		}
	}
	return list[:end]
}
