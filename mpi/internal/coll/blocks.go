package coll

// A Part is a range of a buffer, in bytes.
type Part struct {
	At  int // offset in the buffer
	Len int
}

// blocks is memory divided into one block per rank: contiguous blocks that differ by at
// most one unit, parts of the memory, or a list of slices.
type blocks struct {
	mem []byte
	n   int

	unit, unitsPerBlock, remainder int // each block has unitsPerBlock units, and the first remainder blocks one more

	parts []Part
	list  [][]byte
}

// splitUniform divides memory into n blocks of equal size; len(mem) is a multiple of n.
func splitUniform(mem []byte, n int) blocks {
	return blocks{mem: mem, n: n, unit: len(mem) / n, unitsPerBlock: 1}
}

// splitUnits divides memory between units into n blocks of almost equal size.
func splitUnits(mem []byte, unit, n int) blocks {
	units := len(mem) / unit
	return blocks{mem: mem, n: n, unit: unit, unitsPerBlock: units / n, remainder: units % n}
}

// withMemory returns the same blocks of other memory.
func (b blocks) withMemory(mem []byte) blocks {
	b.mem = mem
	return b
}

// startOf returns the offset of block i. For dense blocks this is also the end of block
// i-1. There must be no list.
func (b blocks) startOf(i int) int {
	switch {
	case b.parts == nil:
		return (i*b.unitsPerBlock + min(i, b.remainder)) * b.unit
	case i < b.n:
		return b.parts[i].At
	}
	return b.parts[i-1].At + b.parts[i-1].Len
}

// block returns block i.
func (b blocks) block(i int) []byte {
	switch {
	case b.list != nil:
		return b.list[i]
	case b.parts != nil:
		return b.mem[b.parts[i].At:][:b.parts[i].Len:b.parts[i].Len]
	}
	return b.blockRange(i, i+1)
}

// blockRange returns the blocks [from, to), which must be dense.
func (b blocks) blockRange(from, to int) []byte {
	i, j := b.startOf(from), b.startOf(to)
	return b.mem[i:j:j]
}

// isDense reports whether the blocks are contiguous and in order.
func (b blocks) isDense() bool {
	for i := 1; i < len(b.parts); i++ {
		if b.parts[i].At != b.parts[i-1].At+b.parts[i-1].Len {
			return false
		}
	}
	return b.list == nil
}

// runDense runs an algorithm that needs dense blocks, with a dense copy of b if
// necessary. Only the own block of b is an input.
func (c *Call) runDense(b blocks, run func(c *Call, b blocks) error) error {
	if b.isDense() {
		return run(c, b)
	}
	d := blocks{n: b.n, parts: make([]Part, b.n)}
	total := 0
	for i := range d.parts {
		d.parts[i] = Part{total, len(b.block(i))}
		total += len(b.block(i))
	}
	d.mem = c.allocScratch(total)
	copy(d.block(c.rank), b.block(c.rank))
	if err := run(c, d); err != nil {
		return err
	}
	for i := range b.n {
		copy(b.block(i), d.block(i))
	}
	return nil
}

// sameStart reports whether two slices start at the same byte of memory.
func sameStart(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// copyUnlessSame copies a block unless it is in place.
func copyUnlessSame(to, from []byte) {
	if !sameStart(to, from) {
		copy(to, from)
	}
}
