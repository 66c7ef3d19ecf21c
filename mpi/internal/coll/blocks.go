package coll

// Part is a piece of a buffer, in bytes.
type Part struct {
	At  int // from the beginning of the buffer
	Len int
}

// blocks is memory in pieces, one for each rank: pieces that differ by at most one
// unit and lie in a row, or parts of the memory, or a list.
type blocks struct {
	mem []byte
	n   int

	unit, unitsPerBlock, remainder int // unitsPerBlock piece has so many units, and the first ones one more

	parts []Part
	list  [][]byte
}

// splitUniform cuts memory into n pieces of equal size, which it is a multiple of.
func splitUniform(mem []byte, n int) blocks {
	return blocks{mem: mem, n: n, unit: len(mem) / n, unitsPerBlock: 1}
}

// splitUnits cuts memory between units into n pieces of almost equal size.
func splitUnits(mem []byte, unit, n int) blocks {
	units := len(mem) / unit
	return blocks{mem: mem, n: n, unit: unit, unitsPerBlock: units / n, remainder: units % n}
}

// withMemory is the same pieces of other memory.
func (b blocks) withMemory(mem []byte) blocks {
	b.mem = mem
	return b
}

// start is where piece i begins and piece i-1 ends, unless there is a list. Only of
// dense pieces both are the same.
func (b blocks) start(i int) int {
	switch {
	case b.parts == nil:
		return (i*b.unitsPerBlock + min(i, b.remainder)) * b.unit
	case i < b.n:
		return b.parts[i].At
	}
	return b.parts[i-1].At + b.parts[i-1].Len
}

// block is piece i.
func (b blocks) block(i int) []byte {
	switch {
	case b.list != nil:
		return b.list[i]
	case b.parts != nil:
		return b.mem[b.parts[i].At:][:b.parts[i].Len:b.parts[i].Len]
	}
	return b.blockRange(i, i+1)
}

// blockRange is the pieces from until to, which are dense.
func (b blocks) blockRange(from, to int) []byte {
	i, j := b.start(from), b.start(to)
	return b.mem[i:j:j]
}

// isDense reports whether the pieces lie in a row without gaps.
func (b blocks) isDense() bool {
	for i := 1; i < len(b.parts); i++ {
		if b.parts[i].At != b.parts[i-1].At+b.parts[i-1].Len {
			return false
		}
	}
	return b.list == nil
}

// runDense runs an algorithm that needs dense pieces, and brings them to their places
// if they are not. Only our own piece is there before.
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
	d.mem = c.scratch(total)
	copy(d.block(c.rank), b.block(c.rank))
	if err := run(c, d); err != nil {
		return err
	}
	for i := range b.n {
		copy(b.block(i), d.block(i))
	}
	return nil
}

// sameStart reports whether two pieces begin with the same byte of memory.
func sameStart(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// copyUnlessSame copies a piece to where it belongs, unless it is there.
func copyUnlessSame(to, from []byte) {
	if !sameStart(to, from) {
		copy(to, from)
	}
}
