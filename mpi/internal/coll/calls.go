package coll

// For all calls: in place means that send is the same memory as the own block of recv.
// Otherwise send and recv do not overlap. All ranks make the same call with the same root
// and matching sizes.

// Barrier blocks until all ranks have called it (MPI 4.1, section 6.3).
func (c *Call) Barrier() error {
	if err := c.start(Barrier, 0); err != nil {
		return err
	}
	return c.runAlgorithm(Barrier, 0, args{})
}

// Bcast copies the root's buf to all ranks. All bufs have the same size (section 6.4).
func (c *Call) Bcast(root int, buf []byte) error {
	if err := c.start(Bcast, root); err != nil {
		return err
	}
	return c.runAlgorithm(Bcast, len(buf), args{root: root, recv: blocks{mem: buf}})
}

// Gather collects the send of all ranks, of equal size, at the root, in the order of
// ranks. recv is significant only at the root (section 6.5).
func (c *Call) Gather(root int, send, recv []byte) error {
	if err := c.start(Gather, root); err != nil {
		return err
	}
	a := args{root: root, send: blocks{mem: send}}
	if c.rank == root {
		if len(recv) != c.size*len(send) {
			return c.argumentError(Gather, "buffer of %d bytes, want %d for each of %d ranks", len(recv), len(send), c.size)
		}
		a.recv = splitUniform(recv, c.size)
	}
	return c.runAlgorithm(Gather, len(send), a)
}

// Gatherv collects the send of all ranks at the root, each in its part of recv. recv
// and parts are significant only at the root.
func (c *Call) Gatherv(root int, send, recv []byte, parts []Part) error {
	if err := c.start(Gatherv, root); err != nil {
		return err
	}
	a := args{root: root, send: blocks{mem: send}}
	if c.rank == root {
		if err := c.checkParts(Gatherv, recv, parts); err != nil {
			return err
		}
		if parts[root].Len != len(send) {
			return c.argumentError(Gatherv, "send buffer of %d bytes, want %d", len(send), parts[root].Len)
		}
		a.recv = blocks{mem: recv, n: c.size, parts: parts}
	}
	return c.runAlgorithm(Gatherv, 0, a)
}

// Scatter distributes the blocks of the root's send, of the size of recv, to the ranks.
// send is significant only at the root (section 6.6). In place, recv is the root's
// block of send.
func (c *Call) Scatter(root int, send, recv []byte) error {
	if err := c.start(Scatter, root); err != nil {
		return err
	}
	a := args{root: root, recv: blocks{mem: recv}}
	if c.rank == root {
		if len(send) != c.size*len(recv) {
			return c.argumentError(Scatter, "send buffer of %d bytes, want %d for each of %d ranks", len(send), len(recv), c.size)
		}
		a.send = splitUniform(send, c.size)
	}
	return c.runAlgorithm(Scatter, len(recv), a)
}

// Scatterv distributes the parts of the root's send to the ranks. send and parts are
// significant only at the root.
func (c *Call) Scatterv(root int, send []byte, parts []Part, recv []byte) error {
	if err := c.start(Scatterv, root); err != nil {
		return err
	}
	a := args{root: root, recv: blocks{mem: recv}}
	if c.rank == root {
		if err := c.checkParts(Scatterv, send, parts); err != nil {
			return err
		}
		if parts[root].Len != len(recv) {
			return c.argumentError(Scatterv, "receive buffer of %d bytes, want %d", len(recv), parts[root].Len)
		}
		a.send = blocks{mem: send, n: c.size, parts: parts}
	}
	return c.runAlgorithm(Scatterv, 0, a)
}

// Allgather collects the send of all ranks, of equal size, at all ranks, in the order
// of ranks (section 6.7).
func (c *Call) Allgather(send, recv []byte) error {
	if err := c.start(Allgather, 0); err != nil {
		return err
	}
	if len(recv) != c.size*len(send) {
		return c.argumentError(Allgather, "buffer of %d bytes, want %d for each of %d ranks", len(recv), len(send), c.size)
	}
	b := splitUniform(recv, c.size)
	copyUnlessSame(b.block(c.rank), send)
	return c.runAlgorithm(Allgather, len(recv), args{recv: b})
}

