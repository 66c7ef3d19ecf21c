package coll

import (
	"encoding/binary"
	"fmt"
)

// alltoallRDMA: every rank writes straight into the receive buffers of the others,
// each beginning with the one behind it. Nobody copies, and nobody waits his turn,
// for every piece has a place of its own. That a piece is there is told by the
// write's immediate data.
//
// Nobody may write before the other one has called, so there is a synchronisation
// first, and in it ranks tell the addresses of their buffers: those who have another
// one than in the call before.
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

// entrySize is the length of what is told of a rank's address: its number, and the
// address.
const entrySize = 4 + len(Address{})

// exchangeAddresses returns when all ranks have called it, and know the addresses of all others'
// buffers. It is a barrier by dissemination: in round k every rank tells the one
// 2^k behind it what it has heard so far. If nobody's address is new that is no
// more than a count of 0.
func (c *Call) exchangeAddresses(p RDMANet, b []byte) error {
	n := c.size
	mine, known, err := p.RegisterTarget(b)
	if err != nil {
		return err
	}
	// List is entries of ranks, the one before us before those before it. It has
	// room for all, behind the counts of a round, which go out and come in.
	room := c.scratch(16 + n*entrySize)
	out, in, list := room[:8], room[8:16], room[16:16]
	if !known {
		list = append(binary.LittleEndian.AppendUint32(list, uint32(c.rank)), mine[:]...)
	}
	for d := 1; d < n; d *= 2 {
		to, from := (c.rank+d)%n, (c.rank-d+n)%n
		tell := c.unknownTo(list, d)
		binary.LittleEndian.PutUint64(out, uint64(len(tell)/entrySize))
		if err := c.exchange(to, out, from, in); err != nil {
			return err
		}
		count := binary.LittleEndian.Uint64(in)
		if count > uint64((cap(list)-len(list))/entrySize) {
			return fmt.Errorf("rank %d tells %d addresses, more than there can be", from, count)
		}
		heard := list[len(list):][:int(count)*entrySize]
		if err := c.exchange(to, tell, from, heard); err != nil {
			return err
		}
		list = list[:len(list)+len(heard)]
		for e := heard; len(e) > 0; e = e[entrySize:] {
			rank := int(binary.LittleEndian.Uint32(e))
			if rank >= n || rank == c.rank {
				return fmt.Errorf("rank %d tells the address of rank %d", from, rank)
			}
			if err := p.SetRemoteAddress(rank, Address(e[4:entrySize])); err != nil {
				return fmt.Errorf("the address of rank %d, says rank %d: %w", rank, from, err)
			}
		}
	}
	return nil
}

// unknownTo is what the rank that is d behind us has not heard: all but those that are
// n-d or more before us, who are at it, or behind.
func (c *Call) unknownTo(list []byte, d int) []byte {
	end := 0
	for ; end < len(list); end += entrySize {
		if before := (c.rank - int(binary.LittleEndian.Uint32(list[end:])) + c.size) % c.size; before+d >= c.size {
			break
		}
	}
	return list[:end]
}