// Allgatherv collects the send of all ranks at all ranks, each in its part of recv. The
// parts have the same lengths on all ranks.
func (c *Call) Allgatherv(send, recv []byte, parts []Part) error {
	if err := c.start(Allgatherv, 0); err != nil {
		return err
	}
	if err := c.checkParts(Allgatherv, recv, parts); err != nil {
		return err
	}
	if parts[c.rank].Len != len(send) {
		return c.argumentError(Allgatherv, "send buffer of %d bytes, want %d", len(send), parts[c.rank].Len)
	}
	b := blocks{mem: recv, n: c.size, parts: parts}
	copyUnlessSame(b.block(c.rank), send)
	return c.runAlgorithm(Allgatherv, totalSize(b), args{recv: b})
}

// Alltoall sends each rank its block of send and receives a block from each rank in
// recv, in the order of ranks. All blocks have the same size (section 6.8). In place,
// send is recv.
func (c *Call) Alltoall(send, recv []byte) error {
	if err := c.start(Alltoall, 0); err != nil {
		return err
	}
	if len(send) != len(recv) || len(recv)%c.size != 0 {
		return c.argumentError(Alltoall, "send buffer of %d bytes, receive buffer of %d: want equal blocks for each of %d ranks", len(send), len(recv), c.size)
	}
	return c.runAlgorithm(Alltoall, len(recv)/c.size, args{
		send: splitUniform(send, c.size), recv: splitUniform(recv, c.size), inPlace: sameStart(send, recv),
	})
}

// Alltoallv sends each rank its part of send and receives from each rank its part of
// recv. In place, send and sendParts are recv and recvParts.
func (c *Call) Alltoallv(send []byte, sendParts []Part, recv []byte, recvParts []Part) error {
	if err := c.start(Alltoallv, 0); err != nil {
		return err
	}
	if err := c.checkParts(Alltoallv, send, sendParts); err != nil {
		return err
	}
	if err := c.checkParts(Alltoallv, recv, recvParts); err != nil {
		return err
	}
	return c.exchangeAll(Alltoallv, blocks{mem: send, n: c.size, parts: sendParts}, blocks{mem: recv, n: c.size, parts: recvParts})
}

// Alltoallw sends each rank its slice of send and receives from each rank into its
// slice of recv. In place, the slices are the same.
func (c *Call) Alltoallw(send, recv [][]byte) error {
	if err := c.start(Alltoallw, 0); err != nil {
		return err
	}
	if len(send) != c.size || len(recv) != c.size {
		return c.argumentError(Alltoallw, "%d send slices, %d receive slices: want one for each of %d ranks", len(send), len(recv), c.size)
	}
	return c.exchangeAll(Alltoallw, blocks{n: c.size, list: send}, blocks{n: c.size, list: recv})
}

// exchangeAll checks the blocks of Alltoallv and Alltoallw and runs the call.
func (c *Call) exchangeAll(collective Collective, send, recv blocks) error {
	a := args{send: send, recv: recv}
	for i := range c.size {
		a.inPlace = a.inPlace || sameStart(send.block(i), recv.block(i))
	}
	if a.inPlace || len(send.block(c.rank)) != len(recv.block(c.rank)) {
		for i := range c.size {
			if out, in := len(send.block(i)), len(recv.block(i)); out != in && (a.inPlace || i == c.rank) {
				return c.argumentError(collective, "send %d bytes to rank %d, receive %d from it: want equal sizes", out, i, in)
			}
		}
	}
	return c.runAlgorithm(collective, 0, a)
}

// checkParts checks that there is a part for each rank, inside of mem.
func (c *Call) checkParts(collective Collective, mem []byte, parts []Part) error {
	if len(parts) != c.size {
		return c.argumentError(collective, "%d parts for %d ranks", len(parts), c.size)
	}
	for i, p := range parts {
		if p.At < 0 || p.Len < 0 || p.Len > len(mem) || p.At > len(mem)-p.Len {
			return c.argumentError(collective, "part of rank %d: %d bytes at offset %d, buffer has %d", i, p.Len, p.At, len(mem))
		}
	}
	return nil
}
